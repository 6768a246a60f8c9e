"""A policy as people write it: one JSON document of trigger, conditions, gate, action and limits, against a JSON Schema (draft 2020-12).

Nothing in it is evaluated: checks, rules and triggers are names of what stands in this package, with typed parameters (decision 19).
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator

from runs.policy.checks import CHECKS
from runs.policy.choosing import RULES
from runs.policy.memory import NEEDS as MEMORY_NEEDS
from runs.policy.memory import PARAMETERS as MEMORY
from runs.schema_words import schema_words

MAX_CHECKS, MAX_INPUTS, MAX_FAULTS, MAX_CHOICES = 20, 20, 20, 10
MAX_DEPTH, MAX_WHOLE = 30, 2**63
SLUG = {"type": "string", "minLength": 1, "maxLength": 64}
WORDS = {"type": "string", "maxLength": 1000}
WHOLE = {"type": "integer", "minimum": 1, "maximum": 1_000_000}
KIND_OF_MEMORY = {"enum": ["failed_attempt", "finding", "guidance", "note"]}
HOURS = {"type": "number", "exclusiveMinimum": 0, "maximum": 1_000_000}
ANSWER = {"type": "string", "minLength": 1, "maxLength": 100}

# Trigger -> what its document may name beside `on`.
TRIGGERS: dict[str, dict[str, Any]] = {
    "manual": {},
    "schedule": {
        "every": {"enum": ["hour", "day", "week"]},
        "at": {"type": "string", "pattern": r"^([01][0-9]|2[0-3]):[0-5][0-9]$"},
        "weekday": {"enum": ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]},
    },
    "run_ended": {"agent": SLUG, "benchmark": SLUG},
    "sweep_ended": {"agent": SLUG, "benchmark": SLUG},
    "evaluation_scored": {"agent": SLUG, "benchmark": SLUG},
    "dataset_grew": {"dataset": SLUG},
    "promotion_decided": {"name": SLUG},
    "question_answered": {"policy": SLUG, "answer": ANSWER},
    "memory_written": {"collection": SLUG, "kind": KIND_OF_MEMORY, "agent": SLUG, "benchmark": SLUG},
    "memory_reviewed": {"collection": SLUG, "kind": KIND_OF_MEMORY, "agent": SLUG, "benchmark": SLUG},
}
# Input -> what stands beside it: which datasets and artifacts a launch reads, found when the policy decides and kept with the decision.
INPUTS: dict[str, dict[str, Any]] = {
    "dataset": {},
    "windows_of": {"newest": WHOLE},
    "promoted": {"required": {"type": "boolean"}},
    "made_by_cause": {
        "best": WHOLE
    },  # artifacts of this kind that the run or the sweep of the cause has made, or the best so many by their run's score
}
# Action -> (what it must name, what it may name).
_LAUNCH: dict[str, Any] = {
    "agent": SLUG,
    "benchmark": SLUG,
    "pool": SLUG,
    "inputs": {},
    "parameters": {"type": "object"},
    "gpu_hours_each": HOURS,
    "purpose": WORDS,
    "seeds": {"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "integer", "minimum": 0, "maximum": 2**53}},
}
ACTIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "launch_sweep": (("agent", "benchmark", "choose"), {**_LAUNCH, "choose": {}, "memory": {}}),
    "launch_run": (("agent", "benchmark"), _LAUNCH),
    "promote": (("name",), {"name": SLUG, "purpose": WORDS}),
    "write_memory": (
        ("kind", "collection", "title"),
        {
            "kind": KIND_OF_MEMORY,
            "collection": SLUG,
            "title": {"type": "string", "minLength": 1, "maxLength": 200},
            "text": {"type": "string", "maxLength": 4000},
            "agent": SLUG,
            "benchmark": SLUG,
            "with_configuration": {"type": "boolean"},
        },
    ),
    "notify": (("words",), {"words": {**WORDS, "minLength": 1}}),
    "ask": (
        ("question",),
        {
            "question": {**WORDS, "minLength": 1},
            "choices": {"type": "array", "minItems": 2, "maxItems": MAX_CHOICES, "uniqueItems": True, "items": ANSWER},
            "role": {"enum": ["approver", "admin", "owner"]},
            "hours": {"type": "integer", "minimum": 1, "maximum": 24 * 366},
        },
    ),
}
LIMITS: dict[str, Any] = {
    "cooldown_minutes": {"type": "number", "minimum": 0, "maximum": 525_600},
    "decisions": WHOLE,
    "gpu_hours": HOURS,
    "gpu_hours_a_week": HOURS,
    "budget_share_percent": {"type": "number", "exclusiveMinimum": 0, "maximum": 100},  # of the week's hard limit of GPU hours
    "runs_at_once": WHOLE,
    "failures": WHOLE,
}


class BadPolicy(ValueError):  # an answer for people
    """A document that is not taken; `faults` are sentences, each with the place that it is about."""

    def __init__(self, *faults: str) -> None:
        super().__init__(" ".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Policy:
    """A document that was taken. `limits` hold GPU hours as they were written; what is compared with them is in GPU milliseconds."""

    trigger: dict[str, Any]
    conditions: tuple[dict[str, Any], ...]
    gate: tuple[dict[str, Any], ...]
    action: dict[str, Any]
    limits: dict[str, Any] = field(default_factory=dict)

    @property
    def on(self) -> str:
        return str(self.trigger["on"])

    @property
    def does(self) -> str:
        return str(self.action["do"])


def read_policy(document: Any) -> Policy:
    """Take a document, or raise BadPolicy with a sentence for each fault."""
    if not isinstance(document, Mapping):
        raise BadPolicy("A policy is a JSON object with a trigger and an action, and conditions, a gate and limits where it has them.")
    check_values(document)
    faults = [said_of(error) for error in islice(_validator().iter_errors(document), MAX_FAULTS)]
    if faults:
        raise BadPolicy(*dict.fromkeys(faults))
    policy = Policy(
        trigger=dict(document["trigger"]),
        conditions=tuple(document.get("conditions", ())),
        gate=tuple(document.get("gate", ())),
        action=dict(document["action"]),
        limits=dict(document.get("limits", {})),
    )
    faults = [*_trigger_faults(policy), *_check_faults(policy), *_action_faults(policy)]
    if faults:
        raise BadPolicy(*faults[:MAX_FAULTS])
    return policy


def check_values(document: Any) -> None:
    """Raise BadPolicy where a number is none, or larger than any that is compared, or values stand too deep in each other to be walked through."""
    waiting = [(document, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise BadPolicy(f"policy: values stand in each other more than {MAX_DEPTH} deep; say it flatter.")
        if isinstance(value, float) and not math.isfinite(value):
            raise BadPolicy(f"policy: {value} is no number that a policy can hold; write a finite one.")
        if isinstance(value, int) and abs(value) > MAX_WHOLE:
            raise BadPolicy("policy: a whole number has up to 64 bits; one here is larger.")
        inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
        waiting += [(entry, depth + 1) for entry in inner]


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a document; what depends on a name inside (a check's parameters) is checked by name after it."""
    check = {"type": "object", "required": ["check"], "properties": {"check": {"type": "string"}}}
    listed = {"type": "array", "maxItems": MAX_CHECKS, "items": check}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Policy",
        "type": "object",
        "additionalProperties": False,
        "required": ["trigger", "action"],
        "properties": {
            "trigger": {"type": "object", "required": ["on"], "properties": {"on": {"enum": sorted(TRIGGERS)}}},
            "conditions": listed,
            "gate": listed,
            "action": {
                "type": "object",
                "required": ["do"],
                "properties": {
                    "do": {"enum": sorted(ACTIONS)},
                    "inputs": {"type": "array", "maxItems": MAX_INPUTS, "items": {"type": "object"}},
                    "choose": {"type": "object", "required": ["rule", "axes"], "properties": {"rule": {"enum": sorted(RULES)}}},
                    "memory": {"type": "object"},
                },
            },
            "limits": {"type": "object", "additionalProperties": False, "properties": LIMITS},
        },
    }  # fmt: skip


@functools.cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(schema())


def _trigger_faults(policy: Policy) -> list[str]:
    faults = named_faults(f"trigger {policy.on}", policy.trigger, TRIGGERS[policy.on], skip="on")
    if policy.on == "schedule" and "every" not in policy.trigger:
        faults.append("trigger: a schedule says how often: every hour, day or week.")
    return faults


def _check_faults(policy: Policy) -> list[str]:
    faults = []
    for place, listed in (("conditions", policy.conditions), ("gate", policy.gate)):
        for number, entry in enumerate(listed, start=1):
            check = CHECKS.get(entry["check"])
            if check is None:
                faults.append(f"{place}, {number}: there is no check {entry['check'][:64]!r}; there are {', '.join(sorted(CHECKS))}.")
            else:
                found = named_faults(f"{place}, {number}, {check.name}", entry, check.parameters, skip="check", needs=check.needs)
                faults += found or [f"{place}, {number}, {check.name}: {fault}" for fault in check.faults(entry)]
    return faults


def _action_faults(policy: Policy) -> list[str]:
    needs, allowed = ACTIONS[policy.does]
    if policy.does == "promote" and policy.on != "evaluation_scored":
        return ["action promote: what is put forward is what an evaluation has measured, so its trigger is evaluation_scored."]
    if policy.does == "write_memory" and {"agent", "benchmark"} <= policy.action.keys():
        return ["action write_memory: an entry is about one agent or about one benchmark, not about both."]
    faults = named_faults(f"action {policy.does}", policy.action, allowed, skip="do", needs=needs)
    if policy.does == "ask" and not faults:
        faults += _question_faults(policy.action)
    for number, entry in enumerate(policy.action.get("inputs", ()), start=1):
        kinds = sorted(entry.keys() & INPUTS.keys())
        if len(kinds) != 1:
            faults.append(f"action, input {number}: name one of {', '.join(INPUTS)}.")
            continue
        faults += named_faults(f"action, input {number}", entry, {kinds[0]: SLUG, **INPUTS[kinds[0]]})
    if "memory" in policy.action and policy.does == "launch_sweep":
        faults += named_faults("action, memory", policy.action["memory"], MEMORY, needs=MEMORY_NEEDS)
    if not faults and "choose" in policy.action:
        choose = policy.action["choose"]
        rule = RULES[choose["rule"]]
        faults += named_faults(f"rule {choose['rule']}", choose, rule.parameters, skip="rule", needs=rule.needs)
        faults += [] if faults else rule.faults(choose)
    return faults


def _question_faults(action: Mapping[str, Any]) -> list[str]:
    """An answer is compared as it stands, so nothing may hide around it."""
    faults = [] if action["question"].strip() else ["action ask, question: It asks nothing."]
    hidden = [choice for choice in action.get("choices", ()) if choice != " ".join(choice.split())]
    return faults + [
        f"action ask, choices: {choice!r} is one line of words, without spaces around or between more than one." for choice in hidden
    ]


def named_faults(
    place: str, given: Mapping[str, Any], allowed: Mapping[str, Any], *, skip: str = "", needs: tuple[str, ...] = ()
) -> list[str]:
    """Faults of names and values under one heading."""
    takes = f"it takes {', '.join(sorted(allowed))}" if allowed else "it takes nothing"
    faults = [f"{place}: {name[:64]!r} is not known here; {takes}." for name in given if name not in allowed and name != skip]
    faults += [f"{place}: {name} is missing." for name in needs if name not in given]
    for name, wanted in allowed.items():
        if name in given and wanted:
            found = islice(Draft202012Validator(wanted).iter_errors(given[name]), 3)
            faults += [f"{place}, {name}: {schema_words(error)}" for error in found]
    return faults


def said_of(error: Any) -> str:
    place = ", ".join(str(part + 1 if isinstance(part, int) else part) for part in error.absolute_path) or "policy"
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        unknown = [str(name)[:64] for name in error.instance if name not in known]
        return f"{place}: {', '.join(map(repr, unknown[:10]))} is not known here; it takes {', '.join(sorted(known))}."
    return f"{place}: {schema_words(error)}"
