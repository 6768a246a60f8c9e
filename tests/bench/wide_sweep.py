"""A sweep of 10,000 members, the most that may be asked for: `make bench BENCH=wide_sweep ARGS=[members]`.

How long asking takes, and the page, its live part, the table by the API and the CSV once all have ended and have a score and a metric: CPU of
this process, wall time, bytes. In the application's role on a real PostgreSQL, through Django's test client. The best member is one of the
last, and must be the one that the page names. Targets: asking under 1 s, the page under 0.5 s of CPU and 1 MB.
"""

import os
import sys
import time
from dataclasses import dataclass

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django.setup()

from django.conf import settings  # noqa: E402  # after the settings are read, as everything below
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.http import StreamingHttpResponse  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext, override_settings  # noqa: E402

from runs.commands.sweep import create_sweep  # noqa: E402
from runs.launch import LaunchRequest  # noqa: E402
from runs.models import MetricSeries, Run, Sweep  # noqa: E402
from tests.factories_pages import client_of, copy_runs, number_members, score_runs  # noqa: E402
from tests.factories_registry import make_agent_version  # noqa: E402
from tests.factories_runs import Laboratory, launch, make_laboratory  # noqa: E402
from tests.targets import judged, leave  # noqa: E402

PLAIN = {**settings.STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
ASK_SECONDS, PAGE_SECONDS, PAGE_BYTES = 1.0, 0.5, 1_000_000
SCHEMA = {"type": "object", "properties": {"rate": {"type": "number"}}}


@dataclass(frozen=True, slots=True)
class Cost:
    cpu_seconds: float
    wall_seconds: float
    bytes: int
    statements: int
    text: str

    def __str__(self) -> str:
        return f"{self.cpu_seconds:6.2f} s CPU {self.wall_seconds:6.2f} s {self.bytes:10,} bytes {self.statements:4} statements"


def ask(client: Client, url: str) -> Cost:
    client.get(url)
    cpu, wall = time.process_time(), time.monotonic()
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(url)
        content = answer.getvalue() if isinstance(answer, StreamingHttpResponse) else answer.content
    cost = Cost(time.process_time() - cpu, time.monotonic() - wall, len(content), len(asked), content.decode())
    assert answer.status_code == 200, f"{url} answers {answer.status_code}"
    return cost


def fill(laboratory: Laboratory, sweep: Sweep, members: int) -> Run:
    """Every member has ended, each with its score and a metric; the last but one is the best."""
    with laboratory.opened():
        pattern = launch(laboratory, agent="tuner", parameters={"rate": 0.1})
        made = copy_runs(actor=laboratory.owner, pattern=pattern, count=members, name="")
        number_members(actor=laboratory.owner, sweep=sweep, runs=made)
        best = made[members - 2]
        score_runs(
            actor=laboratory.owner, scores={run: (0.9 if run is best else index / members / 2, 0.02) for index, run in enumerate(made)}
        )
        MetricSeries.objects.bulk_create(
            MetricSeries(run=run, key="loss", count=1, last=1 / (index + 1), last_step=0, minimum=0.0, maximum=1.0)
            for index, run in enumerate(made)
        )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return best


def main(members: int) -> None:
    call_command("migrate", verbosity=0)
    laboratory = make_laboratory(weekly_gpu_hours=1_000)
    with laboratory.opened():
        make_agent_version(laboratory.owner, "tuner", parameter_schema=SCHEMA, wall_seconds=60)
        space = {"kind": "grid", "axes": {"rate": [index / 100 for index in range(1, 11)]}, "seeds": [*range(members // 10)]}
        request = LaunchRequest(benchmark="accuracy", agent="tuner", datasets=("table",))
        began = time.monotonic()
        sweep = create_sweep(actor=laboratory.owner, name="wide", space=space, request=request)
        took = time.monotonic() - began
    print(f"{sweep.members:,} members asked for in {took:.2f} s    target {ASK_SECONDS:.0f} s: {judged('asking', took < ASK_SECONDS)}")
    best = fill(laboratory, sweep, members)
    client = client_of(laboratory.owner)
    client.defaults["SERVER_NAME"] = "localhost"
    page = f"/workspaces/lab/sweeps/{sweep.public_id}/"
    costs = {
        "page": ask(client, page),
        "page by a metric": ask(client, f"{page}?by=loss"),
        "live part": ask(client, f"{page}?part=live"),
        "list of sweeps": ask(client, "/workspaces/lab/sweeps/"),
        "API, 500 members": ask(client, f"/api/v1/workspaces/lab/sweeps/{sweep.public_id}/members?limit=500"),
        "CSV": ask(client, f"{page}csv/"),
    }
    for name, cost in costs.items():
        verdict = (
            f"   target {PAGE_SECONDS} s: {judged(name, cost.cpu_seconds < PAGE_SECONDS and cost.bytes < PAGE_BYTES)}"
            if "page" in name
            else ""
        )
        print(f"{name:20} {cost}{verdict}")
    print(f"the best member, #{best.number}, is named: {judged('the best member', best.public_id in costs['page'].text)}")


if __name__ == "__main__":
    with override_settings(STORAGES=PLAIN):
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    leave()
