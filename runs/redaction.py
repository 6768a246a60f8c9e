"""Find the values of a run's secrets in what it writes, however they are spelled, and blot them out. Pure.

What is blotted out keeps its length, and line ends stay where they are: an offset into a log, a line's number and a file's size hold whether it
is read while it is written or from the store; text in events and names keeps its count of characters. Found are the value as it is,
backwards, as base64 and base64url wherever it begins within them, as hex, percent-encoded, escaped for JSON and HTML, and as Python's literals
of text and bytes; each also wrapped over lines, and each longer line of a value of several lines. Not found are pieces of a value with other
text between them, and what a program makes of it that is none of these: compressed, encrypted, in another encoding. A run that means to give a
value away can.
"""

import base64
import bisect
import html
import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

LEAST_LINE = 16  # bytes of one line of a value that is looked for by itself
ARMOUR = b"-----"  # lines of a key that say only what it is
WRAPPED = 3  # a pattern with a line end of two bytes behind each of its own is no longer than so many times itself
PARTIAL_LINE = 8  # so much of a value at the end of a whole line may be its first line
# What percent-encoding leaves as it is, besides letters, digits and `_.-~`: Python's, none, JavaScript's encodeURIComponent and encodeURI.
UNQUOTED = ("/", "", "!'()*", "!'()*;/?:@&=+$,#")
# JSON that may stand in HTML, as Go writes it always, and with the capitals of Django's json_script.
JSON_FOR_HTML = tuple(str.maketrans({sign: form.format(ord(sign)) for sign in "&<>\u2028\u2029"}) for form in ("\\u{:04x}", "\\u{:04X}"))
# Quotes in HTML: left alone, as Python, as Jinja and Go, as Go's templates, as JavaScript's libraries write them.
HTML_ESCAPES = tuple(
    str.maketrans(signs)
    for signs in (
        {},
        {'"': "&quot;", "'": "&#x27;"},
        {'"': "&#34;", "'": "&#39;"},
        {'"': "&#34;", "'": "&#39;", "+": "&#43;"},
        {'"': "&quot;", "'": "&#39;"},
    )
)
_BREAKS = b"\r\n"
_BREAK = re.compile(rb"[\r\n]")
_CONTINUED = re.compile(rb"[\x80-\xbf]")
_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pattern:
    """Bytes that stand for a value. `before`, `after`: the base64 character beside them carries some of its bits as well."""

    name: str
    spelled: bytes = field(repr=False)
    before: bool = False
    after: bool = False


class Redactor:
    """Knows the values of one run. `overlap` is how many bytes around a place decide what is blotted out there."""

    def __init__(self, values: Mapping[str, str]) -> None:
        found = {pattern.spelled: pattern for name, value in sorted(values.items()) for pattern in _patterns(name, value)}
        self._patterns = sorted(found.values(), key=_longest_first)
        self.overlap = WRAPPED * max((len(pattern.spelled) + 2 for pattern in self._patterns), default=0)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def may_be_in(self, lines: bytes) -> bool:
        """Could a value stand in what these lines of JSON say? False is sure; escapes may hide anything."""
        return b"\\" in lines or bool(self._find(lines))

    def blot_out(self, content: bytes) -> bytes:
        """`content` with every value blotted out; of the same length, its line ends where they were."""
        found = self._find(content)
        if not found:
            return content
        blotted = bytearray(content)
        for start, end, name in found:
            _blot(blotted, start, end, name)
        return bytes(blotted)

    def blot_text(self, value: str) -> str:
        """The same for text, by whole characters: of as many characters as before, so that it fits wherever the value did."""
        content = value.encode(errors="surrogatepass")
        found = self._find(content)
        if not found:
            return value
        blotted = list(value)
        for start, end, name in found:
            # A value spelled backwards may begin and end within a character; the whole of it goes.
            first, behind = _characters(content[: start + 1]) - 1, _characters(content[:end])
            places = [place for place in range(first, behind) if value[place] not in "\r\n"]
            for place, sign in zip(places, _label(name, len(places)), strict=True):
                blotted[place] = sign
        return "".join(blotted)

    def blot_json(self, value: Any) -> Any:
        """A value of JSON with every text and every key in it blotted out."""
        match value:
            case str():
                return self.blot_text(value)
            case dict():
                return {self.blot_text(key): self.blot_json(item) for key, item in value.items()}
            case list() | tuple():
                return [self.blot_json(item) for item in value]
            case _:
                return value

    def blot_fields(self, value: T) -> T:
        """A dataclass with every text in its fields blotted out."""
        assert is_dataclass(value) and not isinstance(value, type)
        return replace(value, **{one.name: self.blot_json(getattr(value, one.name)) for one in fields(value)})

    def blot_stream(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Pieces of one file, blotted out also where a value lies across two of them; the same number of bytes."""
        if not self:
            yield from pieces
            return
        before, waiting = b"", b""
        for piece in pieces:
            waiting += piece
            if len(waiting) > self.overlap:
                window, end = before + waiting, len(waiting) - self.overlap
                yield self.blot_out(window)[len(before) : len(before) + end]
                before, waiting = (before + waiting[:end])[-self.overlap :], waiting[end:]
        if waiting:
            yield self.blot_out(before + waiting)[len(before) :]

    def withheld(self, content: bytes) -> int:
        """How many bytes at the end of a file that still grows may be the beginning of a value, and are not shown yet."""
        if not self:
            return 0
        tail = content[-self.overlap :]
        flat, breaks = _flatten(tail)
        least = PARTIAL_LINE if tail.endswith((b"\n", b"\r")) else 1
        longest = max((_beginning(flat, pattern, least) for pattern in self._patterns), default=0)
        return len(tail) - _place(max(0, len(flat) - longest), breaks) if longest else 0

    def _find(self, content: bytes) -> list[tuple[int, int, str]]:
        """Where values stand, without overlaps, in order."""
        if not self._patterns:
            return []
        flat, breaks = _flatten(content)
        found: list[tuple[int, int, str]] = []
        for pattern in self._patterns:
            at = flat.find(pattern.spelled)
            while at >= 0:
                start, end = at, at + len(pattern.spelled)
                start -= pattern.before and start > 0 and flat[start - 1] in _BASE64
                end += pattern.after and end < len(flat) and flat[end] in _BASE64
                found.append((start, end, pattern.name))
                at = flat.find(pattern.spelled, at + 1)
        return [(_place(start, breaks), _place(end - 1, breaks) + 1, name) for start, end, name in _merged(found)]


def _longest_first(pattern: Pattern) -> tuple[int, bytes]:
    return -len(pattern.spelled), pattern.spelled


# --- Spellings ----------------------------------------------------------------------------------------------------------------------------


def _patterns(name: str, value: str) -> Iterator[Pattern]:
    """Every spelling of a value, without line ends: they are looked for in text without line ends."""
    whole = value.encode()
    lines = [line.strip() for line in whole.splitlines()]
    parts = [line for line in lines if len(line) >= LEAST_LINE and not line.startswith(ARMOUR)] if len(lines) > 1 else []
    for plain in dict.fromkeys((whole, whole.strip(), *parts)):
        for spelled in _spellings(plain):
            yield Pattern(name, spelled.translate(None, _BREAKS))
        yield from _base64(name, plain)


def _spellings(plain: bytes) -> Iterator[bytes]:
    text = plain.decode()
    yield plain
    yield plain.translate(None, _BREAKS)[::-1]
    yield text[::-1].encode()
    yield plain.hex().encode()
    yield plain.hex().upper().encode()
    yield "".join(f"%{byte:02X}" for byte in plain).encode()
    yield "".join(f"%{byte:02x}" for byte in plain).encode()
    for quoted in (urllib.parse.quote_plus(plain), *(urllib.parse.quote(plain, safe=safe) for safe in UNQUOTED)):
        yield quoted.encode()
        yield re.sub("%..", _lower, quoted).encode()
    for dumped in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        for escaped in (dumped, *(dumped.translate(escapes) for escapes in JSON_FOR_HTML)):
            yield escaped[1:-1].encode()
            yield escaped[1:-1].replace("/", "\\/").encode()
            yield json.dumps(escaped)[3:-3].encode()  # JSON within JSON
    wide = text.encode("utf-16-be").hex()
    units = [wide[place : place + 4] for place in range(0, len(wide), 4)]
    yield "".join(f"\\u{unit}" for unit in units).encode()
    yield "".join(f"\\u{unit.upper()}" for unit in units).encode()
    for escapes in HTML_ESCAPES:
        yield html.escape(text, quote=False).translate(escapes).encode()
    for literal in (repr(f"'\"{text}")[4:-1], ascii(f"'\"{text}")[4:-1], repr(b"'\"" + plain)[5:-1]):
        yield literal.encode()
        yield literal.replace("\\'", "'").encode()  # between double quotes


def _base64(name: str, plain: bytes) -> Iterator[Pattern]:
    """The characters that the value alone decides, for each place at which it may begin within a group of three bytes."""
    for before in range(3):
        skipped, (ends, over) = (0, 2, 3)[before], divmod((before + len(plain)) * 8, 6)
        core = base64.b64encode(b"\0" * before + plain)[skipped:ends]
        for spelled in (core, core.translate(bytes.maketrans(b"+/", b"-_"))):
            yield Pattern(name, spelled, before=before > 0, after=over > 0)


def _lower(found: re.Match[str]) -> str:
    return found[0].lower()


# --- Places -------------------------------------------------------------------------------------------------------------------------------


def _flatten(content: bytes) -> tuple[bytes, list[int]]:
    """`content` without line ends, and for each line end how many other bytes stand before it."""
    breaks = [found.start() - count for count, found in enumerate(_BREAK.finditer(content))]
    return content.translate(None, _BREAKS), breaks


def _place(flat: int, breaks: list[int]) -> int:
    """Where the byte that stands at `flat` without line ends stands with them."""
    return flat + bisect.bisect_right(breaks, flat)


def _merged(found: list[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    last: tuple[int, int, str] | None = None
    for start, end, name in sorted(found):
        if last is not None and start < last[1]:
            last = (last[0], max(last[1], end), last[2])
            continue
        if last is not None:
            yield last
        last = (start, end, name)
    if last is not None:
        yield last


def _blot(content: bytearray, start: int, end: int, name: str) -> None:
    """Write `[secret NAME]` over a value, filled up with `*`; where it does not fit, `[secret]`."""
    places = [place for place in range(start, end) if content[place] not in _BREAKS]
    for place, byte in zip(places, _label(name, len(places)).encode(), strict=True):
        content[place] = byte


def _label(name: str, length: int) -> str:
    label = f"[secret {name}]"
    return (label if len(label) <= length else "[secret]").ljust(length, "*")[:length]


def _characters(content: bytes) -> int:
    """How many characters of UTF-8 begin in it."""
    return len(content) - len(_CONTINUED.findall(content))


def _beginning(flat: bytes, pattern: Pattern, least: int) -> int:
    """How many bytes at the end of `flat` are the beginning of a pattern, at least `least`, and one more where the byte before it counts; 0
    where none are. All of it is no beginning: it is found."""
    first = pattern.spelled[:least]
    at = flat.find(first, max(0, len(flat) - len(pattern.spelled) + 1))
    while at >= 0 and not pattern.spelled.startswith(flat[at:]):
        at = flat.find(first, at + 1)
    return len(flat) - at + pattern.before if at >= 0 else 0
