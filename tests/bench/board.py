"""A scoreboard of 100,000 evaluations: `make bench BENCH=board ARGS=[evaluations]`.

One run each, of 20 agents, with ties, NaN and infinities among the scores, and as many scores of another metric. The time that the page of the
benchmark takes in all, database and this process, beside that of the page of one artifact, both asked through the test client. Target: under 5
times.

And as many of a benchmark whose contract ranks over seeds, five of them a row; home, which asks who leads it.
"""

import math
import os
import random
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django.setup()

from django.conf import settings  # noqa: E402  # after the settings are read, as everything below
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import override_settings  # noqa: E402

from labsite.owner import as_owner  # noqa: E402
from runs.models import Run  # noqa: E402
from tests.factories_pages import add_artifact, client_of, copy_runs, score_runs  # noqa: E402
from tests.factories_registry import make_agent_version, make_benchmark  # noqa: E402
from tests.factories_runs import Laboratory, launch, make_laboratory  # noqa: E402
from tests.targets import judged, leave  # noqa: E402
from workspaces.models import AgentVersion  # noqa: E402

PLAIN = {**settings.STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
AGENTS, ROUNDS = 20, 5
MOST_TIMES = 5.0
ODD = (float("nan"), float("inf"), float("-inf"))
SELF, SEEDS = "benchmarks/accuracy/", "benchmarks/seeds/"
PAGES = (SELF, *(SELF + rest for rest in ("?rows=best", "?from=5000", "?metric=loss", "?metric=loss&order=mean", "csv/")))
OVER_SEEDS = (SEEDS, *(SEEDS + rest for rest in ("?from=5000", "?rows=all", "csv/")), "")
OF_ROW = 5  # seeds


def fill(laboratory: Laboratory, pattern: Run, count: int) -> None:
    """So many runs with a score each, a thousandth of them no number, and each value about ten times."""
    chance = random.Random(5)  # noqa: S311  # the same scores each time
    values = [round(chance.gauss(0.7, 0.1), 4) for _ in range(max(1, count // 10))]
    for agent in range(AGENTS):
        version = make_agent_version(laboratory.owner, f"agent-{agent}", wall_seconds=60)
        made = copy_runs(
            actor=laboratory.owner, pattern=pattern, count=count // AGENTS, agent_id=version.agent_id, agent_version_id=version.pk
        )
        scores: dict[Run, tuple[float, float | None]] = {
            run: (ODD[place // 1000 % len(ODD)] if place % 1000 == 0 else chance.choice(values), 0.01) for place, run in enumerate(made)
        }
        assert any(math.isnan(value) for value, _ in scores.values())
        score_runs(actor=laboratory.owner, scores=scores)
        score_runs(actor=laboratory.owner, scores={run: (chance.random(), None) for run in made}, metric="loss")
    vacuum()


def fill_seeds(laboratory: Laboratory, pattern: Run, count: int) -> None:
    """So many runs, OF_ROW alike but for the seed, a five thousandth of them with a score that is no number."""
    chance = random.Random(6)  # noqa: S311  # the same scores each time
    for version in AgentVersion.objects.filter(agent__slug__startswith="agent-").order_by("agent__slug"):
        each = [
            {"seed": place % OF_ROW, "parameters": {"rate": (place // OF_ROW) / 1000, "layers": 12, "optimizer": "adamw", "batch": 64}}
            for place in range(count // AGENTS)
        ]
        made = copy_runs(
            actor=laboratory.owner, pattern=pattern, count=len(each), each=each, agent_id=version.agent_id, agent_version_id=version.pk
        )
        values = [ODD[0] if place % 5000 == 0 else round(chance.gauss(0.7, 0.1), 4) for place in range(len(made))]
        score_runs(actor=laboratory.owner, scores={run: (value, 0.01) for run, value in zip(made, values, strict=True)})
        score_runs(actor=laboratory.owner, scores={run: (chance.random(), None) for run in made}, metric="loss")
    vacuum()


def vacuum() -> None:
    """As autovacuum does within a minute."""
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) runs_evaluation, runs_run, runs_artifact")


def cost_of(browser: Client, path: str) -> tuple[float, float]:
    """Seconds of CPU of this process, and in all; the best of some rounds, since other programs only ever add."""
    cpu, whole = [], []
    for _ in range(ROUNDS):
        began, begun = time.process_time(), time.perf_counter()
        answer = browser.get(path)
        assert answer.status_code == 200, f"{path} answers {answer.status_code}"
        if answer.streaming:
            for _ in answer:
                pass
        cpu.append(time.process_time() - began)
        whole.append(time.perf_counter() - begun)
    return min(cpu), min(whole)


def show(browser: Client, page: str, one: float, one_whole: float, count: int) -> None:
    """Times of a page beside those of the page of one artifact, and whether it is within the target, where it has one."""
    cpu, whole = cost_of(browser, f"/workspaces/lab/{page}")
    said = ""
    if page == SELF:
        said = (
            f"   target under {MOST_TIMES:.0f} times in all: {judged(f'scoreboard of {count} evaluations', whole < MOST_TIMES * one_whole)}"
        )
    name = page or "home"
    print(f"{name:40} {cpu * 1000:7.1f} ms of CPU {whole * 1000:8.0f} ms in all, {cpu / one:5.1f} and {whole / one_whole:5.1f} times{said}")


def main(count: int) -> None:
    call_command("migrate", verbosity=0)
    laboratory = make_laboratory()
    with laboratory.opened():
        pattern = launch(laboratory)
        made = add_artifact(actor=laboratory.owner, run=pattern, path="x", content=b"x")
        fill(laboratory, pattern, count)
    browser = client_of(laboratory.owner)
    browser.defaults["SERVER_NAME"] = "localhost"
    one, one_whole = cost_of(browser, f"/workspaces/lab/artifacts/{made.public_id}/")
    print(f"{'page of one artifact':40} {one * 1000:7.1f} ms of CPU {one_whole * 1000:8.0f} ms in all")
    for page in PAGES:
        show(browser, page, one, one_whole, count)
    with laboratory.opened():
        make_benchmark(laboratory.owner, "seeds", over_seeds="mean")
        fill_seeds(laboratory, launch(laboratory, benchmark="seeds"), count)
    for page in OVER_SEEDS:
        show(browser, page, one, one_whole, count)
    leave()


if __name__ == "__main__":
    with override_settings(STORAGES=PLAIN):
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
