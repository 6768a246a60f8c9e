"""The editor of policies: the form and the JSON document side by side, either filling the other.

What was drawn last is remembered by its digests in the page, so that without a script too the side that was changed is the one that holds; where both
were, and say different things, a person says which.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms

from runs.forms.policy import read_json
from runs.policy.changes import lines_of
from runs.policy.document import BadPolicy, Policy, read_policy
from runs.policy.form import Part, Unshown, draw
from runs.policy.form_faults import place_faults
from runs.policy.form_read import is_form, read_form, with_row, without_row
from workspaces.text import UNSTORABLE, is_storable_json

BOTH = "The form and the document were both changed and say different things; choose which of them holds."
Look = Callable[[Policy], Iterable[str]]  # what only the workspace can say of a document that was taken


@dataclass(slots=True)
class Editor:
    """`text` is the document as it stands, `parts` the form; `drawn` and `drawn_text` their digests. `faults` are about nothing that the form shows,
    `unshown` says why there is no form. `is_redrawn`: the form has other fields than the page that was sent; `is_text_kept`: the text is as it was
    sent, so nobody's cursor is moved."""

    text: str
    parts: list[Part]
    drawn: str = ""
    drawn_text: str = ""
    faults: list[str] = field(default_factory=list)
    unshown: str = ""
    is_conflict: bool = False
    is_redrawn: bool = True
    is_text_kept: bool = False
    focus: str = ""


def opened(document: Any, look: Look) -> Editor:
    return _drawn(document, "\n".join(lines_of(document)), look)


def edited(given: Mapping[str, str], look: Look) -> Editor:
    """The editor after somebody changed one side, added or removed a row, or said which side holds (`fill`: form or document)."""
    text = given.get("document", "").replace("\r\n", "\n")
    if not is_form(given):
        return _from_text(text, look)
    filled = read_form(given)
    is_form_changed = digest(filled) != given.get("drawn", "")
    is_text_changed = digest(text) != given.get("drawn_text", "")
    fill = given.get("fill", "")
    if is_form_changed and is_text_changed and fill not in ("form", "document") and _reads_otherwise(text, filled):
        editor = _drawn(filled, text, look)
        editor.faults.insert(0, BOTH)
        editor.is_conflict, editor.is_text_kept = True, True
        editor.drawn = editor.drawn_text = ""  # both stay changed until somebody chooses
        return editor
    if fill == "document" or (fill != "form" and is_text_changed and not is_form_changed):
        editor = _from_text(text, look)
        document = _read(text)
        if document is None or not (given.get("add") or given.get("remove")) or editor.unshown:
            return editor
        filled = document
    document = filled
    if given.get("add"):
        document = with_row(document, given["add"])
    elif given.get("remove"):
        document = without_row(document, given["remove"])
    shown = text if not is_form_changed and document is filled and fill != "form" else "\n".join(lines_of(document))
    editor = _drawn(document, shown, look)
    editor.is_redrawn = bool(given.get("add") or given.get("remove") or fill) or _names(editor) != _sent(given)
    if given.get("add"):
        rows = next((part.groups for part in editor.parts if part.name == given["add"]), [])
        editor.focus = rows[-1].all[0].id if rows else ""
    return editor


def digest(value: Any) -> str:
    """Of a text, or of a document whatever the order of its names."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _from_text(text: str, look: Look) -> Editor:
    try:
        document = read_json(text)
    except forms.ValidationError as error:
        return Editor(
            text, [], faults=list(error.messages), unshown="The form comes back once the document can be read.", is_text_kept=True
        )
    editor = _drawn(document, text, look)
    editor.is_text_kept = True
    return editor


def _drawn(document: Any, text: str, look: Look) -> Editor:
    faults = _faults(document, look)
    try:
        parts = draw(document)
    except Unshown as fault:
        return Editor(text, [], faults=faults, unshown=f"{fault} The document beside can still be changed.")
    editor = Editor(text, parts, faults=[], drawn_text=digest(text))
    editor.faults = _place_expressions(parts, place_faults(parts, faults))
    editor.drawn = digest(read_form(_as_filled(parts)))
    return editor


def _faults(document: Any, look: Look) -> list[str]:
    if not is_storable_json(document):
        return [f"It holds {UNSTORABLE}, or a number that is none of JSON."]
    try:
        read = read_policy(document)
    except BadPolicy as fault:
        return list(fault.faults)
    return list(look(read))


def _place_expressions(parts: list[Part], faults: list[str]) -> list[str]:
    """Faults of expressions are headed by the expression itself."""
    fields = [one for part in parts for group in part.groups for one in group.fields if one.key == "expression"]
    left = []
    for fault in faults:
        about = next((one for one in fields if fault.startswith(f"{one.value[:60]}: ")), None)
        if about is None:
            left.append(fault)
        else:
            about.faults.append(fault.removeprefix(f"{about.value[:60]}: "))
    return left


def _as_filled(parts: list[Part]) -> dict[str, str]:
    """What a browser would send of a form that nobody has touched."""
    groups = [group for part in parts for group in part.groups]
    sent = {one.name: one.value for group in groups for one in group.all}
    return sent | {f"{group.path}.:was": group.was for group in groups if group.head}


def _names(editor: Editor) -> set[str]:
    return _sent(_as_filled(editor.parts))


def _sent(given: Mapping[str, str]) -> set[str]:
    """The same of what was sent: its names, and what each group was when it was drawn."""
    paths = ("trigger.", "conditions.", "gate.", "action.", "choices.", "input.", "choose.", "memory.", "limits.")
    return {f"{name}={given[name]}" if name.endswith(":was") else name for name in given if name.startswith(paths)}


def _read(text: str) -> dict[str, Any] | None:
    try:
        return read_json(text)
    except forms.ValidationError:
        return None


def _reads_otherwise(text: str, filled: dict[str, Any]) -> bool:
    document = _read(text)
    return document is None or digest(document) != digest(filled)
