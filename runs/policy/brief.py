"""A policy's document in one line: what it waits for, and what it then does. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from runs.policy.document import BadPolicy, read_policy

Part = Mapping[str, Any]


def in_brief(document: Any) -> str:
    """`sweep of policy-runner ended → launches a sweep of policy-runner`; empty for a document that is not taken."""
    try:
        policy = read_policy(document)
    except BadPolicy:
        return ""
    return f"{WHEN[policy.on](policy.trigger)} → {THEN[policy.does](policy.action)}"


def _of(part: Part, *names: str) -> str:
    """` of agent on benchmark`, as far as they are named."""
    return "".join(_named(part, {"agent": "of", "benchmark": "on"}[name], name) for name in names)


def _named(part: Part, word: str, name: str) -> str:
    return f" {word} {part[name]}" if name in part else ""


def _schedule(trigger: Part) -> str:
    every, at = trigger.get("every", "day"), trigger.get("at", "")
    day = f" on {trigger['weekday'].capitalize()}" if "weekday" in trigger else ""
    return f"every {every}{day}{f' at {at}' if at and every != 'hour' else ''}"


def _memory(happened: str) -> Callable[[Part], str]:
    def words(trigger: Part) -> str:
        kind = str(trigger.get("kind", "memory")).replace("_", " ")
        return f"{kind}{_named(trigger, 'in', 'collection')}{_of(trigger, 'agent', 'benchmark')} {happened}"

    return words


WHEN: dict[str, Callable[[Part], str]] = {
    "manual": lambda _: "when a person asks",
    "schedule": _schedule,
    "run_ended": lambda trigger: f"run{_of(trigger, 'agent', 'benchmark')} ended",
    "sweep_ended": lambda trigger: f"sweep{_of(trigger, 'agent', 'benchmark')} ended",
    "evaluation_scored": lambda trigger: f"score{_of(trigger, 'agent', 'benchmark')} came in",
    "dataset_grew": lambda trigger: f"{trigger.get('dataset', 'a dataset')} grew",
    "promotion_decided": lambda trigger: f"promotion{_named(trigger, 'as', 'name')} was decided",
    "question_answered": lambda trigger: f"question{_named(trigger, 'of', 'policy')} was answered",
    "memory_written": _memory("was written"),
    "memory_reviewed": _memory("was reviewed"),
}
THEN: dict[str, Callable[[Part], str]] = {
    "launch_sweep": lambda action: f"launches a sweep{_of(action, 'agent', 'benchmark')}",
    "launch_run": lambda action: f"launches a run{_of(action, 'agent', 'benchmark')}",
    "promote": lambda action: f"puts an artifact forward as {action['name']}",
    "write_memory": lambda action: f"writes a {action['kind'].replace('_', ' ')} to {action['collection']}",
    "notify": lambda _: "tells people",
    "ask": lambda _: "asks people a question",
}
