"""A walk over the lineage: `make bench BENCH=lineage ARGS=[runs]`.

A chain of runs, each of which has read what the one before it made, walked from its last to its first and back; beside it a single look-up of one
run by key, asked in the same process. Target: a chain of 1,000 runs under 0.5 s. Then the page of the last run's lineage, asked through the test
client, beside the page of one artifact.
"""

import os
import sys
import time
from collections.abc import Callable

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django.setup()

from django.conf import settings  # noqa: E402  # after the settings are read, as everything below
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test.utils import override_settings  # noqa: E402

from runs.models import Run  # noqa: E402
from runs.queries.lineage import Node, Way, walk  # noqa: E402
from runs.queries.lineage_edges import NodeKind  # noqa: E402
from tests.factories_pages import add_artifact, client_of  # noqa: E402
from tests.factories_runs import launch, make_laboratory  # noqa: E402
from tests.runs.story import chain_of  # noqa: E402
from tests.targets import judged, leave  # noqa: E402

PLAIN = {**settings.STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
MOST_SECONDS = 0.5


def best_of(asked: Callable[[], object], times: int = 5) -> float:
    """Seconds, the best of some: other programs only ever add."""
    rounds = []
    for _ in range(times):
        begun = time.perf_counter()
        asked()
        rounds.append(time.perf_counter() - begun)
    return min(rounds)


def main(length: int) -> None:
    call_command("migrate", verbosity=0)
    laboratory = make_laboratory()
    with laboratory.opened():
        pattern = launch(laboratory)
        made = add_artifact(actor=laboratory.owner, run=pattern, path="x", content=b"x")
    keys = chain_of(laboratory, pattern, length)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    with laboratory.opened():
        first, last = (Node(NodeKind.RUN, key) for key in (keys[0], keys[-1]))
        assert walk([last], Way.UP).distance[first] == 2 * (length - 1)
        one = best_of(lambda: Run.objects.get(pk=pattern.pk))
        for name, start, way in (("to its first", last, Way.UP), ("to its last", first, Way.DOWN)):
            took = best_of(lambda start=start, way=way: walk([start], way))  # type: ignore[misc]  # bound as they are now
            verdict = judged(f"chain {name}", took < MOST_SECONDS)
            print(f"chain of {length} runs {name:14} {took:6.3f} s, {took / one:7.0f} x one look-up   target {MOST_SECONDS} s: {verdict}")
        run = Run.objects.get(pk=keys[-1])
    browser = client_of(laboratory.owner)
    browser.defaults["SERVER_NAME"] = "localhost"
    artifact = f"/workspaces/lab/artifacts/{made.public_id}/"
    one = best_of(lambda: browser.get(artifact))
    for path in ("", "prov.json"):
        took = best_of(lambda path=path: browser.get(f"/workspaces/lab/runs/{run.public_id}/lineage/{path}"), 3)  # type: ignore[misc]  # as above
        print(f"page lineage/{path:9} of the last     {took:6.3f} s, {took / one:7.1f} x the page of one artifact ({one:.3f} s)")
    leave()


if __name__ == "__main__":
    with override_settings(STORAGES=PLAIN):
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
