"""One kill of the drill `tests/drills/kills.py`, and what must hold after it."""

import os
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
import urllib.error
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from django.conf import settings
from django.db.models import Count, Q

from labsite.embedded.home import CHECKOUT
from runs.lifecycle import OPEN_ATTEMPTS, TERMINAL
from runs.models import Artifact, Attempt, Run, Watch
from runs.place import place_in
from runs.queries.collecting import collecting
from tests.drills_engines import RECORD_SECONDS, Engines
from tests.drills_fail_points import POINTS, points_of
from tests.drills_ground import Ground
from tests.installation import Installation, children_of, wait_until
from workspaces import store
from workspaces.models import AuditEvent, EngineSlot, Pool
from workspaces.queries.chain import verify_chain
from workspaces.queries.ledger import recount

CODE = b"""
import json, os, time
with open("../outputs/starts", "a") as starts:
    starts.write("started\\n")
with open("../metrics.jsonl", "a") as metrics:
    for step in range(40):
        metrics.write(json.dumps({"key": "loss", "value": step, "step": step}) + "\\n")
        metrics.flush()
        time.sleep(0.02)
"""
STUCK_SECONDS = 120.0
AHEAD = 8  # runs that wait or are at work at any time
PROGRAMS = {
    "dispatcher": "work dispatch",
    "watcher": "work watch",
    "collector": "work collect",
    "default worker": "work default",
    "clock": "manage.py clock",
    "web": "gunicorn",
    "all workers": "manage.py work",
}
ENDS = ("run.ended", "run.cancelled", "run.overran", "attempt.failed_to_start")


class Drill:
    """Launches runs all the time, kills, and looks."""

    def __init__(self, labsite: Installation, engines: tuple[str, ...]) -> None:
        self._labsite = labsite
        self._ground = Ground(labsite, CODE, slots=6, at_once=48, engine_slots=16)
        self._pools, self._favoured = engines, engines[0]
        self._engines = Engines(self._ground.laboratory, self._ground.operator, engines)
        self._launched: dict[str, float] = {}  # run id -> when its launch was answered
        self._ended: set[str] = set()
        self._over = threading.Event()
        self._launcher = threading.Thread(target=self._keep_launching, daemon=True)

    def __enter__(self) -> Self:
        self._launcher.start()
        wait_until(lambda: len(self._ended_now()) >= 2, "the first ends")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._launcher.join(60)
        self._engines.close()

    def kill(self, chance: random.Random, engine: str, only: str = "") -> dict[str, Any]:
        """One kill while runs of that engine are in flight, and everything that must hold after it; what is wrong stands under `faults`."""
        self._favoured = engine
        what = only or chance.choice([*PROGRAMS, *points_of(engine)])
        wait_until(lambda: len(self._in_flight_on(engine)) >= 2, f"two runs on {engine}", seconds=STUCK_SECONDS)
        before = self._ended_now()
        gone = self._at_point(what) if what in POINTS else self._at_random(what, chance.uniform(0, 1.5))
        killed_at = time.monotonic()
        in_flight = [run for run in list(self._launched) if run not in before]
        faults = [] if gone else [f"{what} was not reached in 60 s"]
        waited_for: list[str] = []
        recovered = self._until(lambda: self._has_recovered(what, gone, waited_for))
        load = os.getloadavg()[0]
        ended = self._until(lambda: not set(in_flight) - self._ended_now(), since=killed_at)
        if ended >= STUCK_SECONDS:
            faults += [f"stuck: {run}" for run in sorted(set(in_flight) - self._ended_now())]
        self._ended |= set(in_flight) & self._ended_now()
        faults += self._faults(in_flight)
        return {
            "engine": engine, "what": what, "pids": gone, "recovered_seconds": round(recovered, 1), "waited_for": waited_for[-1:],
            "load": round(load, 1), "in_flight": len(in_flight), "ended_seconds": round(ended, 1),
            "ended": len(self._ended_now() - before), "faults": faults,
        }  # fmt: skip

    def settle(self) -> None:
        """No launch any more; in the end nothing is held and every run has ended once."""
        self._over.set()
        self._launcher.join(60)
        wait_until(lambda: len(self._ended_now()) == len(self._launched), "the last ends", seconds=STUCK_SECONDS)
        self._ground.check()

    # --- Kills --------------------------------------------------------------------------------------------------------------------------

    def _at_random(self, what: str, seconds: float) -> list[int]:
        time.sleep(seconds)
        found = self._labsite.programs(PROGRAMS[what])
        if what == "web":
            found = list(children_of(found[0]))  # a worker of its own master's, in the midst of an answer or not
        chosen = found if what == "all workers" else found[:1]
        for pid in chosen:
            os.kill(pid, signal.SIGKILL)
        return chosen

    def _at_point(self, point: str) -> list[int]:
        """Start a worker that dies there, until it has."""
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.drills_fail_points", point], cwd=CHECKOUT, env={**os.environ, "PYTHONPATH": "."}
        )
        try:
            code = worker.wait(60)  # bells go round among those that wait for them
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
            return []
        assert code == -signal.SIGKILL, f"the worker that was to die at {point} ended with code {code}"
        return [worker.pid]

    def _has_recovered(self, what: str, gone: list[int], waited_for: list[str]) -> bool:
        """Are the programs there again, and has somebody else what the dead ones held? Of what is over, nothing is left to hold. What is not so
        yet is noted in `waited_for`: a program that is slow to start again is the machine's load, an attempt that nobody takes is not."""
        found = self._not_yet(what, gone)
        if found:
            waited_for.append(found)
        return not found

    def _not_yet(self, what: str, gone: list[int]) -> str:
        with self._ground.looking():
            held = Watch.objects.filter(Q(attempt__status__in=sorted(OPEN_ATTEMPTS)) | Q(attempt__in=collecting()))
            for pid in gone:
                if (count := held.filter(lease_holder__contains=f":{pid}:").count()) > 0:
                    return f"{count} attempts are held by the dead {pid}"
        if what == "web":
            with suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                self._labsite.ask("runs?limit=1")
                return ""
            return "no answer of the web"
        if what in POINTS:
            return ""
        there = self._labsite.programs(PROGRAMS[what])
        return "" if not set(there) & set(gone) and len(there) >= len(gone) else f"{what} is not started again"

    def _until(self, holds: Any, since: float | None = None) -> float:
        """Seconds until it holds, at most until it counts as stuck."""
        began = time.monotonic() if since is None else since
        while not holds() and time.monotonic() - began < STUCK_SECONDS:
            time.sleep(0.1)
        return time.monotonic() - began

    # --- Runs ---------------------------------------------------------------------------------------------------------------------------

    def _keep_launching(self) -> None:
        """A launch whose answer was lost is asked for again under the same key: it is one run."""
        number, key = 0, secrets.token_hex(16)
        while not self._over.wait(0.1):
            if len(self._launched) - len(self._ended_now()) >= AHEAD:
                continue
            pool = self._favoured if number % 2 else self._pools[number // 2 % len(self._pools)]
            body = {**self._ground.request, "compute_pool_id": pool, "budget": {"gpu_hours": 0.02}}
            with suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                run = self._labsite.ask("runs", body, seconds=30, **{"Idempotency-Key": key})
                self._launched[run["uuid"]] = time.monotonic()
                number, key = number + 1, secrets.token_hex(16)

    def _ended_now(self) -> set[str]:
        with self._ground.looking():
            return {str(pk) for pk in Run.objects.filter(status__in=sorted(TERMINAL)).values_list("pk", flat=True)}

    def _in_flight_on(self, pool: str) -> list[str]:
        with self._ground.looking():
            return [str(pk) for pk in Run.objects.filter(pool__slug=pool).exclude(status__in=sorted(TERMINAL)).values_list("pk", flat=True)]

    # --- What must hold -----------------------------------------------------------------------------------------------------------------

    def _faults(self, in_flight: list[str]) -> list[str]:
        with self._ground.looking():
            faults = [f"ledger: {line}" for line in recount()]
            if not verify_chain().is_whole:
                faults.append("the chain of the record is broken")
            if lost := Run.objects.filter(pk__in=in_flight).exclude(status="succeeded"):
                faults += [f"lost: {run.name} is {run.status}, {run.reason}" for run in lost]
            if len(in_flight) != Run.objects.filter(pk__in=in_flight).count():
                faults.append("a run that was launched is not there")
            ends = AuditEvent.objects.filter(verb__in=ENDS, subject_id__in=in_flight).order_by().values_list("subject_id")
            faults += [f"doubled: {run} has ended {count} times" for run, count in ends.annotate(count=Count("pk")) if count != 1]
            many = Attempt.objects.filter(run__in=in_flight).order_by().values_list("run").annotate(count=Count("pk"))
            faults += [f"doubled: {run} has {count} attempts" for run, count in many if count != 1]
            faults += [f"doubled: {path}" for path in self._started_not_once(in_flight)]
            # One statement, so one moment: runs go on ending while this looks.
            closed = Attempt.objects.filter(pk__in=EngineSlot.objects.values("attempt_id")).exclude(status__in=sorted(OPEN_ATTEMPTS))
            faults += [f"a place is held for {attempt.key}, which has ended" for attempt in closed]
            for pool in self._pools:
                attempts = {attempt.key: attempt for attempt in Attempt.objects.filter(run__in=in_flight, pool__slug=pool)}
                faults += self._engines.differs(pool, attempts) if attempts else []
            return faults + self._strangers()

    def _started_not_once(self, in_flight: list[str]) -> list[str]:
        """Runs whose program has not started exactly once, by its own word."""
        found = []
        rows = {str(row.run_id): row for row in Artifact.objects.filter(run__in=in_flight, path="starts").select_related("blob")}
        for run in in_flight:
            row = rows.get(run)
            said = b"".join(store.open(row.blob.region, self._ground.laboratory.workspace.pk, row.blob.sha256)) if row else b""
            if said != b"started\n":
                found.append(f"{run} has started {said.count(b'started')} times")
        return found

    def _strangers(self) -> list[str]:
        """What the pools still have and labsite has ended."""
        found = []
        for pool in Pool.objects.filter(slug__in=self._pools).select_related("engine"):
            at = place_in(pool, pool.isolation)
            living = at.living(self._ground.laboratory.workspace.pk.hex)
            ended = list(Attempt.objects.filter(key__in=living).exclude(status__in=sorted(OPEN_ATTEMPTS)))
            # An engine lets go of a job a little after its end: only what lives on behind that is a stranger.
            still, until = living, time.monotonic() + RECORD_SECONDS
            while {attempt.key for attempt in ended} & set(still) and time.monotonic() < until:
                time.sleep(0.5)
                still = at.living(self._ground.laboratory.workspace.pk.hex)
            found += [f"{attempt.key} lives on {pool.slug}, and has ended here" for attempt in ended if attempt.key in still]
        folders = list((Path(settings.LABSITE_RUNS) / "runs" / self._ground.laboratory.workspace.pk.hex).glob("lab-*"))
        known = set(Attempt.objects.filter(key__in=[folder.name for folder in folders]).values_list("key", flat=True))
        return found + [f"{folder.name} is no attempt of ours" for folder in folders if folder.name not in known]
