"""What is wrong with a document, put beside the field that it is about. Pure."""

import json
import re
from collections.abc import Iterable

from runs.policy.form import MISSING, UNKNOWN, Field, Group, Part


def place_faults(parts: list[Part], faults: Iterable[str]) -> list[str]:
    """Put each sentence of `read_policy` or `name_faults` beside what it is about; those that are about nothing in particular are given back."""
    left = []
    for fault in faults:
        heading, _, words = fault.partition(": ")
        if not any(_placed(group, heading, words) for part in parts for group in part.groups) and not _on_part(parts, heading, words):
            left.append(fault)
    return left


def _placed(group: Group, heading: str, words: str) -> bool:
    for place in group.places:
        if heading == place:
            _on_group(group, words)
            return True
        if heading.startswith(f"{place}, "):
            key = heading.removeprefix(f"{place}, ").partition(",")[0]
            about = next((one for one in group.all if one.key == key), None)
            if about is not None:
                about.faults += [] if words in about.faults else [words]
                return True
    return False


def _on_group(group: Group, words: str) -> None:
    """Beside the field that the sentence names, else under the group; what is not known here is said by its own field already."""
    gone = re.fullmatch(r"(\w+) is missing\.", words)
    if any(one.faults == [UNKNOWN] and words.startswith(f"{one.key[:64]!r} is not known") for one in group.fields):
        return
    about = next((one for one in group.all if (gone and one.key == gone[1]) or _names(one, words)), None)
    sentence = MISSING if gone and about is not None else words[:1].upper() + words[1:]
    faults = about.faults if about is not None else group.faults
    faults += [] if sentence in faults else [sentence]


def _names(one: Field, words: str) -> bool:
    noun = one.noun or ("check" if one.key == "check" else "")
    return bool(noun) and f"there is no {noun} {one.value[:64]!r}" in words


def _on_row(part: Part, words: str) -> bool:
    """Beside the rows of one text each that the sentence begins with."""
    cut, is_cut, _ = words.partition("… ")  # a long value is cut short in the sentence
    rows = [
        one
        for group in part.groups
        for one in group.fields
        if words.startswith((f"{one.value!r} ", f"{json.dumps(one.value)} ", f"{json.dumps(one.value, ensure_ascii=False)} "))
        or (is_cut and len(cut) > 40 and json.dumps(one.value, ensure_ascii=False).startswith(cut))
    ]
    for one in rows:
        one.faults.append(words)
    return bool(rows)


def _on_part(parts: list[Part], heading: str, words: str) -> bool:
    choices = next((part for part in parts if part.name == "choices"), None)
    if choices is not None and heading == "action ask, choices":
        if not _on_row(choices, words):
            choices.faults.append(words[:1].upper() + words[1:])
        return True
    name = {"rule": "choose"}.get(heading.split(" ")[0].rstrip(","), heading.split(" ")[0].rstrip(","))
    part = next((part for part in parts if part.name == name), None)
    if part is None:
        return False
    part.faults.append(words[:1].upper() + words[1:])
    return True
