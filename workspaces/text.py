"""Which text can be kept: PostgreSQL holds no NUL, and UTF-8 no half of a surrogate pair. Pure."""

import math

UNSTORABLE = "a character that cannot be kept (NUL or half a surrogate pair)"  # how every refusal of it says what it is


def is_storable(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


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
