"""Take typed values out of JSON that a run has written; MalformedError names the field and what it should be."""

import math

MAX_INTEGER = 2**63 - 1
LAST_MOMENT = 253_402_300_800.0  # the end of the year 9999


class MalformedError(Exception):
    """What a run wrote is not what the contract says; the message is for people."""


def text(found: dict[str, object], name: str, *, least: int = 1, most: int = 65_536) -> str:
    """A text of so many characters, without NUL and lone surrogates."""
    value = found.get(name)
    if not isinstance(value, str) or not least <= len(value) <= most:
        raise MalformedError(f"{name} is not text of {least} to {most} characters")
    check_text(value)
    return value


def optional_text(found: dict[str, object], name: str, *, most: int = 65_536) -> str:
    """A text, empty where it is left out or null."""
    return "" if found.get(name) is None else text(found, name, least=0, most=most)


def integer(found: dict[str, object], name: str, *, least: int = 0) -> int:
    """A whole number of 64 bits from `least` on; a boolean is none."""
    value = found.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_INTEGER:
        raise MalformedError(f"{name} is not an integer from {least} to {MAX_INTEGER}")
    return value


def optional_integer(found: dict[str, object], name: str) -> int | None:
    return None if found.get(name) is None else integer(found, name)


def number(found: dict[str, object], name: str, *, least: float = -math.inf) -> float:
    """A finite number from `least` on; a boolean is none."""
    value = found.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedError(f"{name} is not a number")
    try:
        result = float(value)
    except OverflowError as error:
        raise MalformedError(f"{name} is too large") from error
    if not math.isfinite(result) or result < least:
        raise MalformedError(f"{name} is not a finite number" + ("" if least == -math.inf else f" from {least:g} on"))
    return result


def optional_number(found: dict[str, object], name: str, *, least: float = -math.inf) -> float | None:
    return None if found.get(name) is None else number(found, name, least=least)


def moment(found: dict[str, object], name: str) -> float | None:
    """Seconds UTC within the years that a database can hold; None where left out."""
    value = optional_number(found, name, least=0)
    if value is not None and value >= LAST_MOMENT:
        raise MalformedError(f"{name} is not a time in seconds")
    return value


def mapping(found: dict[str, object], name: str) -> dict[str, object]:
    """An object, empty where left out."""
    value = found.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MalformedError(f"{name} is not an object")
    return value


def check_text(value: object) -> None:
    """MalformedError where a text anywhere in `value` has NUL or a lone surrogate, which no database column takes."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo += one.keys()
            todo += one.values()
        elif isinstance(one, list):
            todo += one
        elif isinstance(one, str) and ("\0" in one or any("\ud800" <= character <= "\udfff" for character in one)):
            raise MalformedError("a text has NUL or half a surrogate pair in it")
