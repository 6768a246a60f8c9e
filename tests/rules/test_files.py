"""Files stay short, raw SQL stays where it belongs, and nothing of the machine it was written on remains."""

import re
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
LINES = 400
RAW_SQL = (
    "labsite/clock.py",  # an advisory lock
    "labsite/doctor.py",  # the catalogue
    "labsite/embedded/",  # a server of our own
    "labsite/health.py",
    "labsite/management/commands/flush.py",  # rows of every table, as the owner
    "labsite/owner.py",  # grants to the serving role
    "runs/queries/claim.py",  # an advisory lock
    "runs/jobs/lease.py",  # taken and let go in one statement each
    "runs/migrations/",
    "runs/queries/lineage.py",  # a walk over edges of many tables, in one statement
    "runs/queries/lineage_whole.py",  # all edges of the lineage, by server-side cursors
    "runs/queries/mean_rank.py",  # values of a whole board in sorted arrays
    "runs/queries/metric.py",  # arrays of points thinned where they lie
    "runs/queries/pool_hour.py",  # arrays of samples added up by the minute
    "runs/queries/reported.py",  # a loose walk along an index
    "runs/queries/run_page.py",  # the figures of a run's page in one statement
    "runs/queries/seed_rows.py",  # all rows of a board in one pass
    "runs/queries/site.py",  # functions that answer across workspaces
    "tests/",  # they attack with it
    "workspaces/audit.py",  # what the transaction's triggers are told
    "workspaces/commands/token.py",  # an upsert with a condition, on telemetry of every request
    "workspaces/instant.py",  # what isolation a transaction has
    "workspaces/kept_query.py",  # what the ORM wrote, sent again
    "workspaces/prepared.py",  # PREPARE and EXECUTE
    "workspaces/kept_write.py",  # what the ORM would write, made once
    "workspaces/migrations/",
    "workspaces/scope.py",
    "workspaces/site_audit.py",
    "workspaces/walls.py",
    "runs/queries/memory_search.py",  # a function of the database that looks in the open workspace by itself
)


def files(*suffixes: str) -> list[str]:
    """Files that are, or are about to be, under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return sorted(name for name in listed if name.endswith(suffixes) and (ROOT / name).is_file())


def test_no_file_is_longer_than_400_lines() -> None:
    long = {
        name: len((ROOT / name).read_text().splitlines()) for name in files(".py", ".html", ".css", ".js") if "/migrations/" not in name
    }
    assert {name: count for name, count in long.items() if count > LINES} == {}


def test_raw_sql_stays_where_it_belongs() -> None:
    strays = [
        name
        for name in files(".py")
        if not name.startswith(RAW_SQL)
        and re.search(r"connection\.cursor\(|prepared\.sent\(|\.raw\(|RawSQL\(|\.extra\(", (ROOT / name).read_text())
    ]
    assert strays == []


def test_scoped_rows_are_read_through_their_manager() -> None:
    """`_base_manager` knows no scope. The record hashes rows with it as they are; a receiver reads its grants, as row security allows."""
    allowed = ("tests/", "workspaces/audit.py", "workspaces/models/", "workspaces/queries/share.py")
    strays = [name for name in files(".py") if not name.startswith(allowed) and "_base_manager" in (ROOT / name).read_text()]
    assert strays == []


@pytest.mark.parametrize("word", ["TODO", "FIXME", "# XXX", "mark_" + "safe(", "pragma: no " + "cover"])
def test_no_file_holds(word: str) -> None:
    assert [
        name for name in files(".py", ".html", ".js", ".css") if word in (ROOT / name).read_text() and name != "tests/rules/test_files.py"
    ] == []
