"""The plug is pulled on every program while the Go sweep runs; nothing changes but the time:
`python tests/drills/sweep_plug.py [--every SECONDS] [--ssh] [--slurm] [--ray]`.

A whole installation under `manage.py up`. The seeded sweep of the Go laboratory runs on the pools asked for, once left alone, once while SIGKILL
takes whatever runs: labsite's programs in turn, all workers at once among them, Valkey, PostgreSQL, the engines' own (sshd, slurmctld, a slurmd,
the head of Ray with its jobs), and the launcher of a member at work; a member whose job goes with one of them is tried once more. Every member must
have the same score and the same checkpoint, bit for bit. Prints both times and how many attempts there were; exit code 0 only where all are equal,
each server, each of the engines' programs and a launcher were killed, the ledger recounts and the record verifies.
"""

import argparse
import json
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Any

from tests.installation import Installation, children_of

LONGEST_SECONDS, LEAST_SECONDS = 300.0, 1.0
SERVERS = {"valkey": "valkey-server", "postgresql": "postgres"}
OLD_SECONDS = 60  # a server that falls in its first minute is taken for one that cannot stay up
LAUNCHER = "launcher"
SLOWLY = {"epochs": 6, "seconds_per_epoch": 6}  # so that all of them are killed before it ends


def main(every: float, pools: tuple[str, ...]) -> int:
    with Installation() as labsite:
        began = time.monotonic()
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
                alone, seconds, _ = swept(labsite, laboratory, "alone", pools, {}, 0.0)
                print(f"left alone: {len(alone)} members in {seconds:.1f} s", flush=True)
                time.sleep(max(0.0, OLD_SECONDS + 5 - (time.monotonic() - began)))
                plugged, seconds, killed = swept(labsite, laboratory, "plugged", pools, engines.plugs, every)
                print(f"plug pulled {sum(killed.values())} times ({dict(killed)}): {len(plugged)} members in {seconds:.1f} s", flush=True)
            finally:
                engines.close()
        for name, found in (("left alone", alone), ("with the plug pulled", plugged)):
            print(f"attempts {name}: {[told[0] for told in found.values()]}")
        alone, plugged = ({member: told[1:] for member, told in found.items()} for found in (alone, plugged))
        spared = [what for what in (*SERVERS, LAUNCHER, *engines.plugs) if not killed[what]]
        if spared:
            print(f"not killed, since the sweep had ended: {', '.join(spared)}; ask for a slower pace with --every")
        different = [member for member in sorted(alone) if alone[member] != plugged.get(member)]
        for member in different:
            print(f"  {member}: {alone[member]} alone, {plugged.get(member)} with the plug pulled")
        failed = [member for member, (status, *_) in alone.items() if status != "succeeded"]
        print(f"members that did not succeed when left alone: {len(failed)}")
        print(f"members whose score or checkpoint differs: {len(different)} of {len(alone)}")
        print(labsite.manage("recount").strip())
        print(labsite.manage("verify").strip())
        return 1 if failed or different or len(alone) != len(plugged) or spared else 0


def swept(
    labsite: Installation, laboratory: Any, name: str, pools: tuple[str, ...], plugs: dict[str, Callable[[], None]], every: float
) -> tuple[dict[str, tuple[object, ...]], float, Counter[str]]:
    """Ask for the sweep on each pool and wait for its end, with a kill every so many seconds unless 0. Results by member, seconds, kills."""
    from django.db import Error, connection  # noqa: PLC0415  # after settings have their folders, as the next

    from labsite.examples.autogo import plan  # noqa: PLC0415
    from runs.commands.sweep import create_sweep  # noqa: PLC0415
    from runs.launch import LaunchRequest  # noqa: PLC0415
    from runs.models import Attempt, Sweep  # noqa: PLC0415
    from tests.drills_kills import PROGRAMS  # noqa: PLC0415
    from tests.runs.test_sweep_on_four_pools import QUICK, SPACE  # noqa: PLC0415

    began, killed = time.monotonic(), Counter[str]()
    once, programs = [LAUNCHER, *plugs, *SERVERS], cycle(PROGRAMS)
    with laboratory.opened():
        for pool in pools:
            request = LaunchRequest(
                benchmark=plan.FAST_LEARNING.slug,
                agent=plan.POLICY_RUNNER.slug,
                datasets=("games",),
                parameters={**QUICK, **SLOWLY},
                pool=pool,
            )
            create_sweep(actor=laboratory.owner, name=f"{name}-{pool}", space=SPACE, request=request)
    while True:
        time.sleep(every or 0.5)
        with suppress(Error):
            connection.close()  # servers come and go
            with laboratory.opened():
                if not Sweep.objects.filter(status=Sweep.Status.RUNNING).exists():
                    break
                at_work = Attempt.objects.filter(status="running").exclude(pool__slug="ray")  # its head takes a try of each already
                keys = [attempt.key for attempt in at_work.order_by("-started_at")]
        assert time.monotonic() - began < LONGEST_SECONDS, f"the sweep {name} has not ended in {LONGEST_SECONDS:.0f} s"
        if every:
            what = once.pop(0) if once and (once[0] != LAUNCHER or keys) else next(programs)
            if what in plugs:
                plugs[what]()
                killed[what] += 1
            for pid in () if what in plugs else victims(labsite, what, keys):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed[what] += 1
            if what == LAUNCHER and not killed[what]:
                once.insert(0, what)  # it had ended meanwhile
    return results(laboratory, name, pools), time.monotonic() - began, killed


def victims(labsite: Installation, what: str, keys: list[str]) -> list[int]:
    """Process ids to kill; `keys` are those of attempts at work, the newest first."""
    from tests.drills_kills import PROGRAMS  # noqa: PLC0415  # after settings have their folders

    if what == LAUNCHER:
        return next((found for key in keys if (found := launcher_of(key))), [])[:1]
    found = labsite.programs(PROGRAMS.get(what) or SERVERS[what])
    if what == "web" and found:
        found = list(children_of(found[0]))
    return found if what == "all workers" else found[:1]


def launcher_of(key: str) -> list[int]:
    """The launcher of an attempt whose program works on this machine, in whichever pool: its lock lies in the run folder."""
    for name in os.listdir("/proc"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            place = Path(f"/proc/{name}/cwd").readlink() if name.isdigit() else Path()
            if key in place.parts:
                folder = Path(*place.parts[: place.parts.index(key) + 1])
                return [int(json.loads((folder / "state" / "lock").read_text())["launcher"]["pid"])]
    return []


def results(laboratory: Any, name: str, pools: tuple[str, ...]) -> dict[str, tuple[object, ...]]:
    """Of each member: its attempts, its status, its score, and the hash of its checkpoint."""
    from runs.models import Artifact, Attempt, Evaluation, Run  # noqa: PLC0415  # after settings have their folders

    found: dict[str, tuple[object, ...]] = {}
    with laboratory.opened():
        for pool in pools:
            for run in Run.objects.filter(sweep__name=f"{name}-{pool}").order_by("sweep_member"):
                scores = Evaluation.objects.filter(run=run).values_list("value", "standard_error", "samples")
                checkpoints = Artifact.objects.filter(run=run, kind="checkpoint").order_by("path").values_list("path", "blob__sha256")
                attempts = Attempt.objects.filter(run=run).count()
                found[f"{pool} {run.sweep_member}"] = (attempts, str(run.status), list(scores), list(checkpoints))
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
