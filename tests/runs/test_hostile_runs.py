"""Runs that lie, flood, hide and break things: the watcher takes in what is sound, counts the rest, and goes on with the others."""

import json
import math
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from runs import ingest
from runs.jobs import keeper
from runs.lifecycle import RunStatus
from runs.models import Artifact, Attempt, Evaluation, MetricSeries, Run, RunLine, Watch
from runs.queries.log import read_log
from tests.factories_registry import make_benchmark
from tests.factories_runs import Laboratory, dispatch, drive, launch, make_laboratory
from tests.runs.attempts import content, kept, levels, settled, until
from workspaces.models import EventPayload, LedgerAccount

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]

METRICS = [
    '{"key": "good", "value": 1.5, "step": 1}',
    '{"key": "good", "value": "NaN", "step": 2}',
    '{"key": "good", "value": Infinity, "step": 3}',
    '{"key": "good", "value": 1e400, "step": 4}',
    '{"key": "edge", "value": -9223372036854775808, "step": -9223372036854775808, "time": 253402300799.5}',
    # bad from here on
    '{"key": "bool", "value": true, "step": 1}',
    '{"key": "step", "value": 1, "step": 9223372036854775808}',
    '{"key": "step", "value": 1, "step": 1.5}',
    '{"key": "step", "value": 1, "step": true}',
    '{"key": "time", "value": 1, "step": 1, "time": 1e300}',
    '{"key": "time", "value": 1, "step": 1, "time": -1}',
    '{"key": "' + "k" * 251 + '", "value": 1, "step": 1}',
    '{"key": "nul\\u0000", "value": 1, "step": 1}',
    '{"key": "half\\ud800", "value": 1, "step": 1}',
    '{"key": "", "value": 1, "step": 1}',
    '{"key": "big", "value": 1' + "0" * 400 + ', "step": 1}',
    '{"key": "digits", "value": ' + "9" * 5000 + ', "step": 1}',
    "not json",
    "[" * 5000,
    "null",
    "x" * 70_000,
    "\udcff\udcfe",
]
DEEP = "[" * 200 + "]" * 200
EVENTS = [
    '{"type": "note", "text": "fine"}',
    '{"type": "progress", "done": 3, "total": 5, "text": "half"}',
    '{"type": "api_spend", "micros": 9223372036854775807, "currency": "EUR"}',
    '{"type": "api_spend", "micros": 9223372036854775807, "currency": "EUR"}',
    '{"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.5}',
    '{"type": "score", "benchmark": "bench_accuracy", "metric": "accuracy", "value": 0.75, "samples": 9223372036854775807}',
    '{"type": "score", "benchmark": "nowhere", "metric": "accuracy", "value": 1}',
    '{"type": "score", "benchmark": "../../etc", "metric": "accuracy", "value": 1}',
    '{"type": "artifact", "path": "gone.bin", "name": "gone"}',
    '{"type": "artifact", "path": "zero", "name": "nothing", "kind": "table", "metadata": {"a": [1e999, -0.0, ' + "9" * 4000 + "]}}",
    '{"type": "no such type", "a": {"b": [1, 2.5, null]}}',
    # bad from here on
    '{"type": "note", "text": "nul \\u0000"}',
    '{"type": "note", "text": "half \\ud800"}',
    '{"type": "artifact", "path": "../../../etc/passwd", "name": "x"}',
    '{"type": "artifact", "path": "/etc/passwd", "name": "x"}',
    '{"type": "artifact", "path": "a\\u0000b", "name": "x"}',
    '{"type": "artifact", "path": "a", "name": "x", "metadata": {"\\u0000": 1}}',
    '{"type": "score", "benchmark": "acc\\u0000", "metric": "accuracy", "value": 1}',
    '{"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": NaN}',
    '{"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": true}',
    '{"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 1, "stderr": -1}',
    '{"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 1, "samples": 9223372036854775808}',
    '{"type": "api_spend", "micros": -5, "currency": "EUR"}',
    '{"type": "no such type", "a": "\\u0000"}',
    '{"type": "deep", "a": ' + DEEP + "}",
    '{"type": "memory_write", "collection": "c", "kind": "k", "body": ' + DEEP + "}",
    '{"type": "artifact", "path": "deep", "name": "x", "metadata": {"a": ' + DEEP + "}}",
    "{" * 3000,
]
GOOD_METRICS, GOOD_EVENTS = 5, 11


def writes(metrics: list[str], events: list[str], more: str = "") -> bytes:
    """A program that writes these lines, byte for byte."""
    return f"""
import os, sys
for name, lines in (("metrics", {metrics!r}), ("events", {events!r})):
    with open("../" + name + ".jsonl", "ab") as file:
        for line in lines:
            file.write(line.encode("utf-8", "surrogateescape") + b"\\n")
{more}
""".encode()


def said_at_the_end(run: Run) -> dict[str, Any]:
    """Details of the event of its end."""
    payload = EventPayload.objects.get(event__verb__in=("run.ended", "run.overran"), event__subject_id=run.pk)
    return dict(payload.body["details"])


@levels
def test_lies_in_metrics_and_events_are_counted_and_the_rest_is_kept(isolation: str) -> None:
    laboratory = make_laboratory(code=writes(METRICS, EVENTS, "open('../outputs/zero', 'w').close()"), isolation=isolation)
    with laboratory.opened():
        run = launch(laboratory, api_micros=0)
    done = drive(laboratory, run)
    with laboratory.opened():
        assert done.status == RunStatus.SUCCEEDED
        good = MetricSeries.objects.get(run=run, key="good")
        assert (good.count, good.minimum, good.maximum, good.last) == (4, 1.5, 1.5, math.inf)
        assert set(MetricSeries.objects.filter(run=run).values_list("key", flat=True)) == {"good", "edge"}
        seen = Watch.objects.get(attempt__run=run)
        assert (seen.metrics_bad, seen.events_bad) == (len(METRICS) - GOOD_METRICS, len(EVENTS) - GOOD_EVENTS)
        assert {entry["number"] for entry in seen.bad_lines if entry["file"] == "events"} <= set(range(GOOD_EVENTS + 1, len(EVENTS) + 1))
        types = list(RunLine.objects.filter(attempt__run=run).order_by("number").values_list("type", flat=True))
        assert types == [
            "note",
            "progress",
            "api_spend",
            "api_spend",
            "score",
            "score",
            "score",
            "score",
            "artifact",
            "artifact",
            "no such type",
        ]
        score = Evaluation.objects.get(run=run)
        assert (score.value, score.samples) == (0.75, 2**63 - 1)
        zero = Artifact.objects.get(run=run, path="zero")
        assert (zero.name, zero.kind, zero.blob.bytes) == ("nothing", "table", 0)
        end = said_at_the_end(run)
        assert end["scores_on_unknown_benchmarks"] == ["../../etc", "nowhere"]
        assert end["artifacts_not_found"] == ["gone.bin"]
        assert done.spent_api_micros == ingest.MAX_API_MICROS
        overrun = LedgerAccount.objects.get(unit="api_micros", window="week", side="spent")
        assert overrun.balance == ingest.MAX_API_MICROS
    settled(laboratory)


@levels
def test_what_lies_in_outputs_is_kept_only_where_it_is_a_file(isolation: str) -> None:
    code = """
import os, socket
os.chdir("../outputs")
os.symlink("/etc/passwd", "link")
os.symlink("..", "folder-link")
os.mkfifo("fifo")
socket.socket(socket.AF_UNIX).bind("socket")
os.makedirs("a/b/c")
open("a/b/c/file", "w").write("kept")
open("Ünïcode 名前 🙂.txt", "w").write("kept")
open("new\\nline", "w").write("no path of ours")
open(b"bytes\\xff", "w").write("no text")
os.makedirs(".labsite/attempt-1")
open(".labsite/attempt-1/stdout.log", "w").write("forged")
place = os.getcwd()
for _ in range(30):
    os.mkdir("d" * 60)
    os.chdir("d" * 60)
open("too long", "w").write("x")
os.chdir(place)
print("said by the program")
""".encode()
    laboratory = make_laboratory(code=code, isolation=isolation)
    with laboratory.opened():
        run = launch(laboratory)
    done = drive(laboratory, run)
    with laboratory.opened():
        assert done.status == RunStatus.SUCCEEDED, read_log(run, "stderr.log").text_bytes
        assert set(kept(run)) == {
            "a/b/c/file", "Ünïcode 名前 🙂.txt", ".labsite/attempt-1/outputs/.labsite/attempt-1/stdout.log", ".labsite/attempt-1/stdout.log",
        }  # fmt: skip
        assert content(laboratory, run, ".labsite/attempt-1/stdout.log") == b"said by the program\n"
        end = said_at_the_end(run)
        assert end["outputs_not_plain_files"] == 2
        assert end["outputs_left"] == {"links": {"count": 2, "first": "folder-link"}, "names": {"count": 3, "first": "bytes\\udcff"}}
        assert not any("root:" in str(value) for value in end.values())
    settled(laboratory)


def test_links_in_the_place_of_its_own_files_are_not_followed() -> None:
    code = b"""
import os
os.symlink("/etc/passwd", "../metrics.jsonl")
os.mkfifo("../events.jsonl")
print("done")
"""
    laboratory = make_laboratory(code=code)
    with laboratory.opened():
        run = launch(laboratory)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        assert set(kept(run)) == {".labsite/attempt-1/stdout.log"}
        assert {entry["file"] for entry in Watch.objects.get(attempt__run=run).bad_lines} == {"metrics", "events"}


def test_ten_thousand_outputs_are_bounded_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "MAX_OUTPUTS", 200)
    code = b"for number in range(10_500):\n    open(f'../outputs/{number:05d}', 'w').write(str(number))\n"
    laboratory = make_laboratory(code=code)
    with laboratory.opened():
        run, beside = launch(laboratory), launch(laboratory)
    done = drive(laboratory, run, seconds=60)
    with laboratory.opened():
        assert done.status == RunStatus.SUCCEEDED
        assert Artifact.objects.filter(run=run).count() == keeper.MAX_OUTPUTS
        assert content(laboratory, run, "00199") == b"199"
        end = said_at_the_end(run)
        assert end["outputs_left"]["more"]["count"] == 10_300
        assert "10,300 more than the" in done.reason
    assert drive(laboratory, beside, seconds=60).status == RunStatus.SUCCEEDED
    settled(laboratory)


def test_a_flood_of_lines_is_taken_in_over_several_looks_and_its_scores_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "MAX_PIECES", 2)
    monkeypatch.setattr(ingest, "MAX_LINES", 500)
    code = b"""
import json
with open("../metrics.jsonl", "a") as metrics, open("../events.jsonl", "a") as events:
    for step in range(60_000):
        metrics.write(json.dumps({"key": f"k{step % 2000}", "value": step, "step": step}) + "\\n")
        events.write(json.dumps({"type": "progress", "done": step, "total": 60_000}) + "\\n")
    events.write(json.dumps({"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.5}) + "\\n")
    events.write(json.dumps({"type": "progress", "done": 60_000}))
"""
    laboratory = make_laboratory(code=code)
    with laboratory.opened():
        run = launch(laboratory)
    done = drive(laboratory, run, seconds=60)
    with laboratory.opened():
        assert done.status == RunStatus.SUCCEEDED
        assert MetricSeries.objects.filter(run=run).count() == ingest.MAX_SERIES
        seen = Watch.objects.get(attempt__run=run)
        assert (seen.metrics_lines, seen.metrics_bad) == (60_000, 30_000)
        assert (seen.events_lines, seen.events_bad, seen.progress_done) == (60_002, 0, 60_000)
        assert RunLine.objects.filter(attempt__run=run).count() == 501
        assert Evaluation.objects.get(run=run).value == 0.5
    settled(laboratory)


@levels
def test_floods_forks_and_binary_end_as_their_limits_say(monkeypatch: pytest.MonkeyPatch, isolation: str) -> None:
    monkeypatch.setattr("runs.queries.order.LOG_BYTES", 100_000)
    monkeypatch.setattr("runs.queries.order.OUTPUT_BYTES", 2_000_000)
    code = b"""
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(300)
        os._exit(0)
for _ in range(40):
    os.write(1, bytes(range(256)) * 64)
    os.write(2, b"\\xff\\x00\\x1b[2J" * 1000)
with open("../outputs/filler", "wb") as filler:
    while True:
        filler.write(b"x" * 100_000)
        filler.flush()
"""
    laboratory = make_laboratory(code=code, isolation=isolation)
    with laboratory.opened():
        run = launch(laboratory)
    done = drive(laboratory, run)
    with laboratory.opened():
        assert (done.status, done.reason_code) in ((RunStatus.FAILED, "budget_exceeded"), (RunStatus.FAILED, "exit_code"))
        key = Attempt.objects.get(run=run).key
        log = content(laboratory, run, ".labsite/attempt-1/stdout.log")
        assert log.startswith(bytes(range(256)))
        assert len(log) < 101_000
        assert b"log limit" in log
    left = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and key.encode() in Path(f"/proc/{name}/environ").read_bytes():
                left.append(name)
        except OSError:
            continue
    assert left == []
    settled(laboratory)


def test_a_run_may_not_make_labsite_believe_in_the_end_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without isolation a run can write the end of its own attempt; the others go on, and the attempt is shown as unknown."""
    forged = json.dumps({"code": 0, "signal": None, "started_at": -1e300, "ended_at": 1e300, "reason": "exit", "peak_memory_bytes": 2**70})
    code = f"import time\nopen('../state/exit.json', 'w').write({forged!r})\ntime.sleep(0.3)\n".encode()
    laboratory = make_laboratory(code=code)
    with laboratory.opened():
        forger = launch(laboratory)
    dispatch(laboratory)
    with laboratory.opened():
        attempt = Attempt.objects.get(run=forger)
    folder = settings.LABSITE_RUNS / "runs" / laboratory.workspace.pk.hex / attempt.key
    until(lambda: (folder / "state" / "exit.json").exists(), "the forged end")
    other = make_laboratory("other")
    with other.opened():
        run = launch(other)
    assert drive(other, run).status == RunStatus.SUCCEEDED
    done = drive(laboratory, forger)
    with laboratory.opened():
        assert done.spent_gpu_ms < 60_000, "time was charged that never was"
        assert done.ended_at is not None
        assert done.ended_at - timezone.now() < timedelta(minutes=1)
    settled(laboratory)


def test_a_score_counts_on_its_own_benchmark_of_this_workspace_only() -> None:
    other = make_laboratory("other")
    with other.opened():
        foreign = make_benchmark(other.owner, "foreign")
    events = [
        json.dumps({"type": "score", "benchmark": name, "metric": "accuracy", "value": 1})
        for name in ("foreign", foreign.public_id, str(foreign.pk))
    ]
    laboratory: Laboratory = make_laboratory(code=writes([], events))
    with laboratory.opened():
        run = launch(laboratory)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        assert Run.objects.get(pk=run.pk).evaluations.count() == 0
    with other.opened():
        assert Evaluation.objects.count() == 0
