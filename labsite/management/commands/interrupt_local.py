"""`manage.py interrupt_local`: end this machine's attempts before labsite stops; their runs go back to the queue, reservation kept."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import connection

from runs.commands.ending import interrupt_attempt
from runs.jobs.collect import keep_lines, records, remove_folder
from runs.jobs.watch import has_spent_all
from runs.lifecycle import OPEN_ATTEMPTS
from runs.models import Attempt, Watch
from runs.place import place_of
from runs.pools.base import PoolError, Status
from runs.queries.ours import ours
from runs.queries.site import busy_workspaces
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.models import Engine

GRACE_SECONDS = 5


class Command(BaseCommand):
    help = "End the attempts that run on this machine and put their runs back in the queue; `make run` calls it when it stops."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seconds", type=float, default=20.0, help="how long to wait for processes to end")

    def handle(self, *args: Any, **options: Any) -> None:
        deadline = time.monotonic() + options["seconds"]
        with scope.open_site("labsite stops and ends what runs on this machine"):
            busy = [found.workspace_id for found in busy_workspaces() if found.open_attempts]
        actor = Actor.system(job_id="interrupt_local")
        for workspace_id in busy:
            with scope.open_workspace(workspace_id):
                attempts = list(
                    Attempt.objects.filter(ours(), status__in=sorted(OPEN_ATTEMPTS), pool__engine__kind=Engine.Kind.LOCAL).select_related(
                        "pool__engine"
                    )
                )
                for attempt in attempts:
                    self._ask(attempt)
                for attempt in attempts:
                    self._interrupt(actor, attempt, deadline)
        connection.close()

    def _ask(self, attempt: Attempt) -> None:
        try:
            place_of(attempt).cancel(scope.current_id().hex, attempt.key, grace_seconds=GRACE_SECONDS)
        except PoolError as error:
            self.stderr.write(f"{attempt.key}: {error.reason}")

    def _interrupt(self, actor: Actor, attempt: Attempt, deadline: float) -> None:
        place = place_of(attempt)
        while True:
            try:
                seen = place.observe(scope.current_id().hex, attempt.key)
            except PoolError as error:
                self.stderr.write(f"{attempt.key}: {error.reason}")
                return
            if seen.status == Status.EXITED and seen.exit is not None:
                break
            if time.monotonic() > deadline:
                self.stderr.write(f"{attempt.key} has not ended yet; the next start takes it up again.")
                return
            time.sleep(0.05)
        attempt.refresh_from_db(fields=["cancel_asked_at"])
        if seen.exit.reason != "cancelled" or attempt.cancel_asked_at is not None:
            return  # it ended by itself, or as somebody wished: the next start records that end
        try:
            while not keep_lines(place, attempt, Watch.objects.get(attempt=attempt)):
                continue
            if has_spent_all(attempt.run, Watch.objects.get(attempt=attempt)):
                return  # its watcher ended it for that, or would have: the next start records that end
            interrupt_attempt(actor=actor, attempt=attempt, ended=seen.exit, harvest=records(place, attempt))
            remove_folder(place, attempt)
        except (Refusal, PoolError) as error:
            self.stderr.write(f"{attempt.key}: {error}")
