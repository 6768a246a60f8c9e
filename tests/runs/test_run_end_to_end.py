"""One run from the request to the settled cost, on the real local pool, without a queue: the jobs are called as a worker calls them."""

import pytest

from runs.lifecycle import RunStatus
from runs.models import Artifact, Attempt, Evaluation, MetricSeries, QueueItem, Run, Watch
from tests.factories_runs import HOUR, drive, launch, make_laboratory
from workspaces.models import AuditEvent, EngineSlot, LedgerAccount, LedgerEntry

TRAINER = b"""
import json, os
with open("../metrics.jsonl", "a") as metrics:
    for step in range(5):
        metrics.write(json.dumps({"key": "loss", "value": 1 / (step + 1), "step": step}) + "\\n")
with open("../outputs/model.json", "w") as model:
    model.write("{}")
with open("../events.jsonl", "a") as events:
    events.write(json.dumps({"type": "artifact", "path": "model.json", "name": "model", "kind": "model", "metadata": {}}) + "\\n")
    events.write(json.dumps({"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.8, "stderr": 0.02, "samples": 400}) + "\\n")
print("trained on", sorted(os.listdir("../inputs/table")))
"""


@pytest.mark.django_db(transaction=True)
def test_a_run_goes_from_request_to_settled_cost() -> None:
    laboratory = make_laboratory(code=TRAINER)
    with laboratory.opened():
        run = launch(laboratory, gpu_ms=1 * HOUR, reason="first try")
        assert run.status == RunStatus.QUEUED
        assert LedgerAccount.objects.get(side="reserved", unit="gpu_ms", window="week").balance == 1 * HOUR
    done = drive(laboratory, run)
    with laboratory.opened():
        assert (done.status, done.reason_code) == (RunStatus.SUCCEEDED, "")
        attempt = Attempt.objects.get(run=run)
        assert (attempt.number, attempt.exit_code, attempt.status) == (1, 0, "ended")
        series = MetricSeries.objects.get(run=run, key="loss")
        assert (series.count, series.last, series.minimum, series.maximum) == (5, 0.2, 0.2, 1.0)
        assert {(row.name, row.kind) for row in Artifact.objects.filter(run=run)} >= {("model", "model"), ("stdout.log", "log")}
        score = Evaluation.objects.get(run=run)
        assert (score.value, score.standard_error, score.samples, score.contract.version) == (0.8, 0.02, 400, 1)
        assert not QueueItem.objects.exists()
        assert not EngineSlot.objects.exists()
        balances = {row.side: row.balance for row in LedgerAccount.objects.filter(unit="gpu_ms", window="week")}
        assert balances["reserved"] == 0
        assert 0 < done.spent_gpu_ms == balances["spent"] < 60_000
        assert sum(balances.values()) == 0
        assert set(LedgerEntry.objects.filter(run_id=run.pk).values_list("act", flat=True)) == {"reserve", "spend", "release"}
        verbs = list(AuditEvent.objects.filter(subjects__object_id=run.pk).order_by("sequence").values_list("verb", flat=True).distinct())
        assert verbs == ["launch.admitted", "attempt.started", "attempt.running", "attempt.ended", "run.ended"]
        assert Run.objects.get(pk=run.pk).ended_at is not None


@pytest.mark.django_db(transaction=True)
def test_what_a_run_uses_is_measured_while_it_runs_and_not_what_it_says_it_uses() -> None:
    code = b"""
import json, time
with open("../metrics.jsonl", "a") as metrics:
    metrics.write(json.dumps({"key": "system/cpu_percent", "value": 1e9, "step": 0}) + "\\n")
held, until = bytearray(30 * 2**20), time.monotonic() + 7
while time.monotonic() < until:
    sum(range(10_000))
"""
    laboratory = make_laboratory(code=code)
    with laboratory.opened():
        run = launch(laboratory)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        measured = {series.key: series for series in MetricSeries.objects.filter(run=run)}
        assert set(measured) == {"system/cpu_percent", "system/memory_bytes"}, "GPUs that were not measured have no series"
        cpu, memory = measured["system/cpu_percent"], measured["system/memory_bytes"]
        assert cpu.last is not None
        assert 5 < cpu.last < 400
        assert memory.last is not None
        assert 30 * 2**20 < memory.last < 2**30
        assert cpu.count == memory.count == 1
        assert Watch.objects.get(attempt__run=run).metrics_bad == 1
