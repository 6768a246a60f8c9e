"""CPU time and statements of pages: `make bench BENCH=page_cost ARGS="[requests] [--profile]"`.

Through Django's test client, middleware and templates included, in the application's role on a real PostgreSQL; the CPU is this process's
own, not the server's. First in a small laboratory, then with 10,000 runs, then in both example laboratories with 10,000 runs each, in one
process. Targets: a page of one object at most 15 ms of CPU, home with 10,000 runs under 3 times that. What a page costs beside a bare Django
view, measured in the same process, means the same on other machines.
"""

import cProfile
import io
import math
import os
import pstats
import statistics
import sys
import time
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django.setup()

from django.conf import settings  # noqa: E402  # after the settings are read, as everything below
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.http import HttpRequest, HttpResponse  # noqa: E402
from django.template import engines  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext, override_settings  # noqa: E402
from django.urls import path  # noqa: E402

from labsite.examples.autogo.plan import SELF_PLAY_RUNS  # noqa: E402
from runs.models import Run  # noqa: E402
from tests.factories import make_user  # noqa: E402
from tests.factories_pages import add_artifact, add_attempt, add_series, client_of, copy_runs, score_runs, see, set_run  # noqa: E402
from tests.factories_registry import make_agent_version, make_benchmark, make_dataset_version  # noqa: E402
from tests.factories_runs import Laboratory, launch, make_laboratory  # noqa: E402
from tests.targets import judged, leave  # noqa: E402
from workspaces.access import Actor  # noqa: E402
from workspaces.models import Workspace  # noqa: E402
from workspaces.queries.workspace import find_workspace  # noqa: E402

RUNS = 10_000
PLAIN = {**settings.STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
ONE_MS, HOME_RATIO = 15.0, 3.0
CURVES, POINTS, LOG_BYTES = 6, 2_000, 64 * 2**20


def measure(client: Client, url: str, requests: int, etag: str = "") -> tuple[float, int]:
    """(CPU ms a request, statements of one); the best of five rounds, since other programs only ever add."""
    headers = {"if-none-match": etag} if etag else {}
    for _ in range(5):
        answer = client.get(url, headers=headers)
        assert answer.status_code in (200, 304), f"{url} answers {answer.status_code}"
    with CaptureQueriesContext(connection) as asked:
        client.get(url, headers=headers)
        statements = len(asked)
    rounds = []
    for _ in range(5):
        begun = time.process_time()
        for _ in range(requests):
            client.get(url, headers=headers)
        rounds.append((time.process_time() - begun) * 1000 / requests)
    return min(rounds), statements


def bare_view(request: HttpRequest) -> HttpResponse:
    return HttpResponse(ONE_LINE.render({"name": request.path}, request))


ONE_LINE = engines["django"].from_string("<!DOCTYPE html><title>{{ name }}</title>")


def measure_bare(requests: int) -> float:
    """CPU ms of Django itself: a view with a template of one line, no middleware, no statement."""
    with override_settings(ROOT_URLCONF=(path("", bare_view),), MIDDLEWARE=[]):
        return measure(Client(SERVER_NAME="localhost"), "/", 20 * requests)[0]


def make_examples() -> list[Laboratory]:
    """Both laboratories of `manage.py example`, as far as they stand without the pool's Python."""
    admin, *_ = [make_user(name, "create_workspace") for name in ("admin", "researcher", "approver")]
    found = []
    for name, slug in (("w2s", "w2s-medqa"), ("autogo", "autogo-main")):
        call_command("example", name, "--workspace", slug, "--set-up-only", stdout=io.StringIO())
        workspace = find_workspace(slug)
        assert isinstance(workspace, Workspace)
        found.append(Laboratory(workspace, Actor.of(admin)))
    return found


def fill_examples(laboratories: list[Laboratory]) -> None:
    """10,000 runs in each. The tables of w2s are made by the pool's Python: an own benchmark, dataset and agent stand for them."""
    w2s, autogo = laboratories
    with w2s.opened():
        make_benchmark(w2s.owner)
        make_dataset_version(w2s.owner)
        make_agent_version(w2s.owner, wall_seconds=60)
    fill(w2s)
    games = SELF_PLAY_RUNS[0]
    fill(autogo, benchmark=games.benchmark, agent=games.agent, datasets=(), parameters=dict(games.params), seed=games.seed)


def fill(laboratory: Laboratory, **asked: object) -> None:
    with laboratory.opened():
        pattern = launch(laboratory, reason="the first of many", **asked)
        ends = ("succeeded", "succeeded", "succeeded", "failed", "cancelled", "timed_out")
        made = copy_runs(actor=laboratory.owner, pattern=pattern, count=RUNS - 20, statuses=ends)
        copy_runs(actor=laboratory.owner, pattern=pattern, count=19, statuses=("queued",))
        score_runs(
            actor=laboratory.owner,
            scores={run: (0.5 + index % 400 / 1000, 0.02) for index, run in enumerate(made) if run.status == "succeeded"},
        )


def written(laboratory: Laboratory) -> Run:
    """A run under way that has written curves, a score and a long log."""
    with laboratory.opened():
        run = launch(laboratory, reason="to be looked at")
        see(add_attempt(actor=laboratory.owner, run=run), progress_done=1.0, progress_total=4.0)
        for number in range(CURVES):
            add_series(run, f"loss-{number}", [4.0 / (step + 1) + math.sin(step) for step in range(POINTS)])
        score_runs(actor=laboratory.owner, scores={run: (0.84, 0.012)})
        line = b"epoch 1234 step 123456 loss 0.412345 accuracy 0.8123\n"
        add_artifact(actor=laboratory.owner, run=run, path=".labsite/attempt-1/stdout.log", content=line * (LOG_BYTES // len(line)))
        set_run(actor=laboratory.owner, run=run, status="running", started_at=run.created_at - timedelta(hours=1))
    return run


def first_time(client: Client, url: str) -> float:
    """CPU ms of one request."""
    begun = time.process_time()
    assert client.get(url).status_code == 200
    return (time.process_time() - begun) * 1000


def main(requests: int, *, is_profiled: bool) -> None:
    call_command("migrate", verbosity=0)
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory)
        artifact = add_artifact(actor=laboratory.owner, run=run, path="model.json", content=b"{}", kind="model")
    client = client_of(laboratory.owner)
    client.defaults["SERVER_NAME"] = "localhost"
    pages = {
        "agent (one object)": "/workspaces/lab/agents/worker/",
        "dataset (one object)": "/workspaces/lab/datasets/table/",
        "benchmark (one object)": "/workspaces/lab/benchmarks/accuracy/",
        "pool (one object)": "/workspaces/lab/pools/local/",
        "artifact (one object)": f"/workspaces/lab/artifacts/{artifact.public_id}/",
        "run (one object)": f"/workspaces/lab/runs/{run.public_id}/",
        "home": "/workspaces/lab/",
        "runs": "/workspaces/lab/runs/",
    }
    found = {name: measure(client, url, requests) for name, url in pages.items()}
    busy = f"/workspaces/lab/runs/{written(laboratory).public_id}/"
    wrote = {"log of 64 MiB, its lines counted": (first_time(client, f"{busy}?tab=log"), 0)}
    tabs = {"run with curves": "", "run with curves, log of 64 MiB": "?tab=log", "run with curves, metrics": "?tab=metrics"}
    wrote |= {name: measure(client, busy + query, requests) for name, query in tabs.items()}
    etag = client.get(f"{busy}?part=live")["ETag"]
    wrote["run with curves, nothing new (304)"] = measure(client, f"{busy}?part=live", requests, etag)
    fill(laboratory)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    crowded = {name: measure(client, pages[name], requests) for name in ("home", "runs")}
    bare = measure_bare(requests)
    print(f"{'a bare Django view':34} {bare:8.2f} ms")
    for name, (cost, statements) in found.items():
        one = "(one object)" in name
        verdict = f"target {ONE_MS:.0f} ms: {judged(name, cost <= ONE_MS)}" if one else ""
        print(f"{name:34} {cost:8.1f} ms {statements:4} statements   / bare view {cost / bare:5.1f}   {verdict}")
    for name, (cost, statements) in wrote.items():
        print(f"{name:34} {cost:8.1f} ms {statements or '':4} {'statements' if statements else ''}")
    laboratories = make_examples()
    fill_examples(laboratories)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    visitor, examples = client_of(laboratories[0].owner), {}
    visitor.defaults["SERVER_NAME"] = "localhost"
    for example in laboratories:
        slug = example.workspace.slug
        examples[f"home of {slug}, crowded"], _ = measure(visitor, f"/workspaces/{slug}/", requests)
    for name, (cost, statements) in crowded.items():
        print(f"{f'{name}, {RUNS:,} runs':34} {cost:8.1f} ms {statements:4} statements   / few runs {cost / found[name][0]:.2f}")
    one_object = statistics.median(cost for name, (cost, _) in found.items() if "(one object)" in name)
    for name, cost in ({"home, crowded": crowded["home"][0]} | examples).items():
        ratio = cost / one_object
        print(
            f"{f'{name} / median one object':44} {cost:6.1f} ms {ratio:6.2f}   target {HOME_RATIO:.0f}: {judged(name, ratio < HOME_RATIO)}"
        )
    if is_profiled:
        for name in ("run (one object)", "home"):
            with cProfile.Profile() as profile:
                for _ in range(20):
                    client.get(pages[name])
            print(f"\n{name}:")
            pstats.Stats(profile).sort_stats("cumulative").print_stats(45)


if __name__ == "__main__":
    numbers = [word for word in sys.argv[1:] if word.isdigit()]
    with override_settings(STORAGES=PLAIN):
        main(int(numbers[0]) if numbers else 20, is_profiled="--profile" in sys.argv)
    leave()
