"""A policy's document as a form: fields drawn from the schemas of the catalogue, and a document read from what was filled in. Pure.

The form holds nothing of its own: it is drawn from a document, and what it says is a document again, so either fills the other. What the catalogue
does not know is drawn as well, each as JSON, so that nothing is lost on the way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator

from runs.policy.changes import PARTS
from runs.policy.checks import CHECKS
from runs.policy.choosing import RULES
from runs.policy.document import ACTIONS, INPUTS, LIMITS, MAX_CHECKS, MAX_CHOICES, MAX_INPUTS, SLUG, TRIGGERS
from runs.policy.form_values import hint_of, kind_of, shown_value
from runs.policy.memory import NEEDS as MEMORY_NEEDS
from runs.policy.memory import PARAMETERS as MEMORY
from runs.schema_words import schema_words
from workspaces.text import unprintable

# Of a group: what it is, what it was when it was drawn, of an input which one, and of a row that is one text that text.
HEAD, WAS, NAME, TEXT = ":head", ":was", ":name", ":text"
HEADS = {"trigger": "on", "conditions": "check", "gate": "check", "action": "do", "choose": "rule"}
LISTED = {"conditions": MAX_CHECKS, "gate": MAX_CHECKS, "input": MAX_INPUTS, "choices": MAX_CHOICES}
GROUPS = ("trigger", "conditions", "gate", "action", "choices", "input", "choose", "memory", "limits")
UNKNOWN, MISSING = "This is not known here.", "It is missing."
MOST_STRANGE = 30  # names that the catalogue does not know, in one group
NOUNS = {"windows_of": "dataset", "over": "agent"}  # parameter -> what it is a name of, where that is not its own name
HINTS = {
    "axes": 'JSON: {"rate": [0.1, 0.2]} for values, {"rate": {"low": 0.001, "high": 1, "scale": "log"}} for a range',
    "at": "hours and minutes of the workspace’s clock, such as 03:30",
    "question": "what a person is asked; it goes into the inbox of all who may answer",
    "role": "who may answer at least; empty: as the workspace’s rule for questions says",
    "hours": "after so many the question expires; empty: as the workspace’s rule says",
    "answer": "only this one, word for word; empty: any answer",
}


class Unshown(ValueError):
    """A document that no form can show; the words say what of it."""


@dataclass(slots=True)
class Field:
    """One control. `kind`: text, lines, number, choice or json; `noun` what it names of the workspace, if anything."""

    name: str
    key: str
    id: str
    label: str
    kind: str
    value: str
    hint: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    noun: str = ""
    is_needed: bool = False
    faults: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Group:
    """What stands under one heading: what it is (`head`), then what that takes. `places` are its names in the sentences of `read_policy`."""

    path: str
    title: str
    places: tuple[str, ...]
    head: Field | None
    was: str
    fields: list[Field]
    faults: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return f"e-{self.path.replace('.', '-')}"

    @property
    def all(self) -> list[Field]:
        return [self.head, *self.fields] if self.head else self.fields


@dataclass(slots=True)
class Part:
    """A part of a document: groups, and, where it is a list, what one adds to it."""

    name: str
    title: str
    lead: str
    groups: list[Group]
    adds: str = ""
    faults: list[str] = field(default_factory=list)


# --- A document, drawn --------------------------------------------------------------------------------------------------------------------


def draw(document: Mapping[str, Any]) -> list[Part]:
    """Raises Unshown where the document is not made of the parts that a form has."""
    strange = [str(name) for name in document if name not in PARTS]
    if strange:
        raise Unshown(f"The form has no place for {', '.join(repr(name[:64]) for name in strange[:5])}.")
    trigger, action, limits = (_table(document, name) for name in ("trigger", "action", "limits"))
    return [
        Part("trigger", "Trigger", "When it is asked.", [_trigger(trigger)]),
        Part("conditions", "Conditions", "All must hold, or there is nothing to do.", _checks(document, "conditions"), "condition"),
        Part("gate", "Gate", "All must pass before it acts; what cannot be told never passes.", _checks(document, "gate"), "gate check"),
        *_action(action),
        Part(
            "limits",
            "Limits",
            "A lasting one stops it until an approver lets it go on.",
            [_plain("limits", "", ("limits",), limits, LIMITS)],
        ),
    ]


def _trigger(given: dict[str, Any]) -> Group:
    return _group("trigger", "", ("trigger",), given, [(name, name.replace("_", " ")) for name in TRIGGERS], TRIGGERS, {})


def _checks(document: Mapping[str, Any], part: str) -> list[Group]:
    options = [(check.name, f"{check.title} · {check.name}") for check in CHECKS.values()]
    takes = {check.name: check.parameters for check in CHECKS.values()}
    needs = {check.name: check.needs for check in CHECKS.values()}
    return [
        _group(f"{part}.{place}", f"{place + 1}", (f"{part}, {place + 1}",), given, options, takes, needs)
        for place, given in enumerate(_rows(document, part, LISTED[part]))
    ]


def _action(given: dict[str, Any]) -> list[Part]:
    does = given.get("do", "")
    needs, allowed = ACTIONS.get(does, ((), {})) if isinstance(does, str) else ((), {})
    fits = {"inputs": _are_inputs(given.get("inputs", [])), "choose": _is_table(given, "choose"), "memory": _is_table(given, "memory")}
    fits["choices"] = _are_texts(given.get("choices"))
    apart = {name for name in fits if fits[name] and name in allowed}
    elsewhere = {"inputs", "choose", "memory"} | ({"choices"} & apart)
    takes = {name: [key for key in kinds if key not in elsewhere] for name, (_, kinds) in ACTIONS.items()}
    plain = {name: {key: ACTIONS[name][1][key] for key in keys} for name, keys in takes.items()}
    rest = {key: value for key, value in given.items() if key not in apart}
    main = _group(
        "action", "", ("action",), rest, [(name, name.replace("_", " ")) for name in ACTIONS], plain, {does: needs} if allowed else {}
    )
    parts = [Part("action", "Action", "What it does.", [main])]
    if "choices" in apart:
        rows = [_text_row("choices", place, text) for place, text in enumerate(given.get("choices", []))]
        parts.append(Part("choices", "Answers", "What a person may answer, word for word; none for their own words.", rows, "answer"))
    if "inputs" in apart:
        rows = [_input(place, entry) for place, entry in enumerate(given.get("inputs", []))]
        parts.append(Part("input", "Inputs", "What each launch reads, found when it decides.", rows, "input"))
    if "choose" in apart:
        options = [(name, name.replace("_", " ")) for name in RULES]
        takes_of, needs_of = {name: rule.parameters for name, rule in RULES.items()}, {name: rule.needs for name, rule in RULES.items()}
        chosen = _group("choose", "", ("action, choose",), given.get("choose", {}), options, takes_of, needs_of)
        parts.append(Part("choose", "Choice", "The rule that picks the configurations of the next sweep.", [chosen]))
    if "memory" in apart:
        read = _plain("memory", "", ("action, memory",), given.get("memory", {}), MEMORY, MEMORY_NEEDS if given.get("memory") else ())
        parts.append(Part("memory", "Memory", "What it reads before it chooses; empty for nothing.", [read]))
    return parts


def _input(place: int, given: dict[str, Any]) -> Group:
    kind = next(name for name in given if name in INPUTS)
    path = f"input.{place}"
    options = {name: {NAME: SLUG, **takes} for name, takes in INPUTS.items()}
    entry = {HEAD: kind, NAME: given[kind], **{name: value for name, value in given.items() if name != kind}}
    titles = [(name, name.replace("_", " ")) for name in INPUTS]
    places = (f"action, input {place + 1}", f"action, inputs, {place + 1}")
    group = _group(path, f"{place + 1}", places, entry, titles, options, {kind: (NAME,)}, key=HEAD)
    for one in group.fields:
        if one.key == NAME:
            one.key, one.label = kind, "name"
            one.noun = NOUNS.get(kind, kind) if kind in ("dataset", "windows_of") else ""
    return group


def _text_row(part: str, place: int, text: str) -> Group:
    path = f"{part}.{place}"
    id_ = f"e-{part}-{place}"
    one = Field(f"{path}.{TEXT}", TEXT, f"{id_}-text", f"answer {place + 1}", "text", text, is_needed=True)
    return Group(path, f"{place + 1}", (), None, "", [one])


def _group(
    path: str,
    title: str,
    places: tuple[str, ...],
    given: dict[str, Any],
    options: list[tuple[str, str]],
    takes: Mapping[str, Mapping[str, Any]],
    needs: Mapping[str, tuple[str, ...]],
    *,
    key: str = "",
) -> Group:
    """One that is something by name and takes what stands under that name."""
    key = key or HEADS[path.split(".")[0]]
    is_ = given.get(key, "")
    if not isinstance(is_, str):
        raise Unshown(f"{', '.join(places[:1])}: {key} is no name.")
    known = dict(options)
    shown = tuple(options) if is_ in known else ((is_, is_ or "choose…"), *options)
    rest = {name: value for name, value in given.items() if name != key}
    group = _plain(
        path, title, (*places, f"{path.split('.')[0]} {is_}", f"{places[0]}, {is_}"), rest, takes.get(is_, {}), needs.get(is_, ())
    )
    if path == "choose":
        group.places = (*group.places, f"rule {is_}")
    label = {HEAD: "kind"}.get(key, key)
    group.head = Field(f"{path}.{HEAD}", key, f"{group.id}-head", label, "choice", is_, choices=shown, is_needed=True)
    group.was = is_
    return group


def _plain(
    path: str, title: str, places: tuple[str, ...], given: Mapping[str, Any], takes: Mapping[str, Any], needs: Iterable[str] = ()
) -> Group:
    strange = [name for name in given if name not in takes]
    if len(strange) > MOST_STRANGE or any(not name or name.startswith(":") for name in strange):
        raise Unshown(f"{places[0]}: there are names in it that no form can show.")
    group = Group(path, title, places, None, "", [])
    for place, name in enumerate((*takes, *strange)):
        schema = takes.get(name)
        one = _field(f"{path}.{name}", name, f"{group.id}-{place}", schema if schema is not None else {}, given.get(name), name in needs)
        if name not in takes:
            one.hint, one.faults = "JSON; leave it empty to take it out", [UNKNOWN]
        elif name in given:
            one.faults = [schema_words(error) for error in Draft202012Validator(schema or {}).iter_errors(given[name])][:3]
        elif name in needs:
            one.faults = [MISSING]
        group.fields.append(one)
    return group


def _field(name: str, key: str, id_: str, schema: Mapping[str, Any], value: Any, is_needed: bool) -> Field:
    kind = kind_of(schema)
    choices: tuple[tuple[str, str], ...] = ()
    shown = shown_value(kind, value)
    if kind == "choice":
        options = [shown_value(kind, option) for option in schema.get("enum", (True, False))]
        choices = tuple((option, option.replace("_", " ")) for option in ("", *options))
        if shown not in ("", *options):
            choices = (*choices, (shown, shown))
    noun = NOUNS.get(key, key) if key in ("agent", "benchmark", "pool", "dataset", "over", "policy") else ""
    hint = HINTS.get(key) or hint_of(kind, schema)
    return Field(name, key, id_, key.replace("_", " ").replace("gpu", "GPU"), kind, shown, hint, choices, noun, is_needed)


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def _table(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name, {})
    if not isinstance(found, dict):
        raise Unshown(f"{name} is no object.")
    return found


def _is_table(given: Mapping[str, Any], name: str) -> bool:
    return isinstance(given.get(name, {}), dict)


def _rows(document: Mapping[str, Any], name: str, most: int) -> list[dict[str, Any]]:
    rows = document.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or len(rows) > most:
        raise Unshown(f"{name} is no list of at most {most} objects.")
    return rows


def _are_texts(rows: Any) -> bool:
    """What a row of one line each can hold; where nothing is named, rows can be added."""
    if rows is None:
        return True
    return (
        isinstance(rows, list)
        and 0 < len(rows) <= 2 * MAX_CHOICES
        and all(isinstance(row, str) and unprintable(row) is None for row in rows)
    )


def _are_inputs(rows: Any) -> bool:
    return (
        isinstance(rows, list)
        and len(rows) <= MAX_INPUTS
        and all(isinstance(row, dict) and len(row.keys() & INPUTS.keys()) == 1 for row in rows)
    )
