"""In what the source of a copied benchmark differs from the copy: read through the source's public definition, so nothing else of it is told."""

import json
from dataclasses import dataclass, field
from typing import Any

from workspaces.models import Benchmark, Contract, NotFound
from workspaces.queries.public_benchmark import find_public, public_definition
from workspaces.queries.workspace import find_workspace

LONGEST = 400  # characters of a value that are shown

WORDS = {
    "metric": "Metric", "unit": "Unit", "direction": "Direction", "metrics": "Other metrics", "over_seeds": "Over seeds", "tie_rule": "Ties",
    "counts_all_samples": "Every sample counts", "holdout": "Holdout, by its hash", "train": "Training data, by its hash",
    "validation": "Validation data, by its hash", "evaluator": "Evaluator, by its hash", "wall_seconds": "Longest evaluation, s",
    "memory_bytes": "Most memory, bytes", "runs_per_person": "Runs per person", "period": "Period", "opens_at": "Opens at",
    "closes_at": "Closes at", "terms": "Terms",
}  # fmt: skip  # in the order in which they are shown


@dataclass(frozen=True, slots=True)
class Differing:
    """One field; "" where a side says nothing of it."""

    name: str
    mine: str
    source: str


@dataclass(frozen=True, slots=True)
class Difference:
    """`version` of the source's contract now, None where it can be read no more; `mine` is the one that the copy was made of."""

    mine: int | None
    version: int | None = None
    fields: list[Differing] = field(default_factory=list)
    is_told: bool = True  # a contract that was published before definitions could travel tells no fields


def difference(benchmark: Benchmark, contract: Contract | None) -> Difference:
    """Field by field, between the copy's current contract and the source's. Writes nothing, on neither side."""
    mine = contract.source_version if contract else None
    giver = find_workspace(benchmark.source["workspace_id"])
    try:
        if giver is None:
            raise NotFound("workspace")
        definition = public_definition(giver, find_public(giver, benchmark.source["benchmark_id"]))
    except NotFound:
        return Difference(mine)
    before = contract.content if contract else {}
    return Difference(mine, definition.version, _fields(before, definition.content), is_told=bool(before and definition.content))


def _fields(before: dict[str, Any], after: dict[str, Any]) -> list[Differing]:
    names = [*WORDS, *sorted((before.keys() | after.keys()) - WORDS.keys())]
    return [
        Differing(WORDS.get(name, name), _text(before.get(name)), _text(after.get(name)))
        for name in names
        if before.get(name) != after.get(name)
    ]


def _text(value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
