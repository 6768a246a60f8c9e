"""What a search text may mean, and where it stands in what was found. Pure."""

import re
import uuid
from dataclasses import dataclass

from workspaces import ids
from workspaces.text import UNSTORABLE, is_storable

LONGEST = 200
_NUMBER = re.compile(r"#?([0-9]{1,9})")
_TAIL = re.compile(r"(?:[a-z]+_)?([0-9a-f]{8,12})")
_HASH = re.compile(r"[0-9a-f]{6,64}")


class Unsearchable(ValueError):
    """Nothing can be called that; the message is a sentence for whoever asked."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A search text with everything that it may mean besides a part of a name."""

    text: str
    number: int | None = None  # `#12`, `12`
    key: uuid.UUID | None = None  # a whole id, with or without its prefix
    tail: str = ""  # the last digits of an id, as pages show it: `run_5e8c41b2`
    sha256: str = ""  # the first digits of a hash


def read(text: str) -> Wanted:
    """What `text` asks for. Raises Unsearchable where it is too long, or holds what no name can hold."""
    asked = text.strip()
    if len(asked) > LONGEST:
        raise Unsearchable(f"A search takes up to {LONGEST} characters; this has {len(asked):,}.")
    if not is_storable(asked):
        raise Unsearchable(f"Nothing here is called that: it holds {UNSTORABLE}.")
    number, tail = _NUMBER.fullmatch(asked), _TAIL.fullmatch(asked.lower())
    return Wanted(
        text=asked,
        number=int(number[1]) if number else None,
        key=ids.as_uuid(asked.rpartition("_")[2]),
        tail=tail[1] if tail else "",
        sha256=asked.lower() if _HASH.fullmatch(asked.lower()) else "",
    )


def split(shown: str, text: str) -> tuple[str, str, str]:
    """`shown` before, at and after the first place where `text` stands in it, upper and lower case taken as one; all before where it does not."""
    found = re.search(re.escape(text), shown, re.IGNORECASE) if text else None
    if found is None:
        return shown, "", ""
    return shown[: found.start()], found[0], shown[found.end() :]
