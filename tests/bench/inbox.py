"""CPU time of the inbox with 5,000 pending requests: `make bench BENCH=inbox ARGS="[requests] [--profile]"`.

Through Django's test client, middleware and templates included, in the application's role on a real PostgreSQL; the CPU is this process's own, not
the server's. Launches with a certificate, promotions with a checklist, versions of policies and priorities, a quarter each, asked by two people.
Target: each page of the inbox under 3 times a page of one object, measured in the same process (issue 6).
"""

import cProfile
import os
import pstats
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # after the settings are read, as everything below
from django.db import connection  # noqa: E402
from django.test.utils import override_settings  # noqa: E402

from tests.bench.page_cost import PLAIN, measure  # noqa: E402
from tests.factories_approvals import fill_inbox  # noqa: E402
from tests.factories_pages import client_of  # noqa: E402
from tests.factories_resources import join  # noqa: E402
from tests.factories_runs import launch, make_laboratory  # noqa: E402
from tests.targets import judged, leave  # noqa: E402
from workspaces.access import Role  # noqa: E402

PENDING = 5_000
RATIO = 3.0


def main(requests: int, *, is_profiled: bool) -> None:
    call_command("migrate", verbosity=0)
    laboratory = make_laboratory()
    with laboratory.opened():
        launch(laboratory)
        approver = join(laboratory.owner, "approver", Role.APPROVER)
        begun = time.monotonic()
        fill_inbox(askers=[laboratory.owner, join(laboratory.owner, "researcher")], count=PENDING)
        print(f"{PENDING:,} requests in {time.monotonic() - begun:.0f} s")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    client = client_of(approver)
    client.defaults["SERVER_NAME"] = "localhost"
    inbox = "/workspaces/lab/approvals/"
    one, statements = measure(client, "/workspaces/lab/agents/worker/", requests)
    print(f"{'agent (one object)':34} {one:8.1f} ms {statements:4} statements")
    after = client.get(inbox).content.decode().split("?after=")[1].split('"')[0]
    kinds = ("run", "promotion", "policy", "priority")
    pages = {"inbox": inbox, "inbox, second page": f"{inbox}?after={after}", "inbox, mine to decide": f"{inbox}?whose=mine"}
    pages |= {f"inbox, {kind}": f"{inbox}?kind={kind}&whose=mine" for kind in kinds}
    for name, url in pages.items():
        cost, statements = measure(client, url, requests)
        begun = time.perf_counter()
        client.get(url)
        waited = (time.perf_counter() - begun) * 1000
        ratio = cost / one
        print(
            f"{name:34} {cost:8.1f} ms {statements:4} statements {waited:8.1f} ms of the clock"
            f"   / one object {ratio:5.2f}   target {RATIO:.0f}: {judged(name, ratio < RATIO)}"
        )
    if is_profiled:
        with cProfile.Profile() as profile:
            for _ in range(20):
                client.get(inbox)
        pstats.Stats(profile).sort_stats("cumulative").print_stats(50)


if __name__ == "__main__":
    numbers = [word for word in sys.argv[1:] if word.isdigit()]
    with override_settings(STORAGES=PLAIN):
        main(int(numbers[0]) if numbers else 20, is_profiled="--profile" in sys.argv)
    leave()
