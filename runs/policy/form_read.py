"""What was filled in on the form of a policy, as a document; and rows that come and go. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from runs.policy.checks import CHECKS
from runs.policy.choosing import RULES
from runs.policy.document import ACTIONS, INPUTS, LIMITS, MAX_CHECKS, MAX_CHOICES, MAX_INPUTS, TRIGGERS
from runs.policy.form import GROUPS, HEAD, HEADS, LISTED, NAME, TEXT, WAS
from runs.policy.form_values import kind_of, taken_value
from runs.policy.memory import PARAMETERS as MEMORY

INDEX = re.compile(r"[0-9]{1,2}")
Filled = dict[str, dict[str, str]]  # path of a group -> name -> what was filled in


def is_form(given: Mapping[str, str]) -> bool:
    return f"trigger.{HEAD}" in given


def read_form(given: Mapping[str, str]) -> dict[str, Any]:
    """The document that a filled-in form says. What a field cannot be read as stays the text that it is, and `read_policy` says what is wrong."""
    filled = _filled(given)
    document: dict[str, Any] = {"trigger": _entry("trigger", filled.get("trigger", {}), TRIGGERS)}
    takes = {check.name: check.parameters for check in CHECKS.values()}
    for part in ("conditions", "gate"):
        rows = [_entry(part, filled[path], takes) for path in _paths(filled, part)]
        document |= {part: rows} if rows else {}
    document["action"] = _action_entry(filled)
    limits = _values(filled.get("limits", {}), LIMITS)
    return document | ({"limits": limits} if limits else {})


def _action_entry(filled: Filled) -> dict[str, Any]:
    plain = {name: takes for name, (_, takes) in ACTIONS.items()}
    action = _entry("action", filled.get("action", {}), plain)
    allowed = plain.get(action["do"], {})
    if "inputs" in allowed and "inputs" not in action:
        rows = []
        for path in _paths(filled, "input"):
            row = filled[path]
            kind = row.get(HEAD, "")
            known = INPUTS.get(kind, {})
            kept = row if row.get(WAS, kind) == kind else {name: text for name, text in row.items() if name in known}
            rows.append({kind: row.get(NAME, "").strip(), **_values(kept, known)})
        action |= {"inputs": rows} if rows else {}
    if "choices" in allowed and "choices" not in action:
        texts = [filled[path].get(TEXT, "") for path in _paths(filled, "choices")]
        action |= {"choices": texts} if texts else {}
    if "choose" in allowed and "choose" not in action:
        chosen = _entry("choose", filled.get("choose", {}), {name: rule.parameters for name, rule in RULES.items()})
        action |= {"choose": chosen} if chosen != {"rule": ""} else {}
    if "memory" in allowed and "memory" not in action:
        memory = _values(filled.get("memory", {}), MEMORY)
        action |= {"memory": memory} if memory else {}
    return action


def _filled(given: Mapping[str, str]) -> Filled:
    found: Filled = {}
    for name, text in given.items():
        path, _, rest = name.partition(".")
        if path in LISTED:
            place, _, rest = rest.partition(".")
            if not INDEX.fullmatch(place):
                continue
            path = f"{path}.{int(place)}"
        if rest and path.partition(".")[0] in GROUPS:
            found.setdefault(path, {})[rest] = text.replace("\r\n", "\n")
    return found


def _paths(filled: Filled, part: str) -> list[str]:
    return sorted((path for path in filled if path.startswith(f"{part}.")), key=lambda path: int(path.partition(".")[2]))


def _entry(part: str, filled: Mapping[str, str], takes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A group that is something by name. Has that changed since it was drawn, only what the new one takes stays."""
    is_ = filled.get(HEAD, "")
    known = takes.get(is_, {})
    kept = filled if filled.get(WAS, is_) == is_ else {name: text for name, text in filled.items() if name in known}
    return {HEADS[part]: is_, **_values(kept, known)}


def _values(filled: Mapping[str, str], takes: Mapping[str, Any]) -> dict[str, Any]:
    written = {name: text for name, text in filled.items() if text.strip() and not name.startswith(":")}
    return {name: taken_value(kind_of(takes.get(name) or {}), text, takes.get(name) or {}) for name, text in written.items()}


def with_row(document: dict[str, Any], part: str) -> dict[str, Any]:
    """The same with one more row of a part; the same where there is no room for one."""
    if part == "choices":
        texts = document["action"].get("choices", [])
        if document["action"].get("do") != "ask" or not isinstance(texts, list) or len(texts) >= MAX_CHOICES:
            return document
        return document | {"action": document["action"] | {"choices": [*(texts or [""]), ""]}}  # one answer alone is no choice
    if part == "input":
        inputs = document["action"].get("inputs", [])
        room = [*inputs, {"dataset": ""}] if len(inputs) < MAX_INPUTS else inputs
        return document | {"action": document["action"] | {"inputs": room}}
    rows = document.get(part, []) if part in ("conditions", "gate") else None
    return document if rows is None or len(rows) >= MAX_CHECKS else document | {part: [*rows, {"check": ""}]}


def without_row(document: dict[str, Any], path: str) -> dict[str, Any]:
    part, _, place = path.partition(".")
    if part not in LISTED or not INDEX.fullmatch(place):
        return document
    of_action = {"input": "inputs", "choices": "choices"}
    holder, name = (document["action"], of_action[part]) if part in of_action else (document, part)
    rows = [row for at, row in enumerate(holder.get(name, [])) if at != int(place)]
    left = {key: value for key, value in holder.items() if key != name} | ({name: rows} if rows else {})
    return document | {"action": left} if part in of_action else left
