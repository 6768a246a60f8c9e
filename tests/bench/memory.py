"""What the programs of an idle installation weigh: `make bench BENCH=memory`. Proportional set size, so that shared pages count once.

Every program has done its part before: pages were answered, a run was dispatched, watched and collected. Target: web and two workers under 400 MB.
"""

import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.installation import Installation, children_of, wait_until
from tests.targets import judged, leave

TARGET_MB = 400


def weight(pid: int) -> float:
    """Proportional set size of a process in MB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def family(pid: int) -> Iterator[int]:
    yield pid
    for child in children_of(pid):
        yield from family(child)


def main() -> None:
    with Installation() as labsite:
        import django  # noqa: PLC0415  # after the installation has set the environment

        django.setup()
        from tests.drills_ground import Ground  # noqa: PLC0415

        ground = Ground(labsite, b"print(1)\n")
        run = labsite.ask("runs", ground.request)
        wait_until(lambda: labsite.ask(f"runs/{run['id']}")["ended_at"], "the end of a run")
        for _ in range(40):
            urllib.request.urlopen(f"{labsite.url}/accounts/login/", timeout=30).close()  # noqa: S310  # ours, on loopback
        found = {"up": [labsite.process.pid] if labsite.process else []}
        for name, words in (
            ("web (master and two)", "gunicorn"),
            ("worker dispatch 1 and 2", "work dispatch"),
            ("worker watch", "work watch"),
            ("worker collect", "work collect"),
            ("worker default", "work default"),
            ("clock", "manage.py clock"),
        ):
            found[name] = [member for pid in labsite.programs(words) for member in family(pid)]
        sums = {name: sum(weight(pid) for pid in pids) for name, pids in found.items()}
    for name, megabytes in sums.items():
        print(f"{name:34} {megabytes:8.1f} MB")
    counted = sums["web (master and two)"] + sums["worker dispatch 1 and 2"]
    print(f"{'web and two workers':34} {counted:8.1f} MB    target {TARGET_MB} MB: {judged('memory', counted < TARGET_MB)}")
    print(f"{'all of labsite / those':34} {sum(sums.values()) / counted:8.2f}")


if __name__ == "__main__":
    main()
    leave()
