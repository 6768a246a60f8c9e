"""Arranging attempts on the real local pool: programs that wait, their folders, and what must hold once all is over."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from runs.lifecycle import TERMINAL
from runs.models import Artifact, Attempt, QueueItem, Run
from tests.factories_runs import Laboratory, dispatch, launch, watch
from workspaces import store
from workspaces.models import AuditEvent, EngineSlot, LedgerAccount
from workspaces.queries.chain import verify_chain
from workspaces.queries.ledger import recount

levels = pytest.mark.parametrize(
    "isolation",
    ["none", pytest.param("user", marks=pytest.mark.skipif(os.geteuid() != 0, reason="own user ids need root: run as root"))],
)

# A worker's thread that is ended in the midst, as `kill -9` ends the whole of it: the work raises SystemExit.
dies = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")

WAITS = b"""
import os, time
with open("../outputs/starts", "a") as starts:
    starts.write("started\\n")
print("waiting", flush=True)
while not os.path.exists("../go"):
    time.sleep(0.02)
"""
DEAF = b"import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(60)\n"


def folder_of(laboratory: Laboratory, attempt: Attempt) -> Path:
    return Path(settings.LABSITE_RUNS) / "runs" / laboratory.workspace.pk.hex / attempt.key


def let_go(laboratory: Laboratory, run: Run) -> None:
    """What a run of WAITS waits for; written by labsite's own user, who owns the folder."""
    with laboratory.opened():
        (folder_of(laboratory, Attempt.objects.filter(run=run).latest("number")) / "go").touch()


def until(holds: Callable[[], object], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def is_someone_waiting() -> bool:
    """For a lock; a role sees what others of its name do."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # a transaction sees what it saw first
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        return bool(cursor.fetchall()[0][0])


def watch_until(laboratory: Laboratory, run: Run, status: str) -> None:
    """Watch until the run has the status: what a killed launcher leaves may need a moment to end, and until then nothing is certain."""

    def looked() -> bool:
        watch(laboratory)
        with laboratory.opened():
            return Run.objects.get(pk=run.pk).status == status

    until(looked, f"the run as {status}")


def started(laboratory: Laboratory, **asked: object) -> tuple[Run, Attempt]:
    """A run whose program has said its first word."""
    with laboratory.opened():
        run = launch(laboratory, **asked)
    dispatch(laboratory)
    with laboratory.opened():
        attempt = Attempt.objects.get(run=run)
    until(lambda: (folder_of(laboratory, attempt) / "stdout.log").stat().st_size, "the program's first word")
    return run, attempt


def settled(laboratory: Laboratory) -> dict[str, int]:
    """Nothing is held any more and every sum is right; the week's balances."""
    with laboratory.opened():
        assert not EngineSlot.objects.exists()
        assert not QueueItem.objects.exists()
        balances = {row.side: row.balance for row in LedgerAccount.objects.filter(unit="gpu_ms", window="week")}
        assert balances["reserved"] == 0
        assert sum(balances.values()) == 0
        assert recount() == []
        assert verify_chain().is_whole
        assert balances["spent"] == sum(Run.objects.values_list("spent_gpu_ms", flat=True))
        verbs = ["run.ended", "run.overran", "run.cancelled", "run.declared_lost", "attempt.failed_to_start"]
        ended = AuditEvent.objects.filter(verb__in=verbs)
        assert ended.count() == Run.objects.filter(status__in=sorted(TERMINAL)).count() == Run.objects.count()
    return balances


def kept(run: Run) -> dict[str, str]:
    return dict(Artifact.objects.filter(run=run).values_list("path", "blob__sha256"))


def content(laboratory: Laboratory, run: Run, path: str) -> bytes:
    blob = Artifact.objects.get(run=run, path=path).blob
    return b"".join(store.open(blob.region, laboratory.workspace.pk, blob.sha256))


def kill_launcher(laboratory: Laboratory, attempt: Attempt) -> int:
    state = folder_of(laboratory, attempt) / "state"
    os.kill(json.loads((state / "lock").read_text())["launcher"]["pid"], signal.SIGKILL)
    return int(json.loads((state / "pid.json").read_text())["pid"])


def in_threads(count: int, work: Callable[[], None]) -> list[BaseException]:
    """Run `work` in threads with a connection each; what they raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised
