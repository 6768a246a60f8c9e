"""Of which kind a file is, and which kinds can meet. Pure.

The rule: a file is read by its records, or is one record by nature, or is a container that is not read.

- Read by records: the endings of KINDS in reading.py. Records of a table that does not name its columns meet those of another such table only;
  beside records with names they are as good as not read.
- One record by nature is a picture, a recording of sound, or a film, where both its name and its first bytes say so: there is no table in it that
  could be taken out. It is compared with those of its kind, and with nothing else.
- Everything else (archives, packed files, databases, unknown endings) may hold any records in a form in which they meet nothing. Beside it no pair
  is clean: it is unknown until somebody uploads it in a form that is read, or rules.

A paper is what says something of the data that it lies beside: a README, a licence. The records of a pair are compared in it as in any text, but a
version that shares nothing else with a holdout holds no file of it.
"""

import re
from collections.abc import Collection, Iterable
from typing import Protocol

UNREAD, NAMELESS = "file", "rows"
NAMED = frozenset({"table", "json", "document"})
_MEDIA: dict[str, tuple[str, tuple[bytes, ...], int]] = {  # kind, first bytes, and where they stand
    "png": ("picture", (b"\x89PNG\r\n\x1a\n",), 0),
    "jpg": ("picture", (b"\xff\xd8\xff",), 0),
    "jpeg": ("picture", (b"\xff\xd8\xff",), 0),
    "gif": ("picture", (b"GIF87a", b"GIF89a"), 0),
    "webp": ("picture", (b"WEBP",), 8),
    "tif": ("picture", (b"II*\x00", b"MM\x00*"), 0),
    "tiff": ("picture", (b"II*\x00", b"MM\x00*"), 0),
    "wav": ("sound", (b"WAVE",), 8),
    "flac": ("sound", (b"fLaC\x00",), 0),
    "ogg": ("sound", (b"OggS\x00",), 0),
    "mp3": ("sound", (b"ID3\x02", b"ID3\x03", b"ID3\x04", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"), 0),
    "mp4": ("film", (b"ftyp",), 4),
    "webm": ("film", (b"\x1aE\xdf\xa3",), 0),
}
MEDIA = frozenset(kind for kind, *_ in _MEDIA.values())
HEAD = 16  # bytes that `media_kind` looks at
# By the name alone, and so that PostgreSQL reads it alike; README.csv is a table that somebody called so.
PAPERS = (
    r"(^|/)((readme|licen[cs]es?|copying|notice|citation|changes|changelog|authors|contributing|datasheet)([-_][a-z0-9]+)?"
    r"(\.(md|txt|rst|html|pdf|cff|bib))?|\.git(attributes|ignore|keep))$"
)


class HasKind(Protocol):
    """A file of a version: where it stands, its kind, its records."""

    @property
    def path(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def count(self) -> int: ...


def is_paper(path: str) -> bool:
    """Does it by its name lie beside data and hold none?"""
    return re.search(PAPERS, path, re.IGNORECASE) is not None


def media_kind(ending: str, head: bytes) -> str:
    """picture, sound, film; or UNREAD where name and first bytes do not both say so."""
    kind, first, place = _MEDIA.get(ending, (UNREAD, (), 0))
    return kind if any(head[place:].startswith(each) for each in first) else UNREAD


def unmet(version: Collection[HasKind], holdout: Collection[HasKind]) -> tuple[list[str], list[str]]:
    """Paths of the files on each side whose records can meet none of the other side's, whatever they are."""
    return list(_unmet(version, holdout)), list(_unmet(holdout, version))


def _unmet(mine: Iterable[HasKind], others: Iterable[HasKind]) -> Iterable[str]:
    kinds = {other.kind for other in others if other.count}
    for part in mine:
        is_apart = part.kind == UNREAD or (part.kind in MEDIA and part.kind not in kinds) or (part.kind == NAMELESS and NAMED & kinds)
        if kinds and part.count and is_apart:
            yield part.path
