"""Typed values out of nodes. Each reader returns the value, or None after it has noted what is wrong, so that all faults come at once."""

import unicodedata
from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from fractions import Fraction

from django.core.exceptions import ValidationError

from workspaces import ids
from workspaces.declaration.source import Fault, Node, shown
from workspaces.text import unprintable
from workspaces.windows import zone_names

MAX_LIST = 200
MAX_AMOUNT = 2**63 - 1
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_KINDS = {bool: "true or false", Decimal: "a number", str: "text", tuple: "a list", dict: "a mapping", type(None): "nothing"}

Noted = tuple[str, int]
"""A name and the line on which it stands."""


class Values:
    """The readers of one file; `faults` grows while they run."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults

    def fault(self, path: str, reason: str, line: int | None) -> None:
        self.faults.append(Fault(path, reason, line))

    def wrong_type(self, path: str, expected: str, node: Node) -> None:
        quotes = "; put it in quotes if it is a name" if isinstance(node.value, bool | Decimal) and expected == "text" else ""
        self.fault(path, f"must be {expected}, not {_KINDS[type(node.value)]}{quotes}", node.line)

    def text(self, path: str, node: Node, limit: int, *, lines: bool = False) -> str | None:
        """Text of 1 to `limit` characters without control characters; line breaks and tabs only where `lines`."""
        if not isinstance(node.value, str):
            self.wrong_type(path, "text", node)
            return None
        value = unicodedata.normalize("NFC", node.value.strip()) if len(node.value) <= 4 * limit else node.value
        if not value:
            self.fault(path, "is empty", node.line)
        elif len(value) > limit:
            self.fault(path, f"has {len(value):,} characters; at most {limit} are kept", node.line)
        elif (strange := unprintable(value, lines=lines)) is not None:
            self.fault(path, f"holds the character U+{ord(strange):04X}, which cannot be shown", node.line)
        else:
            return value
        return None

    def choice(self, path: str, node: Node, choices: Iterable[str]) -> str | None:
        """One of `choices`; a space or hyphen stands for an underscore, letters may be large."""
        value = self.text(path, node, 100)
        if value is None:
            return None
        spelled = value.lower().replace(" ", "_").replace("-", "_")
        if spelled not in choices:
            self.fault(path, f"is {shown(value)}; it must be one of {', '.join(choices)}", node.line)
            return None
        return spelled

    def slug(self, path: str, node: Node) -> str | None:
        value = self.text(path, node, 64)
        if value is None:
            return None
        try:
            ids.validate_slug(value)
        except ValidationError as exc:
            self.fault(path, f"is {shown(value)}. {exc.messages[0]}", node.line)
            return None
        return value

    def slugs(self, path: str, node: Node) -> tuple[Noted, ...]:
        """Slugs with their lines; two that differ only in - and _ are one name (decision 7) and refused."""
        return self._names(path, node, self.slug, ids.same_name)

    def usernames(self, path: str, node: Node) -> tuple[Noted, ...]:
        return self._names(path, node, lambda where, item: self.text(where, item, 150), str)

    def _names(self, path: str, node: Node, read: Callable[[str, Node], str | None], sameness: Callable[[str], str]) -> tuple[Noted, ...]:
        """A list of names, or text with commas between them. Nothing after the key is an empty list."""
        if node.value is None or (isinstance(node.value, str) and not node.value.strip()):
            return ()
        if isinstance(node.value, str):
            items = tuple(Node(part, node.line) for part in node.value.split(",", MAX_LIST))
        elif isinstance(node.value, tuple):
            items = node.value
        else:
            self.wrong_type(path, "a list of names, or names with commas between them", node)
            return ()
        if len(items) > MAX_LIST:
            self.fault(path, f"lists more than {MAX_LIST} names", node.line)
            return ()
        found: dict[str, Noted] = {}
        for index, item in enumerate(items):
            name = read(f"{path}[{index}]", item)
            if name is None:
                continue
            if sameness(name) in found:
                self.fault(f"{path}[{index}]", f"{name} is the same name as {found[sameness(name)][0]} before it", item.line)
            else:
                found[sameness(name)] = (name, item.line)
        return tuple(found.values())

    def number(self, path: str, node: Node) -> Decimal | None:
        """A finite number, exact as written."""
        value = node.value
        if not isinstance(value, Decimal):
            self.wrong_type(path, "a number", node)
        elif not value.is_finite():
            self.fault(path, "must be a finite number", node.line)
        else:
            return value
        return None

    def amount(self, path: str, node: Node, per_unit: int, smallest: str) -> int | None:
        """A quantity of at least 0 as a whole number of `smallest`, of which one unit as written has `per_unit`; never rounded."""
        value = self.number(path, node)
        if value is None:
            return None
        most = MAX_AMOUNT // per_unit
        if value < 0:
            self.fault(path, f"is {shown(str(value))}; it must be 0 or more", node.line)
        elif value > most:
            self.fault(path, f"is larger than {most:,}, the most that can be kept", node.line)
        elif (exact := _fraction(value)) is None or (exact * per_unit).denominator != 1:
            self.fault(path, f"is not a whole number of {smallest}", node.line)
        else:
            return (exact * per_unit).numerator
        return None

    def zone(self, path: str, node: Node) -> str | None:
        value = self.text(path, node, 64)
        if value is not None and value not in zone_names():
            self.fault(
                path, f"is {shown(value)}, which is no zone of the IANA time zone database; write one such as Europe/Berlin", node.line
            )
            return None
        return value

    def week_start(self, path: str, node: Node) -> int | None:
        """The ISO weekday, 1 for Monday to 7 for Sunday, from its name."""
        value = self.choice(path, node, WEEKDAYS)
        return None if value is None else WEEKDAYS.index(value) + 1

    def day(self, path: str, node: Node) -> date | None:
        value = self.text(path, node, 40)
        if value is None:
            return None
        try:
            if len(value) != 10:
                raise ValueError
            return date.fromisoformat(value)
        except ValueError:
            self.fault(path, f"is {shown(value)}; write a date as 2026-12-31", node.line)
            return None


def _fraction(value: Decimal) -> Fraction | None:
    """The exact fraction, or None where the number is written with more digits than any unit here can hold (and would cost time)."""
    if len(value.as_tuple().digits) > 40 or value.adjusted() < -40:
        return None if value else Fraction(0)
    return Fraction(value)
