"""`{% load run_text %}`: values of runs as text. Everything here is text that templates escape."""

import json
from typing import Any

from django import template

from runs.commands.harvest import LACKING
from runs.models import Artifact, Evaluation
from runs.queries.artifact import RECORDS
from runs.queries.home_seeds import SeedLead
from runs.terminal import plain
from workspaces import units
from workspaces.asked_words import cost_words
from workspaces.models import Approval

register = template.Library()


@register.filter
def said(body: Any) -> str:
    """A line of events.jsonl without its type, as the run wrote it: `path: model.json, kind: model`."""
    if not isinstance(body, dict):
        return plain(json.dumps(body, ensure_ascii=False)[:1000])
    parts = [
        f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in body.items()
        if key != "type" and value not in ("", None)
    ]
    return plain(", ".join(parts)[:1000])


@register.filter
def pretty(value: Any) -> str:
    """JSON over several lines."""
    return plain_lines(json.dumps(value, indent=2, ensure_ascii=False))


@register.filter
def results(artifacts: list[Artifact]) -> list[Artifact]:
    """What the run was run for."""
    return [artifact for artifact in artifacts if artifact.kind not in RECORDS]


@register.filter
def records(artifacts: list[Artifact]) -> list[Artifact]:
    """What every run leaves behind of itself: logs, metrics, events."""
    return [artifact for artifact in artifacts if artifact.kind in RECORDS]


@register.filter
def lacking(reason: str) -> str:
    """Of a run's reason the part that says which outputs are not there, and why; empty where all are."""
    _, begins, words = reason.partition(LACKING)
    return begins + words


@register.filter
def asked_cost(approval: Approval) -> str:
    """What is asked for costs at most, such as `2.40 EUR`; empty where nothing says so."""
    return cost_words(approval.content)


@register.filter
def exact(value: float) -> str:
    """A number with every digit that it holds."""
    return repr(value) if isinstance(value, float) else str(value)


@register.filter
def parameter(value: Any) -> str:
    """A parameter's value as a table shows it: numbers as they were set, lists and objects as short JSON."""
    if value is None:
        return units.MISSING
    text = f"{value:.10g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return plain(text if len(text) <= 60 else f"{text[:59]}…")


@register.filter
def is_text(value: Any) -> bool:
    """Whether it reads from its beginning, where a number would stand below others."""
    return not isinstance(value, int | float)


@register.filter
def as_set(value: float | None) -> str:
    """A number as a person set it, without digits that they did not write: `0.9`, `1700`."""
    return units.MISSING if value is None else f"{value:.10g}"


@register.filter
def score_parts(score: Evaluation | SeedLead | None) -> tuple[str, str]:
    """Value and uncertainty of a score, rounded together: `("0.841", "0.012")`; the second is "" where none is known."""
    if score is None:
        return units.MISSING, ""
    value, _, error = units.number(score.value, score.standard_error).partition(" ± ")
    return value, error


def plain_lines(text: str) -> str:
    return "\n".join(plain(line) for line in text.split("\n"))
