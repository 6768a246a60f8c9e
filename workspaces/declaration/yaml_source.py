"""YAML as nodes, read from the parser's events: nothing in the file is ever constructed.

Anchors, aliases, tags and second documents are refused, so a small file cannot unfold into a large one. Plain words follow YAML 1.2:
only `true`, `false`, `null`, `~` and numbers are no text, so that a name such as `on`, `no` or `2026-05-01` stays a name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import yaml

from workspaces.declaration.source import Fault, Node, Reader, number, shown, stop

_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_NOT_A_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# libyaml's parser is some thirty times faster than the one in Python; both give the same events.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YAMLReader(Reader):
    """The document as one walk over the parser's events; a container waits on the stack until its end event."""

    def read(self) -> tuple[Node, list[Fault]]:
        stack: list[_Open] = []
        root: Node | None = None
        try:
            for event in yaml.parse(self.text, Loader=_LOADER):
                line = event.start_mark.line + 1 if event.start_mark is not None else 0
                done: Node | None = None
                if isinstance(event, yaml.NodeEvent):
                    self.refuse_reference(event, line)
                    self.count(len(stack) + 1, line)
                match event:
                    case yaml.DocumentStartEvent() if root is not None:
                        raise stop("holds a second document", line)
                    case yaml.MappingStartEvent():
                        stack.append(_Open({}, None, line))
                    case yaml.SequenceStartEvent():
                        stack.append(_Open(None, [], line))
                    case yaml.ScalarEvent():
                        done = Node(_plain(event.value) if event.implicit[0] else event.value, line)
                    case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                        done = stack.pop().node()
                if done is not None and not stack:
                    root = done
                elif done is not None:
                    self.place(stack[-1], done, event)
        except yaml.YAMLError as exc:
            mark = getattr(exc, "problem_mark", None)
            what = getattr(exc, "problem", None) or getattr(exc, "reason", None) or "it cannot be read"
            raise stop(f"is not YAML: {what}", mark.line + 1 if mark is not None else None) from exc
        if root is None:
            raise stop("is empty")
        return root, self.faults

    def refuse_reference(self, event: yaml.NodeEvent, line: int) -> None:
        if event.anchor is not None:
            raise stop(f"uses the anchor or alias {shown(event.anchor)}; write the value out where it is needed", line)
        tag: str | None = getattr(event, "tag", None)
        if tag is not None:
            raise stop(f"uses the tag {shown(tag)}; tags are not read", line)

    def place(self, parent: "_Open", done: Node, event: yaml.Event) -> None:
        if parent.items is not None:
            parent.items.append(done)
        elif parent.table is not None and parent.key is None:
            if not isinstance(event, yaml.ScalarEvent):
                raise stop("uses a list or mapping as a key", done.line)
            parent.key, parent.key_line = event.value, done.line
        elif parent.table is not None and parent.key is not None:
            self.put(parent.table, parent.key, Node(done.value, parent.key_line))
            parent.key = None


@dataclass(slots=True)
class _Open:
    table: dict[str, Node] | None
    items: list[Node] | None
    line: int
    key: str | None = None
    key_line: int = 0

    def node(self) -> Node:
        return Node(self.table if self.table is not None else tuple(self.items or ()), self.line)


def _plain(word: str) -> bool | Decimal | str | None:
    if word in _WORDS:
        return _WORDS[word]
    if _NOT_A_NUMBER.fullmatch(word):
        return Decimal("nan")
    return number(word) if _NUMBER.fullmatch(word) else word
