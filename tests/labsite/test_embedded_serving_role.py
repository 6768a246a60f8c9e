"""A role that could step over row security may not serve."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from labsite.embedded.home import Home, StartError
from labsite.embedded.servers import running_servers
from labsite.embedded.serving_role import OLDEST_VERSION, refuse_unfit_database


@pytest.fixture(scope="module")
def own_home() -> Iterator[Home]:
    """A server whose roles these tests may spoil."""
    parent = Path(tempfile.mkdtemp(prefix="labsite-roles-"))
    parent.chmod(0o755)
    home = Home(parent / "home")
    with home.locked(), running_servers(home, {}, throw_away=True):
        yield home
    shutil.rmtree(parent, ignore_errors=True)


def serving(home: Home, serving_role: str = "labsite_app", owner: str = "labsite_owner") -> str:
    roles = [home.postgres_url(role, home.ensure_password(role)) for role in (serving_role, owner)]
    return refuse_unfit_database(*roles)


def as_superuser(home: Home, statement: str) -> None:
    with psycopg.connect(home.postgres_url("postgres", home.ensure_password("postgres")), autocommit=True) as connection:
        connection.execute(statement)


def test_the_embedded_roles_may_serve(own_home: Home) -> None:
    assert serving(own_home).startswith("18.")


@pytest.mark.parametrize(
    ("spoil", "mend", "why"),
    [
        ("ALTER ROLE labsite_app BYPASSRLS", "ALTER ROLE labsite_app NOBYPASSRLS", "could pass row security as labsite_app"),
        ("ALTER ROLE labsite_app SUPERUSER", "ALTER ROLE labsite_app NOSUPERUSER", "could pass row security"),
        ("ALTER ROLE labsite_app CREATEROLE", "ALTER ROLE labsite_app NOCREATEROLE", "could pass row security as labsite_app"),
        ("GRANT labsite_search TO labsite_app", "REVOKE labsite_search FROM labsite_app", "could pass row security as labsite_search"),
        ("GRANT labsite_owner TO labsite_app", "REVOKE labsite_owner FROM labsite_app", "may become the owner"),
        ("CREATE TABLE mine (); ALTER TABLE mine OWNER TO labsite_app", "DROP TABLE mine", "owns the table mine"),
        ("ALTER ROLE labsite_owner NOBYPASSRLS", "ALTER ROLE labsite_owner BYPASSRLS", "cannot migrate"),
    ],
)
def test_a_stronger_role_is_refused(own_home: Home, spoil: str, mend: str, why: str) -> None:
    as_superuser(own_home, spoil)
    try:
        with pytest.raises(StartError, match=why):
            serving(own_home)
    finally:
        as_superuser(own_home, mend)
    assert serving(own_home)


@pytest.mark.parametrize("role", ["labsite_owner", "postgres"])
def test_owner_and_superuser_may_not_serve(own_home: Home, role: str) -> None:
    with pytest.raises(StartError, match="could pass row security"):
        serving(own_home, role)


def test_a_server_older_than_15_is_refused(own_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """No such server is at hand: the connection says of the real one that it is older."""
    assert OLDEST_VERSION == 15
    monkeypatch.setattr(psycopg.ConnectionInfo, "server_version", property(lambda self: 140_022))
    with pytest.raises(StartError, match=r"PostgreSQL 14\.22 is too old; labsite needs 15 or newer"):
        serving(own_home)


def test_the_oldest_server_may_serve(own_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psycopg.ConnectionInfo, "server_version", property(lambda self: 150_000))
    assert serving(own_home)
