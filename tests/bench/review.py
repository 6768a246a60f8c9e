"""What the list of runs that deserve a person costs: `make bench BENCH=review ARGS=[runs]`.

A workspace of 10,000 runs that ended in the last 30 days, each with a score, some of them surprising or costly. CPU of the page, beside that of the
page of one artifact; both asked through the test client in this process. Target: under 1 s.
"""

import os
import sys
import time
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django.setup()

from django.conf import settings  # noqa: E402  # after the settings are read, as everything below
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.models import F  # noqa: E402
from django.test.utils import override_settings  # noqa: E402
from django.utils import timezone  # noqa: E402

from runs.models import Run  # noqa: E402
from tests.factories_pages import add_artifact, client_of, copy_runs, score_runs  # noqa: E402
from tests.factories_runs import launch, make_laboratory  # noqa: E402
from tests.targets import judged, leave  # noqa: E402
from workspaces.access import Actor, Kind, Permission  # noqa: E402
from workspaces.audit import Draft, command  # noqa: E402
from workspaces.verbs import Verb  # noqa: E402

PLAIN = {**settings.STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
MOST_SECONDS = 1.0


@command(Verb.RUN_ENDED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def crowd(event: Draft, /, *, actor: Actor, runs: list[Run], days: int) -> None:
    """Put the ends of runs that lie an hour apart into so many days."""
    event.changing(runs[0])
    shrunk = timedelta(days=days) / len(runs)
    now = timezone.now()
    for place, run in enumerate(runs):
        run.ended_at = now - place * shrunk
    Run.objects.bulk_update(runs, ["ended_at"], batch_size=1000)
    Run.objects.filter(pk__in=[run.pk for run in runs[::97]]).update(spent_gpu_ms=F("spent_gpu_ms") + 400_000_000)


def cpu_of(browser: object, path: str, times: int = 5) -> tuple[float, int]:
    """Seconds of CPU of this process, the best of some, and the bytes of the answer."""
    least, size = float("inf"), 0
    for _ in range(times):
        begun = time.process_time()
        answer = browser.get(path)  # type: ignore[attr-defined]  # Django's test client
        least = min(least, time.process_time() - begun)
        assert answer.status_code == 200
        size = len(answer.content)
    return least, size


def main(count: int) -> None:
    call_command("migrate", verbosity=0)
    laboratory = make_laboratory()
    with laboratory.opened():
        pattern = launch(laboratory)
        made = add_artifact(actor=laboratory.owner, run=pattern, path="x", content=b"x")
        runs = copy_runs(actor=laboratory.owner, pattern=pattern, count=count)
        crowd(actor=laboratory.owner, runs=runs, days=29)
        scores: dict[Run, tuple[float, float | None]] = {
            run: (0.7 + place % 7 / 1000 + (0.2 if place % 101 == 0 else 0), 0.001) for place, run in enumerate(runs)
        }
        score_runs(actor=laboratory.owner, scores=scores)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    browser = client_of(laboratory.owner)
    browser.defaults["SERVER_NAME"] = "localhost"
    one, _ = cpu_of(browser, f"/workspaces/lab/artifacts/{made.public_id}/")
    begun = time.perf_counter()
    took, size = cpu_of(browser, "/workspaces/lab/reviews/")
    whole = (time.perf_counter() - begun) / 5
    verdict = judged("list of runs that deserve a person", took < MOST_SECONDS)
    print(
        f"{count} runs: {took * 1000:.0f} ms of CPU, {whole * 1000:.0f} ms in all, {size / 1000:.0f} kB, {took / one:.1f} x the page of one artifact"
        f" ({one * 1000:.1f} ms)   target {MOST_SECONDS:.0f} s: {verdict}"
    )
    leave()


if __name__ == "__main__":
    with override_settings(STORAGES=PLAIN):
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
