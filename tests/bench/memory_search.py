"""How long a search of memory takes at 200,000 entries: `make bench BENCH=memory_search ARGS=[entries]`.

Rows are written by the owner of the tables, since 200,000 commands would take an hour; searches are the product's own, as the serving role.
"""

import os
import statistics
import sys
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

import django

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # after the settings
from django.db import connection  # noqa: E402

from labsite.owner import as_owner  # noqa: E402
from runs.queries.memory import searched, similar  # noqa: E402
from tests.factories import make_workspace  # noqa: E402
from tests.targets import judged, leave  # noqa: E402
from workspaces import scope  # noqa: E402

P95_MS = 100.0
FILL = """
INSERT INTO runs_memoryentry (id, workspace_id, thread, revision, scope, kind, collection, title, text, configuration, content_hash, trust,
    author_kind, review_comment, withdrawn_reason, reviewed_at)
SELECT gen_random_uuid(), %s, gen_random_uuid(), 1, 'workspace', 'finding', 'openings',
    'common ' || 'word' || (i * 7919 %% 5000) || ' word' || (i * 104729 %% 300),
    'text of some length about word' || (i * 31 %% 2000) || repeat(' filler', 20),
    jsonb_build_object('rate', (i %% 100) / 100.0, 'net', CASE WHEN i %% 2 = 0 THEN 'wide' ELSE 'deep' END), repeat('0', 64),
    (ARRAY['unreviewed','unreviewed','unreviewed','unreviewed','unreviewed','unreviewed','observed','confirmed','durable','withdrawn'])[1 + i %% 10],
    'import', '', '', now()
FROM generate_series(1::bigint, %s) i
"""


def main() -> None:
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    call_command("migrate", verbosity=0)
    workspace, _ = make_workspace(f"bench-{uuid.uuid4().hex[:8]}")
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(FILL, [workspace.pk, entries])
        cursor.execute("ANALYZE runs_memoryentry")
    with scope.open_workspace(workspace.pk):
        for name, texts in {
            "one word of 5,000": [f"word{number * 37 % 5000}" for number in range(100)],
            "two words": [f"word{number * 7 % 300} word{number * 41 % 2000}" for number in range(100)],
            "a word that every entry has": ["common"] * 100,
        }.items():
            say(name, [timed(partial(searched, text)) for text in texts])
        say("similar configuration", [timed(lambda: similar({"rate": 0.42, "net": "wide"})) for _ in range(20)])


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def say(name: str, spans: list[float]) -> None:
    spans.sort()
    p95 = spans[int(len(spans) * 0.95) - 1]
    verdict = judged(name, p95 < P95_MS)
    print(
        f"{name}: median {statistics.median(spans):.1f} ms, p95 {p95:.1f} ms of {len(spans)}   target {P95_MS:.0f}: {verdict}", flush=True
    )


if __name__ == "__main__":
    main()
    leave()
