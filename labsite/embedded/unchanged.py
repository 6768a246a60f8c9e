"""Has this step's work been done already? Stamps in the data folder let the second start answer its first page quickly."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import psycopg
from django.contrib.staticfiles.finders import get_finders
from django.db.migrations.loader import MigrationLoader

from labsite.embedded.home import Home, write_private


def migrations_stamp(url: str) -> tuple[str, bool]:
    """The digest of all migrations on disk, and whether the database at `url` (any role that may read the table) has them all."""
    loader = MigrationLoader(None, ignore_no_migrations=True)
    on_disk = set(loader.disk_migrations)
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        row = connection.execute("SELECT to_regclass('public.django_migrations') IS NOT NULL").fetchone()
        applied = set(connection.execute("SELECT app, name FROM django_migrations").fetchall()) if row and row[0] else set()
    return _digest(f"{app}.{name}" for app, name in on_disk), on_disk <= applied


def static_stamp(root: Path) -> str:
    """The digest of names, sizes and times of all static files, and of the folder they are collected in."""
    entries = [str(root)]
    for finder in get_finders():
        for path, storage in finder.list([]):
            status = Path(storage.path(path)).stat()
            entries.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return _digest(entries)


def is_stamped(home: Home, step: str, stamp: str) -> bool:
    """Was `step` done with this stamp?"""
    try:
        return (home.stamps / step).read_text() == stamp
    except OSError:
        return False


def set_stamp(home: Home, step: str, stamp: str) -> None:
    write_private(home.stamps / step, stamp)


def _digest(entries: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(entries)).encode()).hexdigest()
