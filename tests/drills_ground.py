"""What drills and measurements stand on in an installation that runs: the workspace `lab`, a token, and a look into its database."""

import hashlib
import os
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.db import connection

from runs.lifecycle import ACTIVE, TERMINAL
from runs.models import Artifact, Attempt, KeptFile, MetricChunk, QueueItem, Run
from runs.place import place_of
from runs.queries.order import order_of
from tests.factories_people import make_operator
from tests.factories_runs import make_laboratory
from tests.installation import Installation, wait_until
from workspaces import store
from workspaces.commands.engine import change_engine
from workspaces.commands.token import create_token
from workspaces.models import AuditEvent, EngineSlot, LedgerAccount


class Ground:
    """The workspace `lab` with two places, and an agent that runs `code`. Each look takes a fresh connection, since servers come and go."""

    def __init__(
        self, labsite: Installation, code: bytes, *, slots: int = 2, at_once: int = 48, engine_slots: int = 0, wall_seconds: int = 60
    ) -> None:
        self.operator = make_operator()
        if engine_slots:  # else the machine's own count
            change_engine(actor=self.operator, slug="local", slots=engine_slots)
        self.laboratory = make_laboratory(code=code, slots=slots, at_once=at_once, wall_seconds=wall_seconds)
        with self.laboratory.opened():
            _, labsite.token = create_token(actor=self.laboratory.owner, name="drill", scopes=("run:read", "run:write"))
        self.request = {"benchmark_id": "accuracy", "agent_id": "worker", "dataset_ids": ["table"], "compute_pool_id": "local"}
        self.request |= {"budget": {"gpu_hours": 1}}  # type: ignore[dict-item]  # JSON

    def active(self) -> int:
        with self.looking():
            return Run.objects.filter(status__in=sorted(ACTIVE)).exclude(started_at=None).count()

    def attempts(self, run: dict[str, Any]) -> list[str]:
        with self.looking():
            return list(Attempt.objects.filter(run=run["uuid"]).order_by("number").values_list("status", flat=True))

    def steps(self, run: dict[str, Any]) -> list[int]:
        """Steps of the metric `loss` of the run's last attempt."""
        with self.looking():
            chunks = MetricChunk.objects.filter(series__run=run["uuid"], series__key="loss")
            last = max(chunks.values_list("attempt_number", flat=True), default=1)
            return [step for chunk in chunks.filter(attempt_number=last).order_by("pk") for step in chunk.steps]

    def kept(self, run: dict[str, Any]) -> int:
        """Files of a run that lie in the store while it is being collected."""
        with self.looking():
            return KeptFile.objects.filter(attempt__run=run["uuid"]).count()

    def outputs_are_whole(self, run: dict[str, Any]) -> int:
        """How many outputs a run has; each is in the store as its hash says."""
        with self.looking():
            rows = Artifact.objects.filter(run=run["uuid"]).exclude(path__startswith=".labsite/").select_related("blob")
            for row in rows:
                digest = hashlib.sha256()
                for piece in store.open(row.blob.region, self.laboratory.workspace.pk, row.blob.sha256):
                    digest.update(piece)
                assert digest.hexdigest() == row.blob.sha256, f"{row.path} is not whole"
            return len(rows)

    def check(self) -> None:
        """Nothing is held, and every run has ended once."""
        with self.looking():
            assert not QueueItem.objects.exists()
            assert not EngineSlot.objects.exists()
            assert not Run.objects.exclude(status__in=sorted(TERMINAL)).exists()
            ends = AuditEvent.objects.filter(verb__in=("run.ended", "run.cancelled", "run.overran"))
            assert ends.count() == Run.objects.count()
            assert set(LedgerAccount.objects.filter(side="reserved").values_list("balance", flat=True)) == {0}

    def flush_queue(self) -> None:
        """Empty the queue and everything else that Valkey holds."""
        with redis.Redis.from_url(settings.RQ_QUEUES["dispatch"]["URL"]) as client:
            client.flushall()

    def left_processes(self) -> list[int]:
        """Processes that work below the run folders."""
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and Path(f"/proc/{name}/cwd").readlink().is_relative_to(Path(settings.LABSITE_RUNS) / "runs"):
                    found.append(int(name))
            except OSError:
                continue
        return found

    def bare_starts(self, count: int) -> list[float]:
        """Seconds from the pool's submit to pid.json, of the last attempt's order under fresh keys, started from this process."""
        found = []
        with self.looking():
            attempt = Attempt.objects.select_related("pool__engine").latest("created_at")
            place, order = place_of(attempt), order_of(attempt)
            for _ in range(count):
                again = replace(order, key=f"bench-{secrets.token_hex(8)}")
                folder = Path(settings.LABSITE_RUNS) / "runs" / order.workspace / again.key
                began = time.time()
                place.submit(again)
                found.append((folder / "state" / "pid.json").stat().st_mtime - began)
                wait_until((folder / "state" / "exit.json").exists, "the end")
                place.remove(order.workspace, again.key)
        return found

    def looking(self) -> Any:
        """The scope of the workspace on a fresh connection: servers come and go."""
        connection.close()
        return self.laboratory.opened()
