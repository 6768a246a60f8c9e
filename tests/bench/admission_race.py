"""Launches side by side: `make bench BENCH=admission_race ARGS="[rounds] [launches]"`, 10 rounds and 1,000 launches where nothing is said.

1. Each round 200 launches at once, from 50 connections, against room for 10: exactly 10 are admitted, to the unit, and the rest are refused with
   a certificate. 2. So many launches from 50 connections, all of which fit: p95 of the answer, target under 2 s. 3. As many with one
Idempotency-Key, asked again while the first is at work: one run, and the same answer to all. A whole installation under `manage.py up`; nothing
starts, since the pool's only slot is taken.
"""

import os
import statistics
import sys
import time
import urllib.error
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

from tests.installation import Installation, wait_until

CONNECTIONS, AT_ONCE, ROOM = 50, 200, 10
TARGET_SECONDS = 2.0
HOLDS = b"import time\ntime.sleep(3000)\n"


def main(rounds: int, launches: int) -> int:
    os.environ["LABSITE_LAUNCHES_A_MINUTE"] = "1000000"  # one account asks for them all
    with Installation() as labsite:
        # Django reads its settings when it is first imported: after the installation has its folders.
        import django  # noqa: PLC0415

        django.setup()
        from tests.drills_ground import Ground  # noqa: PLC0415
        from tests.drills_race import Race  # noqa: PLC0415

        ground = Ground(labsite, HOLDS, slots=1, wall_seconds=7200)
        race = Race(ground)
        labsite.ask("runs", {**ground.request, "budget": {"gpu_hours": 2}})
        wait_until(lambda: ground.active() == 1, "the run that holds the slot")

        def ask(_: int) -> tuple[str, float]:
            began = time.monotonic()
            try:
                answer = "admitted" if labsite.ask("runs", {**ground.request, "budget": {"gpu_hours": 1}}, seconds=600) else ""
            except urllib.error.HTTPError as refused:
                answer = str(refused.code)
            return answer, time.monotonic() - began

        with ThreadPoolExecutor(CONNECTIONS) as connections:
            wrong = 0
            for number in range(1, rounds + 1):
                race.make_room(ROOM)
                said = Counter(answer for answer, _ in connections.map(ask, range(AT_ONCE)))
                problem = race.faults(ROOM) or ("" if said["admitted"] == ROOM else f"{said['admitted']} were admitted")
                wrong += bool(problem)
                print(f"round {number}: {dict(said)} {problem}", flush=True)
                race.clear()
            print(f"{rounds} rounds of {AT_ONCE} against room for {ROOM}: {rounds - wrong} admitted exactly {ROOM}", flush=True)
            race.make_room(launches)
            began = time.monotonic()
            found: list[tuple[str, float]] = list(connections.map(ask, range(launches)))
            took = time.monotonic() - began
            problem = race.faults(launches)

            def ask_once(_: int) -> str:
                while True:
                    try:
                        body = {**ground.request, "budget": {"gpu_hours": 1}}
                        return str(labsite.ask("runs", body, seconds=600, **{"Idempotency-Key": "one-for-all"})["id"])
                    except urllib.error.HTTPError as busy:
                        if busy.code != HTTPStatus.CONFLICT:
                            return str(busy.code)
                        time.sleep(0.05)

            race.make_room(1)
            began = time.monotonic()
            same = Counter(connections.map(ask_once, range(launches)))
            print(f"{launches} requests with one key: {len(same)} answers in {time.monotonic() - began:.1f} s", flush=True)
            problem += "" if len(same) == 1 and next(iter(same)).startswith("run_") else f" one key: {dict(same)}"
            problem += race.faults(1)
        return tell(found, took, wrong, problem)


def tell(found: list[tuple[str, float]], took: float, wrong: int, problem: str) -> int:
    said: Counter[str] = Counter(answer for answer, _ in found)
    seconds: list[Any] = [spent for _, spent in found]
    p95 = statistics.quantiles(seconds, n=20, method="inclusive")[-1]
    print(f"{len(found)} launches from {CONNECTIONS} connections: {dict(said)} {problem}")
    print(
        f"p50 {statistics.median(seconds):.2f} s, p95 {p95:.2f} s, {len(found) / took:.1f} a second; target p95 under {TARGET_SECONDS:.0f} s: ",
        end="",
    )
    print("met" if p95 < TARGET_SECONDS else "MISSED")
    return 1 if wrong or problem or p95 >= TARGET_SECONDS else 0


if __name__ == "__main__":
    asked = [int(word) for word in sys.argv[1:]]
    raise SystemExit(main(asked[0] if asked else 10, asked[1] if len(asked) > 1 else 1000))
