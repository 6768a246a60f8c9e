"""The plug is pulled on every program while the Go sweep runs; nothing changes but the time:
`python tests/drills/sweep_plug.py [--every SECONDS] [--ssh] [--slurm] [--ray]`.

A whole installation under `manage.py up`. The seeded sweep of the Go laboratory runs on the pools asked for, once left alone, once while SIGKILL
takes labsite's programs in turn, all workers at once among them. Every member must have the same score and the same checkpoint, bit for bit, from
one attempt. Prints both times; exit code 0 only where all are equal, the ledger recounts and the record verifies.
"""

import argparse
import os
import signal
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

from tests.installation import Installation, children_of

LONGEST_SECONDS, LEAST_SECONDS = 300.0, 1.0


def main(every: float, pools: tuple[str, ...]) -> int:
    with Installation() as labsite:
        # Django reads its settings when it is first imported: after the installation has its folders.
        import django  # noqa: PLC0415

        django.setup()
        from django.conf import settings  # noqa: PLC0415

        from labsite.examples.autogo import plan  # noqa: PLC0415
        from tests.drills_engines import Engines  # noqa: PLC0415
        from tests.examples.autogo.bundle import start  # noqa: PLC0415
        from tests.factories_people import make_operator  # noqa: PLC0415
        from tests.runs.pool_environment import made_environment  # noqa: PLC0415
        from tests.runs.test_sweep_on_four_pools import go_laboratory  # noqa: PLC0415
        from workspaces.commands.engine import change_engine  # noqa: PLC0415

        with contextmanager(made_environment)() as python, tempfile.TemporaryDirectory() as folder:
            link = settings.LABSITE_RUNS / "python"
            link.unlink()
            link.symlink_to(python)
            asked = {"games": 8, "games_per_piece": 8, "simulations": 8, "replay": "never"}
            played = start(str(python / "bin/python"), Path(folder) / "games", plan.SELFPLAY_WORKER, None, asked)
            assert played.code == 0, played.stderr
            operator = make_operator()
            change_engine(actor=operator, slug="local", slots=16)  # not the machine's own count
            laboratory = go_laboratory(sorted((played.folder / "outputs").iterdir()))
            engines = Engines(laboratory, operator, pools, python)
            try:
                alone, seconds, _ = swept(labsite, laboratory, "alone", pools, 0.0)
                print(f"left alone: {len(alone)} members in {seconds:.1f} s", flush=True)
                plugged, seconds, killed = swept(labsite, laboratory, "plugged", pools, every)
                print(f"plug pulled {sum(killed.values())} times ({dict(killed)}): {len(plugged)} members in {seconds:.1f} s", flush=True)
            finally:
                engines.close()
        different = [member for member in sorted(alone) if alone[member] != plugged.get(member)]
        for member in different:
            print(f"  {member}: {alone[member]} alone, {plugged.get(member)} with the plug pulled")
        failed = [member for member, (status, *_) in alone.items() if status != "succeeded"]
        print(f"members that did not succeed when left alone: {len(failed)}")
        print(f"members whose score or checkpoint differs: {len(different)} of {len(alone)}")
        print(labsite.manage("recount").strip())
        print(labsite.manage("verify").strip())
        return 1 if failed or different or len(alone) != len(plugged) or not killed else 0


def swept(
    labsite: Installation, laboratory: Any, name: str, pools: tuple[str, ...], every: float
) -> tuple[dict[str, tuple[object, ...]], float, Counter[str]]:
    """Ask for the sweep on each pool and wait for its end, with a kill every so many seconds unless 0. Results by member, seconds, kills."""
    from labsite.examples.autogo import plan  # noqa: PLC0415  # after settings have their folders, as the next
    from runs.commands.sweep import create_sweep  # noqa: PLC0415
    from runs.launch import LaunchRequest  # noqa: PLC0415
    from runs.models import Sweep  # noqa: PLC0415
    from tests.drills_kills import PROGRAMS  # noqa: PLC0415
    from tests.runs.test_sweep_on_four_pools import QUICK, SPACE  # noqa: PLC0415

    began, killed, programs = time.monotonic(), Counter[str](), cycle(PROGRAMS)
    with laboratory.opened():
        for pool in pools:
            request = LaunchRequest(
                benchmark=plan.FAST_LEARNING.slug, agent=plan.POLICY_RUNNER.slug, datasets=("games",), parameters=QUICK, pool=pool
            )
            create_sweep(actor=laboratory.owner, name=f"{name}-{pool}", space=SPACE, request=request)
    while True:
        time.sleep(every or 0.5)
        with laboratory.opened():
            if not Sweep.objects.filter(status=Sweep.Status.RUNNING).exists():
                break
        assert time.monotonic() - began < LONGEST_SECONDS, f"the sweep {name} has not ended in {LONGEST_SECONDS:.0f} s"
        if every:
            what = next(programs)
            found = labsite.programs(PROGRAMS[what])
            found = list(children_of(found[0])) if what == "web" and found else found
            for pid in found if what == "all workers" else found[:1]:
                os.kill(pid, signal.SIGKILL)
                killed[what] += 1
    return results(laboratory, name, pools), time.monotonic() - began, killed


def results(laboratory: Any, name: str, pools: tuple[str, ...]) -> dict[str, tuple[object, ...]]:
    """Of each member: its status, its attempts, its score, and the hash of its checkpoint."""
    from runs.models import Artifact, Attempt, Evaluation, Run  # noqa: PLC0415  # after settings have their folders

    found: dict[str, tuple[object, ...]] = {}
    with laboratory.opened():
        for pool in pools:
            for run in Run.objects.filter(sweep__name=f"{name}-{pool}").order_by("sweep_member"):
                scores = Evaluation.objects.filter(run=run).values_list("value", "standard_error", "samples")
                checkpoints = Artifact.objects.filter(run=run, kind="checkpoint").order_by("path").values_list("path", "blob__sha256")
                attempts = Attempt.objects.filter(run=run).count()
                found[f"{pool} {run.sweep_member}"] = (str(run.status), attempts, list(scores), list(checkpoints))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two kills")
    for engine in ("ssh", "slurm", "ray"):
        parser.add_argument(f"--{engine}", action="store_true", help=f"also on a real {engine}")
    given = parser.parse_args()
    if given.every < LEAST_SECONDS:
        parser.error(f"labsite's programs take about a second to start again: {LEAST_SECONDS:.0f} second or more between two kills")
    raise SystemExit(main(given.every, ("local", *(engine for engine in ("ssh", "slurm", "ray") if getattr(given, engine)))))
