"""The embedded servers when things go well, and when someone kills, doubles or fakes them."""

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
import redis

from labsite.embedded.home import SOCKET_FOLDER_BYTES, Home, StartError
from labsite.embedded.postgres import start_postgres
from labsite.embedded.servers import running_servers
from tests.labsite.embedded_home import Serving, note, residents

Serve = Callable[..., Serving]


def refuse(home: Home, environment: dict[str, str], why: str) -> str:
    """The words with which a start is refused."""
    with home.locked(), pytest.raises(StartError, match=why) as caught, running_servers(home, environment, throw_away=True):
        pass
    return str(caught.value)


def test_starts_serves_ends_and_keeps_what_was_written(serve: Serve, open_home: Home, way: str) -> None:
    first = serve(way)
    assert len(first.server_pids) == 2
    addresses = open_home.addresses()
    with psycopg.connect(addresses["LABSITE_OWNER_DATABASE_URL"]) as owner:
        owner.execute("CREATE TABLE kept (word text)")
    client = redis.Redis.from_url(addresses["REDIS_URL"])
    client.set("kept", "word")
    client.close()
    assert first.end(signal.SIGINT) == 0
    assert residents(open_home.postgres) == residents(open_home.valkey) == []

    second = serve(way)
    with psycopg.connect(addresses["DATABASE_URL"]) as serving:
        row = serving.execute("SELECT current_user, to_regclass('public.kept') IS NOT NULL").fetchone()
    assert row == ("labsite_app", True)
    client = redis.Redis.from_url(addresses["REDIS_URL"])
    assert client.get("kept") == b"word"
    client.close()
    assert second.end(signal.SIGTERM) == 0


def test_a_second_start_is_refused_and_says_where_the_first_is(serve: Serve, open_home: Home) -> None:
    first = serve()
    assert first.server_pids
    second = serve()
    assert second.end() == 1
    assert f"process {first.process.pid} at http://127.0.0.1:1/" in second.line
    assert note(open_home)["pid"] == first.process.pid
    assert first.process.poll() is None


def test_killed_supervisor_leaves_no_server_and_the_next_start_works_at_once(serve: Serve) -> None:
    first = serve()
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    second = serve()
    assert len(second.server_pids) == 2
    assert not set(second.server_pids) & set(first.server_pids)
    assert second.end() == 0


def test_everything_killed_and_the_next_start_recovers(serve: Serve, open_home: Home) -> None:
    first = serve()
    for pid in [first.process.pid, *first.server_pids, *residents(open_home.postgres)]:
        with suppress(ProcessLookupError):  # a backend that ended with its postmaster
            os.kill(pid, signal.SIGKILL)
    first.process.wait(10)
    assert len(serve().server_pids) == 2


def test_a_stale_pid_file_that_names_an_innocent_process_harms_nobody(serve: Serve, open_home: Home) -> None:
    assert serve().end() == 0
    with subprocess.Popen(["sleep", "60"]) as innocent:
        try:
            (open_home.postgres / "postmaster.pid").write_text(f"{innocent.pid}\n{open_home.postgres}\n1700000000\n5432\n\n\n\nready\n")
            again = serve()
            assert len(again.server_pids) == 2
            assert again.end() == 0
            assert innocent.poll() is None
        finally:
            innocent.kill()


def test_data_of_another_version_is_refused_and_left_alone(serve: Serve, open_home: Home) -> None:
    open_home.path.mkdir()
    open_home.postgres.mkdir()
    (open_home.postgres / "PG_VERSION").write_text("14\n")
    refused = serve()
    assert refused.end() == 1
    assert "made by PostgreSQL 14" in refused.line
    assert [path.name for path in open_home.postgres.iterdir()] == ["PG_VERSION"]


def test_an_interrupted_first_start_does_not_count(serve: Serve, open_home: Home) -> None:
    open_home.path.mkdir()
    (open_home.path / "postgres.new").mkdir()
    (open_home.path / "postgres.new" / "PG_VERSION").write_text("18\n")
    assert len(serve().server_pids) == 2
    assert not (open_home.path / "postgres.new").exists()


def test_lost_passwords_are_named_instead_of_replaced(serve: Serve, open_home: Home) -> None:
    assert serve().end() == 0
    (open_home.path / "keys" / "postgres.password").unlink()
    refused = serve()
    assert refused.end() == 1
    assert "lost its passwords" in refused.line


def test_secrets_are_private_and_in_no_log_and_no_command_line(serve: Serve, open_home: Home) -> None:
    serving = serve()
    assert open_home.path.stat().st_mode & 0o777 == 0o700
    files = list((open_home.path / "keys").iterdir())
    assert {path.name for path in files} >= {"postgres.password", "labsite_owner.password", "labsite_app.password", "valkey.password"}
    seen = "".join(path.read_text(errors="replace") for path in open_home.logs.iterdir())
    seen += "".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in serving.server_pids)
    for path in files:
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.read_text() not in seen


def test_long_paths_put_the_sockets_elsewhere(open_home: Home) -> None:
    deep = Home(open_home.path / ("long " * 20).strip() / ("way" * 20))
    assert len(os.fsencode(deep.sockets)) <= SOCKET_FOLDER_BYTES
    assert not deep.sockets.is_relative_to(deep.path)
    with deep.locked(), running_servers(deep, {}, throw_away=True) as servers:
        assert deep.sockets.stat().st_mode & 0o777 == 0o700
        with psycopg.connect(servers.addresses["DATABASE_URL"]) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    deep.sockets.rmdir()


def test_a_closed_parent_is_named_and_stays_closed(open_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root where user namespaces are forbidden: another account must reach the folder."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("labsite.embedded.postgres.can_unshare", lambda: False)
    closed = open_home.path.parent
    closed.chmod(0o700)
    with pytest.raises(StartError, match=f"may not enter {closed}"):
        start_postgres(open_home)
    assert closed.stat().st_mode & 0o777 == 0o700
    assert not open_home.postgres.exists()


def test_external_addresses_need_the_owner_too(open_home: Home) -> None:
    refuse(
        open_home, {"DATABASE_URL": "postgresql://127.0.0.1:1/x", "REDIS_URL": "redis://127.0.0.1:1"}, "LABSITE_OWNER_DATABASE_URL is not"
    )
    assert not open_home.postgres.exists()


def test_external_servers_that_do_not_answer_are_named_without_password(open_home: Home) -> None:
    urls = {
        "DATABASE_URL": "postgresql://a:hidden@127.0.0.1:1/x",
        "LABSITE_OWNER_DATABASE_URL": "postgresql://b:hidden@127.0.0.1:1/x",
        "REDIS_URL": "redis://:hidden@127.0.0.1:1/0",
    }
    assert "hidden" not in refuse(open_home, urls, "^DATABASE_URL: cannot connect")
    assert not open_home.postgres.exists()
    del urls["DATABASE_URL"], urls["LABSITE_OWNER_DATABASE_URL"]
    assert "hidden" not in refuse(open_home, urls, "^REDIS_URL: .* does not answer")
    assert residents(open_home.postgres) == []
