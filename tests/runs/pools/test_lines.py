"""Lines that a run appends: only whole ones count, bad ones are numbered, nothing is buffered for ever."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.pools import events
from runs.pools.lines import MAX_BAD_KEPT, MAX_LINE_BYTES, PIECE_BYTES, BadLine, Point, parse_events, parse_metrics

GOOD = b'{"key": "loss", "value": 0.5, "step": 3, "time": 1790000000.5}\n'


def line(**fields: object) -> bytes:
    return json.dumps({"key": "k", "value": 1, "step": 0} | fields).encode() + b"\n"


def test_a_point_is_typed() -> None:
    points, bad, consumed, lines = parse_metrics(GOOD, 1)
    assert points == [Point("loss", 0.5, 3, 1790000000.5)]
    assert (bad.count, consumed, lines) == (0, len(GOOD), 1)


@given(st.integers(min_value=0, max_value=2 * len(GOOD)))
def test_any_cut_gives_the_same_points(cut: int) -> None:
    whole = GOOD + GOOD
    first = parse_metrics(whole[:cut], 1)
    second = parse_metrics(whole[first.consumed_bytes :], 1 + first.lines)
    assert first.points + second.points == parse_metrics(whole, 1).points
    assert first.lines + second.lines == 2


@pytest.mark.parametrize(
    ("value", "expected"), [("Infinity", math.inf), ("-Infinity", -math.inf), (7, 7.0), (-0.5, -0.5), (math.inf, math.inf)]
)
def test_values(value: object, expected: float) -> None:
    assert parse_metrics(line(value=value), 1).points[0].value == expected


@pytest.mark.parametrize("value", ["NaN", math.nan])
def test_nan_quoted_or_as_python_writes_it(value: object) -> None:
    assert math.isnan(parse_metrics(line(value=value), 1).points[0].value)


@pytest.mark.parametrize(
    "bad",
    [
        b"not json\n", b"[]\n", b"7\n", b"\xff\xfe\n", b"{}\n", b'{"key": "k", "value": 1}\n', b"[" * 60_000 + b"\n",
        line(value=True), line(value=None), line(value="1"), line(value="nan"), line(value=10**400), line(value=[1]),
        line(step=True), line(step=1.0), line(step="1"), line(step=2**63), line(step=-(2**63) - 1), line(step=math.nan),
        line(key=""), line(key="x" * 251), line(key="a\0"), line(key="\ud800"), line(key=7),
        line(time="now"), line(time=math.nan), line(time=math.inf), line(time=-1), line(time=1e12), line(time=True),
        b'{"key": "k", "step": 1, "value": ' + b"9" * 5000 + b"}\n",
    ],
)  # fmt: skip
def test_bad_lines_are_counted_with_their_number(bad: bytes) -> None:
    parsed = parse_metrics(GOOD + bad + GOOD, 10)
    assert len(parsed.points) == 2
    assert parsed.bad_lines.count == 1
    assert parsed.bad_lines.first[0].number == 11
    assert parsed.bad_lines.first[0].reason
    assert (parsed.lines, parsed.consumed_bytes) == (3, len(GOOD) * 2 + len(bad))


def test_int64_ends_are_steps() -> None:
    chunk = line(step=2**63 - 1) + line(step=-(2**63))
    assert [point.step for point in parse_metrics(chunk, 1).points] == [2**63 - 1, -(2**63)]


def test_only_the_first_bad_lines_are_kept() -> None:
    bad = parse_metrics(b"x\n" * 1000, 1).bad_lines
    assert bad.count == 1000
    assert [one.number for one in bad.first] == list(range(1, MAX_BAD_KEPT + 1))


def test_blank_lines_are_lines_and_not_bad() -> None:
    parsed = parse_metrics(b"\n  \r\n" + GOOD, 1)
    assert (len(parsed.points), parsed.bad_lines.count, parsed.lines) == (1, 0, 3)


@pytest.mark.parametrize("length", [MAX_LINE_BYTES + 1, PIECE_BYTES, 5 * PIECE_BYTES + 17])
def test_an_endless_line_is_passed_by_in_bounded_pieces(length: int) -> None:
    """Its end looks like a good line and must not be taken for one."""
    content = b"x" * length + GOOD + GOOD
    offset, number, points, bad = 0, 1, [], []
    for _ in range(20):
        chunk = content[offset : offset + PIECE_BYTES]
        if not chunk:
            break
        parsed = parse_metrics(chunk, number)
        assert parsed.consumed_bytes > 0
        offset, number = offset + parsed.consumed_bytes, number + parsed.lines
        points += parsed.points
        bad += parsed.bad_lines.first
    assert offset == len(content)
    assert len(points) == 1
    assert bad == [BadLine(1, f"longer than {MAX_LINE_BYTES} bytes")]
    assert number == 3


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"type": "artifact", "path": "a/m.bin", "name": "m", "kind": "model"}, events.Artifact("a/m.bin", "m", "model", {})),
        ({"type": "dataset", "path": "d.csv", "name": "d", "records": 5}, events.DatasetFile("d.csv", "d", 5)),
        (
            {"type": "score", "benchmark": "b", "metric": "acc", "value": 0.5, "stderr": 0.1, "samples": 9},
            events.Score("b", "acc", 0.5, 0.1, 9),
        ),
        ({"type": "memory_read", "entry": "mem_1", "trust": "reviewed"}, events.MemoryRead("mem_1", "reviewed")),
        (
            {"type": "memory_write", "collection": "c", "kind": "fact", "body": {"x": 1}, "evidence": ["run"]},
            events.MemoryWrite("c", "fact", {"x": 1}, ["run"]),
        ),
        ({"type": "api_spend", "micros": 1200, "currency": "EUR", "what": "judge"}, events.ApiSpend(1200, "EUR", "judge")),
        ({"type": "progress", "done": 1, "total": 4, "text": "epoch"}, events.Progress(1.0, 4.0, "epoch")),
        ({"type": "note", "text": "hello"}, events.Note("hello")),
        ({"type": "done", "status": "ok"}, events.Done("ok", "")),
        ({"type": "novel", "x": [1, None]}, events.Unknown("novel", {"type": "novel", "x": [1, None]})),
    ],
)
def test_events_are_typed(written: dict[str, object], expected: events.Event) -> None:
    parsed = parse_events(json.dumps(written).encode() + b"\n", 4)
    assert parsed.events == [(4, expected)]
    assert parsed.bad_lines.count == 0


@pytest.mark.parametrize(
    "written",
    [
        {}, {"type": 7}, {"type": ""}, {"type": "x" * 251}, {"type": "note"}, {"type": "note", "text": "a\0b"},
        {"type": "novel", "a": ["\ud800"]},
        {"type": "novel", "a\0": 1}, {"type": "novel", "a": math.nan}, {"type": "artifact", "path": "../x", "name": "n"},
        {"type": "artifact", "path": "/etc/passwd", "name": "n"}, {"type": "artifact", "path": "x", "name": "n", "metadata": []},
        {"type": "dataset", "path": "x", "name": "n", "records": -1}, {"type": "score", "benchmark": "b", "metric": "m", "value": True},
        {"type": "score", "benchmark": "b", "metric": "m", "value": "NaN"},
        {"type": "score", "benchmark": "b", "metric": "m", "value": 1, "stderr": -1},
        {"type": "api_spend", "micros": -1, "currency": "EUR"}, {"type": "api_spend", "micros": 1.5, "currency": "EUR"},
        {"type": "api_spend", "micros": 2**63, "currency": "EUR"}, {"type": "api_spend", "micros": 1, "currency": "eur"},
        {"type": "progress", "done": -1}, {"type": "progress"}, {"type": "memory_write", "collection": "c", "kind": "k"},
    ],
)  # fmt: skip
def test_bad_events_are_counted(written: dict[str, object]) -> None:
    parsed = parse_events(json.dumps(written).encode() + b"\n", 1)
    assert parsed.events == []
    assert parsed.bad_lines.count == 1


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_no_bytes_break_the_parsers(first: bytes, second: bytes) -> None:
    for parse in (parse_metrics, parse_events):
        parsed = parse(first + b"\n" + second, 1)
        assert parsed.lines == (first + b"\n" + second).count(b"\n")
        assert parsed.consumed_bytes <= len(first + second) + 1
