"""Files of per-sample results, read within bounds, whatever they hold; and the paired bootstrap of two of them."""

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from runs.paired import NotComparable, difference
from runs.sample_results import (
    MAX_FAULTS,
    MAX_FILE_BYTES,
    MAX_LINE_BYTES,
    MAX_SAMPLES,
    Fault,
    Line,
    Mean,
    Sample,
    disagreements,
    lines_of,
    mean_of,
    read_samples,
    summarise,
    tells_truth,
)


def line(name: str, **fields: Any) -> bytes:
    return json.dumps({"id": name, "score": 1, **fields}).encode() + b"\n"


def test_lines_are_read_with_truth_output_and_score() -> None:
    content = line("a", truth=1, output={"p": 0.5}) + line("b", status="errored", score=None) + line("c", status="abstained", score=0.25)
    first, second, third = read_samples([content])
    assert isinstance(first, Sample)
    assert (first.id, first.truth, first.output, first.score, first.status) == ("a", "1", '{"p": 0.5}', 1.0, "ok")
    assert isinstance(second, Sample)
    assert (second.score, second.status, second.line) == (None, "errored", 2)
    assert isinstance(third, Sample)
    read = summarise([content]).as_json()
    assert read["counts"] == {"ok": 1, "errored": 1, "abstained": 1}
    assert (read["mean"], read["fault_count"]) == (0.625, 0)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"{\n", "not JSON"),
        (b"[1]\n", "not an object"),
        (b'{"id": "b", "score": NaN}\n', "NaN is not JSON"),
        (b'{"id": "b", "score": 1e999}\n', "score is not a finite number"),
        (b'{"id": "b", "score": "1"}\n', "score is not a number"),
        (b'{"id": "b"}\n', "score is missing, and its status is ok"),
        (b'{"id": "", "score": 1}\n', "id is not text"),
        (b'{"id": "b\\u0000", "score": 1}\n', "NUL"),
        (b'{"id": "b", "score": 1, "status": "fine"}\n', "status is not ok, errored or abstained"),
        (b'{"id": "b", "score": 1, "status": ["ok"]}\n', "status is not ok, errored or abstained"),
        (b'{"id": "b", "score": 1, "truth": "\\ud800"}\n', "half a surrogate pair"),
        (b'{"id": "a", "score": 1}\n', "its id stands above already"),
        (b"\xff\xfe\n", "not JSON"),
        (b"[" * 60_000 + b"\n", "not JSON"),
        (b'{"id": "b", "score": 1, "output": "' + b"x" * MAX_LINE_BYTES + b'"}\n', "longer than 64 KB"),
    ],
)
def test_a_bad_line_is_told_with_its_number_and_loses_no_other(bad: bytes, reason: str) -> None:
    found = list(read_samples([line("a"), bad, line("z")]))
    assert [type(each) for each in found] == [Sample, Fault, Sample]
    assert isinstance(found[1], Fault)
    assert found[1].line == 2
    assert reason in found[1].reason


def pieces(size: int, piece: int = 1 << 16) -> Iterator[bytes]:
    for _ in range(size // piece):
        yield b"x" * piece


def test_a_line_of_ten_megabytes_is_never_held() -> None:
    found = list(lines_of([b"one\n", *pieces(10 << 20), b"\n", b"three"]))
    assert found == [(1, b"one"), (2, None), (3, b"three")]


def test_of_a_file_that_is_too_long_the_beginning_counts() -> None:
    def content() -> Iterator[bytes]:
        yield line("a")
        while True:
            yield b"\n" * (1 << 20)

    read = summarise(content()).as_json()
    assert read["counts"]["ok"] == 1
    assert read["faults"] == [[0, f"more than {MAX_FILE_BYTES >> 20} MB; what follows was not read"]]


def test_of_too_many_samples_the_first_count() -> None:
    read = summarise(line(str(number)) for number in range(MAX_SAMPLES + 5)).as_json()
    assert read["counts"]["ok"] == MAX_SAMPLES
    assert read["faults"] == [[0, "more than 100,000 samples; what follows was not read"]]


def test_what_the_row_keeps_is_bounded_and_json() -> None:
    read = summarise([*[b"{\n"] * 1000, line("a", score=1e308), line("b", score=1e308)]).as_json()
    assert (read["fault_count"], len(read["faults"]), read["mean"]) == (1000, MAX_FAULTS, None)
    json.dumps(read, allow_nan=False)


def test_a_count_that_does_not_agree_is_told() -> None:
    read = summarise([line("a"), line("b")]).as_json()
    assert disagreements(read, Line(1, 2)) == disagreements(read, Line(1)) == disagreements(read, Line(7, 2, 0, 0, counts_all=True)) == []
    assert disagreements(read, Line(1, 100)) == ["The score is said to be of 100 samples; 2 can be read in the file."]


def ninety_of_hundred() -> dict[str, Any]:
    content = [*(line(f"r{number}") for number in range(90)), *(line(f"e{number}", status="errored", score=None) for number in range(10))]
    return summarise(content).as_json()


def test_the_mean_is_by_the_denominator_of_the_contract() -> None:
    read = ninety_of_hundred()
    assert mean_of(read, Line(1, counts_all=True)) == Mean(0.9, "over all of them, as the contract counts")
    assert mean_of(read, Line(1)) == Mean(1.0, "of the 90 that were scored")
    lower = mean_of(read, Line(1, counts_all=True, is_lower_better=True))
    assert lower == Mean(None, "no mean over all: 10 have no score, and where lower is better nothing says what they count")
    none = summarise([line("a", status="abstained", score=None)]).as_json()
    assert (mean_of(none, Line(1, counts_all=True)).value, mean_of(none, Line(1)).value) == (0.0, None)
    assert mean_of(summarise([line("a")]).as_json(), Line(1, counts_all=True)) == Mean(1.0)


def test_a_score_that_leaves_out_what_the_contract_counts_is_told() -> None:
    read = ninety_of_hundred()
    said: dict[str, Any] = {"samples": 100, "errored": 10, "abstained": 0, "counts_all": True}
    (left_out,) = disagreements(read, Line(1.0, **said))
    assert left_out == "The score is the mean of the 90 samples that were scored; over all, as the contract counts, it is 0.9."
    (lower,) = disagreements(read, Line(1.0, **said, is_lower_better=True))
    assert "the contract counts all, and 10 have no score" in lower
    for right in (0.9, 0.9001, 17.0, math.nan):
        assert disagreements(read, Line(right, **said)) == [], "by the rule, rounded, or no mean of the samples at all"
    assert disagreements(read, Line(1.0, 100)) == [], "a contract that says nothing of it"


def test_counts_of_what_erred_are_held_against_the_file() -> None:
    read = ninety_of_hundred()
    assert disagreements(read, Line(0.9, 100, 3, 0)) == ["The score is said to have 3 errored samples; in the file there are 10."]
    (silent,) = disagreements(read, Line(0.9, 100, counts_all=True))
    assert silent == "The score does not say how many samples errored; in the file there are 10, and the contract counts all."


def test_the_bootstrap_of_right_and_wrong_is_what_theory_says() -> None:
    """400 samples: 60 are right only here, 30 only there. The mean is 0.075, its standard error sqrt((p+q-(p-q)^2)/n) = 0.02343."""
    pairs = [(1.0, 0.0)] * 60 + [(0.0, 1.0)] * 30 + [(1.0, 1.0)] * 310
    found = difference(pairs)
    error = math.sqrt((0.15 + 0.075 - 0.075**2) / 400)
    assert found.mean == pytest.approx(0.075)
    assert (found.better, found.worse, found.equal) == (60, 30, 310)
    assert found.low == pytest.approx(0.075 - 1.96 * error, abs=0.004)
    assert found.high == pytest.approx(0.075 + 1.96 * error, abs=0.004)
    assert found.lower_bound == pytest.approx(0.075 - 1.645 * error, abs=0.004)
    assert difference(pairs) == found


def test_few_and_many_different_values_are_drawn_alike() -> None:
    """Of 1,500 different differences each sample is drawn by itself; rounded to 300 different ones, how often each comes is drawn."""
    pairs = [(float(value), 0.0) for value in np.random.default_rng(7).normal(0.1, 1, 1_500)]
    one, other = difference(pairs), difference([(round(a, 2), b) for a, b in pairs])
    assert one.low == pytest.approx(other.low, abs=0.006)
    assert one.high == pytest.approx(other.high, abs=0.006)


def test_an_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    source, held = np.random.default_rng(3), 0
    for _ in range(200):
        pairs = [(float(one < 0.6), float(other < 0.5)) for one, other in source.random((150, 2))]
        found = difference(pairs, resamples=400)
        held += found.low <= 0.1 <= found.high
    assert 180 <= held <= 199


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([], "no sample in common"),
        ([(1e200, 0.0)], "larger than"),
        ([(number / 7, number * 0.3) for number in range(20_001)], "20,000 at most"),
    ],
)
def test_what_cannot_be_compared_is_said(pairs: list[tuple[float, float]], reason: str) -> None:
    with pytest.raises(NotComparable, match=reason):
        difference(pairs)


@pytest.mark.parametrize(
    ("content", "tells"),
    [
        (b'{"id": "a", "truth": 1}\n', True),
        (b'broken\n{"truth": null, "score": "x"}', True),
        (b'{"id": "a", "output": "the truth"}\n["truth"]\n"truth"\n', False),
        (b"record_id,label\na,1\n", False),
        (b"[" * 60_000 + b'"truth"\n', False),
        (b"\x00\xff truth", False),
    ],
)
def test_a_file_tells_the_truth_where_one_line_of_it_does(content: bytes, tells: bool) -> None:
    assert tells_truth([content[:7], content[7:]]) is tells
