"""Which text can be kept: PostgreSQL holds no NUL, and UTF-8 no half of a surrogate pair; and which can be read as it stands. Pure."""

import math
import unicodedata

UNSTORABLE = "a character that cannot be kept (NUL or half a surrogate pair)"  # how every refusal of it says what it is


def is_storable(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def encodable(text: str) -> str:
    """The text with each half of a surrogate pair as its escape (JSON may hold one, no page can be sent with it)."""
    return text.encode("utf-8", "backslashreplace").decode()


# Unicode's explicit direction marks could make a name read as another one (UAX #9, section 2).
OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def unprintable(text: str, *, lines: bool = False) -> str | None:
    """The first character that is a control character, half a surrogate pair, a line separator or a direction override."""
    kept = "\n\r\t" if lines else ""
    bad = (char for char in text if char not in kept and (unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} or char in OVERRIDES))
    return None if text.isprintable() else next(bad, None)


def is_name(text: str) -> bool:
    """Can people call something so? Nothing in it cannot be shown or turns the direction of text, and there is something to see. The joiners and
    blanks that names of many languages are written with are no fault, as str.isprintable() has it."""
    return unprintable(text) is None and any(character.isprintable() and not character.isspace() for character in text)


def unreadable(text: str, *, lines: bool = False) -> str:
    """What to say of text that neither page nor terminal could show as it stands; empty where there is nothing to say. Marks that turn the direction
    of text are shown within bounds of their own (`<bdi>`), as are languages that need them."""
    strange = unprintable("".join(character for character in text if character not in OVERRIDES), lines=lines)
    return f"This holds the character U+{ord(strange):04X}, which cannot be shown." if strange is not None else ""


def is_finite(value: float) -> bool:
    """Is it a number that can be reckoned with? JSON has whole numbers that fit no float; to Python, asking whether those are finite is an error."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def is_storable_json(value: object) -> bool:
    """Can the value be kept as JSON: is all text within it storable, and every number one that JSON has a word for?"""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                if not is_storable(text):
                    return False
            case float() as number:
                if not math.isfinite(number):
                    return False
            case dict() as table:
                waiting += [*table.keys(), *table.values()]
            case list() | tuple() as items:
                waiting += items
    return True
