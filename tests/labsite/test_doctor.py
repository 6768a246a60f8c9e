"""`manage.py doctor` is content with a working installation, and names what somebody broke."""

import io
import json
from collections.abc import Collection

import pytest
from django.core.management import call_command
from django.db import connection

from labsite.owner import as_owner
from runs.commands import attempt as attempts
from runs.models import Attempt, QueueItem, Run
from tests.factories_runs import drive, launch, make_laboratory
from workspaces import store
from workspaces.models import AuditEvent, Blob, Engine, EngineSlot

pytestmark = pytest.mark.django_db(transaction=True)


def faults() -> list[str]:
    out = io.StringIO()
    try:
        call_command("doctor", as_json=True, stdout=out)
    except SystemExit as end:
        assert end.code == 1  # noqa: PT017  # the exit code is the command's answer
    found = json.loads(out.getvalue())["findings"]
    return [fault for finding in found for fault in finding["faults"] if finding["check"] != "run folder"]


def test_a_working_installation_is_healthy_and_what_is_broken_is_named() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory)
    assert drive(laboratory, run).status == "succeeded"
    assert faults() == []

    with laboratory.opened():
        blob = Blob.objects.first()
        assert blob is not None
        path = store.local_path(blob.region, laboratory.workspace.pk, blob.sha256)
        assert path is not None
        path.unlink()
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("UPDATE workspaces_ledgeraccount SET balance = balance + 1 WHERE side = 'spent'")
        cursor.execute("UPDATE workspaces_auditevent SET actor_label = 'nobody' WHERE sequence = 1")
        cursor.execute("UPDATE runs_certificate SET verdict = 'refused'")
        cursor.execute("UPDATE runs_run SET reserved_gpu_ms = 5 WHERE id = %s", [run.pk])
    found = " ".join(faults())
    for words in ("is not in the store", "its entries say", "still holds a reservation", "says refused; its facts give admitted"):
        assert words in found
    assert len(faults()) >= 5
    with laboratory.opened():
        assert Run.objects.count() == 1


def test_a_queued_run_whose_start_raises_is_named_and_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        runs = [launch(laboratory), launch(laboratory)]
        events = AuditEvent.objects.count()
    assert faults() == []
    places = attempts._slots

    def stumbles(engine: Engine, taken: Collection[int], attempt: Attempt, slots: int) -> list[EngineSlot]:
        if attempt.run_id == runs[1].pk:
            raise KeyError("slots")
        return places(engine, taken, attempt, slots)

    monkeypatch.setattr(attempts, "_slots", stumbles)
    (fault,) = faults()
    assert fault == f"{runs[1].name} ({runs[1].public_id}) is queued and cannot be started: KeyError: 'slots'. Cancel it."
    with laboratory.opened():
        assert (QueueItem.objects.count(), Attempt.objects.count(), AuditEvent.objects.count()) == (2, 0, events)
        assert not EngineSlot.objects.exists()
