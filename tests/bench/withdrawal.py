"""Withdrawing what much rests on: `make bench BENCH=withdrawal ARGS=[dependents]`.

Half as many runs as dependents have read one dataset version and left an artifact each, which the next run has read as well. Measured: the preview
with the blast radius, the command, undoing it, and the preview's page; beside each the same for a version that two things rest on. Then the command
once more, while another process launches a run ten times a second: how long the slowest launch took. Of three turns the best counts, since the
machine may do other things too. Targets, for 10,000 dependents: the command under 2 s, and no launch that takes longer than that.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django.setup()

from django.conf import settings  # noqa: E402  # after the settings are read, as everything below
from django.core.management import call_command  # noqa: E402
from django.db import connection, connections  # noqa: E402
from django.test.utils import override_settings  # noqa: E402

from labsite.owner import as_owner  # noqa: E402
from runs.commands.withdrawal import undo_withdrawal, withdraw  # noqa: E402
from runs.models import RunInput  # noqa: E402
from runs.queries.withdrawal import find_subject, radius  # noqa: E402
from tests.factories_pages import add_artifact, client_of  # noqa: E402
from tests.factories_registry import make_dataset_version  # noqa: E402
from tests.factories_runs import Laboratory, launch, make_laboratory  # noqa: E402
from tests.runs.story import chain_of  # noqa: E402
from tests.targets import judged, leave  # noqa: E402
from workspaces.models import DatasetVersion, Withdrawal, WithdrawnObject  # noqa: E402

TARGET_SECONDS, FULL, TURNS = 2.0, 10_000, 3
PLAIN = {**settings.STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}


def timed(asked: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    found = asked()
    return time.perf_counter() - begun, found


def measured(laboratory: Laboratory, version: DatasetVersion) -> dict[str, float]:
    """Seconds of each part, and how many objects were marked."""
    browser = client_of(laboratory.owner)
    browser.defaults["SERVER_NAME"] = "localhost"
    with laboratory.opened():
        node, label = find_subject("dataset_version", version.public_id)
        preview, found = timed(lambda: radius(node, label))

        def made() -> Withdrawal:
            return withdraw(actor=laboratory.owner, subject=node, label=label, reason="Bad.", fingerprint=found.fingerprint)

        command, withdrawal = timed(made)
        marked = WithdrawnObject.objects.filter(withdrawal=withdrawal).count()
        undone, _ = timed(lambda: undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="Good."))
    with launching(laboratory) as launches, laboratory.opened():
        time.sleep(1)  # so that it launches when the command begins
        again = made()
        time.sleep(0.2)
    with laboratory.opened():
        undo_withdrawal(actor=laboratory.owner, withdrawal=again, reason="Good.")
    page, answer = timed(lambda: browser.get(f"/workspaces/lab/withdrawals/{withdrawal.public_id}/"))
    assert answer.status_code == 200
    return {"objects": marked, "preview": preview, "command": command, "launch": max(launches), "undo": undone, "page": page}


def best(laboratory: Laboratory, version: DatasetVersion) -> dict[str, float]:
    turns = [measured(laboratory, version) for _ in range(TURNS)]
    return {part: min(turn[part] for turn in turns) for part in turns[0]}


@contextmanager
def launching(laboratory: Laboratory) -> Iterator[list[float]]:
    """Runs launched by a process of its own, meanwhile; afterwards the list has the seconds that each took."""
    seconds: list[float] = []
    stop, stopped = os.pipe()
    told, tell = os.pipe()
    connections.close_all()
    child = os.fork()
    if child == 0:
        os.close(stopped)
        os.set_blocking(stop, False)
        taken = []
        while _is_open(stop):
            time.sleep(0.1)
            with laboratory.opened():
                taken.append(timed(lambda: launch(laboratory, datasets=("beside",)))[0])
        os.write(tell, json.dumps(taken).encode())
        os._exit(0)
    os.close(tell)
    try:
        yield seconds
    finally:
        os.close(stopped)
        with open(told, "rb") as lines:
            seconds.extend(json.loads(lines.read()))
        os.waitpid(child, 0)
        os.close(stop)


def _is_open(pipe: int) -> bool:
    try:
        return os.read(pipe, 1) != b""
    except BlockingIOError:
        return True


def main(dependents: int) -> None:
    call_command("migrate", verbosity=0)
    laboratory = make_laboratory()
    with laboratory.opened():
        few = make_dataset_version(laboratory.owner, "few")
        make_dataset_version(laboratory.owner, "beside")
        pattern, alone = launch(laboratory), launch(laboratory, datasets=("few",))
        for run in (pattern, alone):
            add_artifact(actor=laboratory.owner, run=run, path="x", content=b"x")
        read = RunInput.objects.select_related("dataset_version").get(run=pattern)
    keys = chain_of(laboratory, pattern, dependents // 2 - 1)
    with as_owner(), laboratory.opened():
        RunInput.objects.bulk_create(
            [RunInput(run_id=key, slug="table", kind=read.kind, dataset_version=read.dataset_version, sha256=read.sha256) for key in keys]
        )
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    assert read.dataset_version is not None
    measured(laboratory, few)  # imports and first queries of the process
    one, many = best(laboratory, few), best(laboratory, read.dataset_version)
    print(f"{one['objects']:.0f} objects against {many['objects']:.0f}")
    for part in ("preview", "command", "launch", "undo", "page"):
        print(f"{part:8} {one[part]:7.3f} s   {many[part]:7.3f} s   {many[part] / one[part]:6.1f} x")
    if dependents == FULL:
        for part in ("command", "launch"):
            print(f"{part} under {TARGET_SECONDS} s: {judged(part, many[part] < TARGET_SECONDS)}")
    leave()


if __name__ == "__main__":
    with override_settings(STORAGES=PLAIN):
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
