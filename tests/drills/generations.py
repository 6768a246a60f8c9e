"""Generations of the Go laboratory by its own policies: `python tests/drills/generations.py [generations] [--report FILE]`, 20 where nothing is said.

A whole installation under `manage.py up` makes autogo-main. The researcher proposes versions of its policies that go on for so long; the approver
lets them act, and says yes to each checkpoint that is put forward since it leads in the arena. Everything else, games of the champion, sweeps,
arenas and the next games, the policies launch, from random weights and without a game of people.

Then, from the checkpoints alone: the last champion against the first at equal simulations; how often its search opens 5x5 in the centre, the move
that wins the whole board (van der Werf, van den Herik and Uiterwijk, "Solving Go on small boards", 2003), over 20 search seeds with noise at the
root; and what its policy head says of the empty board by itself. A line of JSON for each generation goes to the report.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from labsite.embedded.home import CHECKOUT
from labsite.embedded.pool_python import LOCK
from tests.installation import Installation
from tests.targets import judged, leave

PLAYED, SEEDS, CENTRE_AT_LEAST = 200, 20, 18


def main(generations: int, report: Path) -> None:
    labsite = Installation()
    _furnish(labsite)
    began = time.monotonic()
    with labsite:
        # Django reads its settings when it is first imported: after the installation has its folders.
        import django  # noqa: PLC0415

        django.setup()
        from tests.drills_generations import Loop  # noqa: PLC0415

        labsite.manage("example", "autogo", "--set-up-only")
        loop = Loop(generations)
        loop.begin()
        with report.open("a") as file:
            for one in loop.generations():
                file.write(json.dumps({**one, "seconds": round(time.monotonic() - began)}) + "\n")
                file.flush()
                seconds = time.monotonic() - began
                print(
                    f"generation {one['generation']:3} after {seconds:6.0f} s: {one['champions']} champions, {one['runs']} runs", flush=True
                )
        first, last = loop.checkpoints(labsite.place)
        loop.verify()
        asked = [str(first), str(last), str(PLAYED), str(SEEDS)]
        told = subprocess.run(
            [str(labsite.place / "runs" / "python" / "bin" / "python"), str(CHECKOUT / "tests" / "drills_go_match.py"), *asked],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    found = json.loads(told.stdout)
    report.open("a").write(json.dumps(found) + "\n")
    low = found["share"] - 1.96 * found["share_error"]
    words = f"{found['share']:.3f} ± {found['share_error']:.3f} of {PLAYED} games at {found['simulations']} simulations"
    print(f"last champion against the first   {words}     target: 95 % above a half: {judged('last beats first', low > 0.5)}")
    print(
        f"search opens in the centre        {found['centre']} of {SEEDS} seeds     target at least {CENTRE_AT_LEAST}: "
        f"{judged('opens in the centre', found['centre'] >= CENTRE_AT_LEAST)}"
    )
    print(f"policy head alone                 {found['prior_centre']:.3f} on the centre, most on {found['prior_first']}; told, not judged")


def _furnish(labsite: Installation) -> None:
    """What the agents run on, into the environment of the installation's runs."""
    python = labsite.place / "runs" / "python" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--require-hashes", "-r", str(LOCK)], check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("generations", nargs="?", type=int, default=20)
    parser.add_argument("--report", type=Path, default=Path("generations.jsonl"))
    given = parser.parse_args()
    main(given.generations, given.report)
    leave()
