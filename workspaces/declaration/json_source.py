"""JSON of RFC 8259 as nodes. Containers are walked here, because the standard reader keeps no lines; single values are left to it."""

import bisect
import json
import re
from decimal import Decimal

from workspaces.declaration.source import Fault, Node, Reader, number, shown, stop

_SPACE = re.compile(r"[ \t\r\n]*")


class JSONReader(Reader):
    """Reads one JSON document; `read` raises DeclarationError where it is not JSON."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.values = json.JSONDecoder(parse_float=number, parse_int=number, parse_constant=lambda _word: Decimal("nan"))

    def read(self) -> tuple[Node, list[Fault]]:
        node, end = self.node(self.skip(0), 1)
        end = self.skip(end)
        if end < len(self.text):
            raise stop("has more text after the end of the JSON document", self.line(end))
        return node, self.faults

    def line(self, index: int) -> int:
        return bisect.bisect_right(self.starts, index)

    def skip(self, index: int) -> int:
        match = _SPACE.match(self.text, index)
        return match.end() if match else index

    def node(self, index: int, depth: int) -> tuple[Node, int]:
        line = self.line(index)
        self.count(depth, line)
        match self.text[index : index + 1]:
            case "{":
                return self.table(index, line, depth)
            case "[":
                return self.listing(index, line, depth)
        value, end = self.scalar(index, "a value")
        return Node(value, line), end

    def scalar(self, index: int, expected: str) -> tuple[bool | Decimal | str | None, int]:
        try:
            value, end = self.values.raw_decode(self.text, index)
        except json.JSONDecodeError as exc:
            found = f"{shown(self.text[index], 1)!r}" if index < len(self.text) else "the end"
            reason = (
                f"is not JSON: {expected} was expected, not {found}" if exc.pos == index else f"is not JSON: {exc.msg.removesuffix(' at')}"
            )
            raise stop(reason, exc.lineno) from exc
        return value, end

    def table(self, index: int, line: int, depth: int) -> tuple[Node, int]:
        table: dict[str, Node] = {}
        index = self.skip(index + 1)
        while self.text[index : index + 1] != "}":
            key_line = self.line(index)
            if self.text[index : index + 1] != '"':
                raise stop("is not JSON: a key in double quotes was expected", key_line)
            key, index = self.scalar(index, "a key")
            index = self.skip(index)
            if self.text[index : index + 1] != ":":
                raise stop(f"is not JSON: ':' was expected after the key {shown(str(key))}", self.line(index))
            node, index = self.node(self.skip(index + 1), depth + 1)
            self.put(table, str(key), Node(node.value, key_line))
            index = self.separator(index, "}")
        return Node(table, line), index + 1

    def listing(self, index: int, line: int, depth: int) -> tuple[Node, int]:
        items: list[Node] = []
        index = self.skip(index + 1)
        while self.text[index : index + 1] != "]":
            node, index = self.node(index, depth + 1)
            items.append(node)
            index = self.separator(index, "]")
        return Node(tuple(items), line), index + 1

    def separator(self, index: int, closing: str) -> int:
        index = self.skip(index)
        found = self.text[index : index + 1]
        if found == closing:
            return index
        if found != ",":
            raise stop(f"is not JSON: ',' or '{closing}' was expected", self.line(min(index, len(self.text))))
        index = self.skip(index + 1)
        if self.text[index : index + 1] == closing:
            raise stop(f"is not JSON: a value was expected after ',', not '{closing}'", self.line(index))
        return index
