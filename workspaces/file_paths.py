"""Paths of files inside a dataset or a bundle, as people and archives write them: relative, plain, the same on every machine. Pure."""

import unicodedata
from collections.abc import Iterable

from workspaces.text import unprintable

MAX_LENGTH = 1024
MAX_PART_BYTES = 255
MAX_DEPTH = 16
# Whatever ending they have (https://learn.microsoft.com/windows/win32/fileio/naming-a-file).
DEVICES = frozenset(
    {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", *(f"{port}{number}" for port in ("COM", "LPT") for number in "0123456789¹²³")}
)


class BadPath(ValueError):  # an answer for people
    """A path that no file may have; the message is a sentence."""


def clean_path(text: str) -> str:
    """The path in Unicode's composed form (NFC). Raises BadPath for one that leaves its folder, or that some machine reads differently or cannot
    hold."""
    path = unicodedata.normalize("NFC", text)
    shown = shown_path(path)
    if not path:
        raise BadPath("A file needs a path.")
    if len(path) > MAX_LENGTH:
        raise BadPath(f"A path may have {MAX_LENGTH:,} characters; this one has {len(path):,}.")
    if unprintable(path) is not None:
        raise BadPath(f"{shown} holds a control character, half a surrogate pair or a mark that turns the direction of text.")
    if "\\" in path or path.startswith("/") or (len(path) > 1 and path[1] == ":"):
        raise BadPath(f"{shown} is not a relative path with / between its parts.")
    parts = path.split("/")
    if len(parts) > MAX_DEPTH:
        raise BadPath(f"{shown} lies {len(parts)} folders deep; {MAX_DEPTH} are allowed.")
    for part in parts:
        if part in ("", ".", ".."):
            raise BadPath(f"{shown} has an empty part, . or .. in it.")
        if not part.strip():
            raise BadPath(f"{shown} has a part of blanks alone in it, which nobody could find again.")
        if part[-1] in ". ":
            raise BadPath(f"{shown} has a part that ends in a dot or a blank, which Windows cuts off. Rename it.")
        if part.partition(".")[0].rstrip().upper() in DEVICES:
            raise BadPath(f"{shown} has a part that is the name of a device under Windows, such as CON, NUL or COM1. Rename it.")
        if len(part.encode()) > MAX_PART_BYTES:
            raise BadPath(f"A part of {shown} has more than {MAX_PART_BYTES} bytes.")
    return path


def refuse_collisions(paths: Iterable[str]) -> None:
    """Raise BadPath where two paths are one file on some machine: equal but for case, or one the folder of the other."""
    seen: dict[str, str] = {}
    for path in paths:
        key = path.casefold()
        if key in seen:
            raise BadPath(f"{shown_path(path)} and {shown_path(seen[key])} are the same file where upper and lower case are one.")
        seen[key] = path
    for key, path in seen.items():
        parts = key.split("/")
        for length in range(1, len(parts)):
            if (folder := "/".join(parts[:length])) in seen:
                raise BadPath(f"{shown_path(seen[folder])} is a file and the folder of {shown_path(path)}.")


def shown_path(text: str) -> str:
    """The path for a message: cut, what does not print written as an escape."""
    cut = text if len(text) <= 80 else text[:80] + "…"
    return "".join(character if unprintable(character) is None else character.encode("unicode_escape").decode() for character in cut)
