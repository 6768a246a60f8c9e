"""What a declaration file is made of: faults, nodes that know their line, and the bounds within which a file is read at all."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from workspaces.text import unprintable

MAX_BYTES = 1_048_576
MAX_DEPTH = 8
MAX_NODES = 10_000


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a declaration: `path` such as `budgets.gpu_hours_per_week` or `datasets[1]`, line counted from 1 where known."""

    path: str
    reason: str
    line: int | None = None

    def __str__(self) -> str:
        where = f"line {self.line}, " if self.line is not None else ""
        return f"{where}{self.path or 'the file'}: {self.reason}"


class DeclarationError(ValueError):
    """A declaration that cannot be used. `faults` holds everything that was found, in the order of the file."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Node:
    """A value and the line it begins on; the value of a key carries the key's line."""

    value: "bool | Decimal | str | tuple[Node, ...] | dict[str, Node] | None"
    line: int


def shown(text: str, limit: int = 60) -> str:
    """`text` for a message: cut at `limit` characters, what does not print written as an escape."""
    cut = text if len(text) <= limit else text[:limit] + "…"
    return "".join(char if unprintable(char) is None else char.encode("unicode_escape").decode("ascii") for char in cut)


def stop(reason: str, line: int | None = None, path: str = "") -> DeclarationError:
    """The error of a text that cannot be read any further."""
    return DeclarationError((Fault(path, reason, line),))


def decoded(content: bytes | str) -> str:
    try:
        raw = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError as exc:
        raise stop(f"character {exc.start + 1} is half of a surrogate pair, which is no text") from exc
    if len(raw) > MAX_BYTES:
        raise stop(f"has {len(raw):,} bytes; at most {MAX_BYTES:,} are read")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise stop(f"is not UTF-8: byte {exc.start + 1} does not belong there") from exc
    if "\x00" in text:
        raise stop("holds a NUL character", text.count("\n", 0, text.index("\x00")) + 1)
    if not text.strip():
        raise stop("is empty")
    return text


class Reader:
    """Counts what was read and keeps the keys that stand twice; the readers of JSON and YAML build on it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.faults: list[Fault] = []
        self.nodes = 0

    def count(self, depth: int, line: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise stop(f"has more than {MAX_NODES:,} values", line)
        if depth > MAX_DEPTH:
            raise stop(f"is nested deeper than {MAX_DEPTH} levels", line)

    def put(self, table: dict[str, Node], key: str, node: Node) -> None:
        if key in table:
            self.faults.append(Fault(shown(key), f"stands twice, first on line {table[key].line}", node.line))
        else:
            table[key] = node


def number(digits: str) -> Decimal:
    """Exactly the number written; one whose exponent no Decimal holds becomes NaN, which every field refuses."""
    try:
        return Decimal(digits)
    except InvalidOperation:
        return Decimal("nan")
