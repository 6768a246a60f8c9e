"""Whole numbers from an address."""

LARGEST = 2**62


def whole_number(text: str | None) -> int | None:
    """The number from 0 on that `text` spells in plain digits, or None."""
    if not text or not (text.isascii() and text.isdigit()) or len(text) > 19:
        return None
    number = int(text)
    return number if number <= LARGEST else None
