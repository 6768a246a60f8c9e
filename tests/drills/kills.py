"""SIGKILL, many times, with many runs in flight, and after each that nothing is lost, doubled, stuck or wrong:
`python tests/drills/kills.py [kills] [--seed N] [--report FILE] [--only NAME] [--local] [--ssh] [--slurm] [--ray]`.

A whole installation under `manage.py up`. Runs are launched all the time, on the local pool, a real SSH host, a real Slurm of three nodes and a
real Ray head: of 500 kills 170 are on the local pool, 150 on SSH, 150 on Slurm and 30 on Ray. Half of the runs are on that engine then, the others
on all. Where engines are named, kills are on these and the local pool, in turn. 500 take an hour and a half on two quiet cores. Each kill takes
a program at a random moment (a dispatcher, the watcher, the collector, the worker of everything else, the clock, a web worker, all workers at
once), or a worker at a named point (tests/drills_fail_points.py). What is killed, and when, follows from the seed and the number of the kill.

After each: every run that was in flight ends, once, within 120 s, and has started once, by its own word and by the pool's folders; the ledger
recounts to its balances, the chain of the record is whole, places held are those of open attempts, the pools know no attempt that labsite
has not, and Slurm (squeue) and Ray (its list of jobs) have each attempt once, as ended. A line of JSON for each kill goes to the report; a drill
that was cut off goes on behind the last line of its seed, and the sums at the end are of the whole file, whatever the seeds. Of a recovery that
took long the report has what was waited for last, and the load of the machine.
"""

import argparse
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from tests.installation import Installation

RECOVERY_SECONDS = 15.0
OTHERS = ("ssh", "slurm", "ray")


def main(kills: int, seed: int, report: Path, *, only: str, engines: tuple[str, ...], mix: bool) -> int:
    lines = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
    others, done = [line for line in lines if line["seed"] != seed], [line for line in lines if line["seed"] == seed]
    if len(done) < kills:
        with Installation() as labsite:
            # Django reads its settings when it is first imported: after the installation has its folders.
            import django  # noqa: PLC0415

            django.setup()
            from tests.drills_engines import engine_of  # noqa: PLC0415
            from tests.drills_kills import Drill  # noqa: PLC0415

            with Drill(labsite, engines) as drill, report.open("a") as file:
                for number in range(len(done), kills):
                    chance, engine = random.Random(f"{seed}/{number}"), engine_of(number, engines, mix=mix)  # noqa: S311  # no secret
                    line = {"seed": seed, "number": number, **drill.kill(chance, engine, only)}
                    file.write(json.dumps(line) + "\n")
                    file.flush()
                    done.append(line)
                    print(words(line), flush=True)
                drill.settle()
    return tell(others + done)


def words(line: dict[str, Any]) -> str:
    faults = "; ".join(line["faults"]) or "nothing lost, doubled, stuck or wrong"
    return (
        f"{line['number'] + 1:4}  {line['engine']:5} {line['what']:22} recovered in {line['recovered_seconds']:5.1f} s, "
        f"{line['in_flight']:3} in flight ended in {line['ended_seconds']:5.1f} s: {faults}"
    )


def tell(done: list[dict[str, Any]]) -> int:
    by_what, faults = Counter(line["what"] for line in done), [fault for line in done for fault in line["faults"]]
    by_engine = Counter(line.get("engine", "local") for line in done)
    for engine, count in sorted(by_engine.items()):
        wrong = sum(len(line["faults"]) for line in done if line.get("engine", "local") == engine)
        print(f"on {engine:19} {count:5} kills, faults {wrong}")
    for what, count in sorted(by_what.items()):
        longest = max(line["recovered_seconds"] for line in done if line["what"] == what)
        print(f"{what:22} {count:5} kills, longest recovery {longest:5.1f} s")
    most = max(line["recovered_seconds"] for line in done)
    print(
        f"{len(done)} kills = {' + '.join(str(count) for _, count in sorted(by_what.items()))}; {sum(line['ended'] for line in done)} runs ended"
    )
    verdict = "met" if most < RECOVERY_SECONDS else "MISSED"
    print(f"faults {len(faults)}; longest recovery {most:.1f} s, target under {RECOVERY_SECONDS:.0f}: {verdict}")
    for line in done:
        if line["recovered_seconds"] >= RECOVERY_SECONDS:
            print(f"  {line['recovered_seconds']} s after {line['what']}: waited for {line.get('waited_for')}, load {line.get('load')}")
    for fault in faults:
        print(f"  {fault}")
    return 1 if faults or most >= RECOVERY_SECONDS else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kills", type=int, nargs="?", default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path, default=Path("kills.jsonl"))
    parser.add_argument("--only", default="", help="a program or a point, as they stand in the report")
    parser.add_argument("--local", action="store_true", help="runs on the local pool alone")
    for engine in OTHERS:
        parser.add_argument(f"--{engine}", action="store_true", help=f"runs on a real {engine} beside the local pool, and on no other")
    asked = parser.parse_args()
    named = ("local", *(engine for engine in OTHERS if getattr(asked, engine)))
    is_mix = named == ("local",) and not asked.local
    raise SystemExit(
        main(asked.kills, asked.seed, asked.report, only=asked.only, engines=("local", *OTHERS) if is_mix else named, mix=is_mix)
    )
