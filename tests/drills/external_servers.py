"""Serve labsite on Debian's PostgreSQL and Redis, as the README's production page says: `python tests/drills/external_servers.py`.

Needs `make system`. Starts both servers on free loopback ports in a temporary folder, makes the roles by hand, lets `manage.py up` serve
on them, asks /readyz, launches a run over the API and waits for its end, checks that nothing embedded was started and that a serving role
with BYPASSRLS is refused, and ends all.
Exit code 0 only where everything held.
"""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import redis

from labsite.embedded import pool_python
from labsite.embedded.home import CHECKOUT

SECONDS = 90
ROLES = """
    CREATE ROLE labsite_owner LOGIN CREATEDB BYPASSRLS PASSWORD '{owner}';
    CREATE ROLE labsite_app LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS PASSWORD '{app}';
    CREATE ROLE labsite_search NOLOGIN BYPASSRLS;
    GRANT labsite_search TO labsite_owner
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        found: int = probe.getsockname()[1]
    return found


def wait_until(answers: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            answers()
        except (psycopg.OperationalError, redis.RedisError):
            if time.monotonic() > deadline:
                raise SystemExit(f"{what} does not answer") from None
            time.sleep(0.05)
        else:
            return


@contextmanager
def debian_postgres(place: Path) -> Iterator[str]:
    """libpq URL prefix of a fresh server; `postgres` signs in with the password in it."""
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    data, port, password = place / "postgres", free_port(), secrets.token_urlsafe(16)
    data.mkdir()
    (place / "password").write_text(password)
    prefix: list[str] = []
    if os.geteuid() == 0:  # PostgreSQL refuses root; Debian's package made this account
        prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        for path in (data, place / "password"):
            shutil.chown(path, "postgres", "postgres")
    initdb = [str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "scram-sha-256", f"--pwfile={place / 'password'}"]
    subprocess.run([*prefix, *initdb, "-E", "UTF8", "--locale=C"], check=True, capture_output=True, cwd="/")
    server = [str(programs / "postgres"), "-D", str(data), "-k", str(data), "-p", str(port), "-c", "listen_addresses=127.0.0.1"]
    with (place / "postgres.log").open("wb") as log:
        process = subprocess.Popen([*prefix, *server], stdout=log, stderr=log, cwd="/", start_new_session=True)
    try:
        url = f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"
        wait_until(lambda: psycopg.connect(url).close(), "PostgreSQL")
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(SECONDS)


@contextmanager
def debian_redis(place: Path) -> Iterator[str]:
    """URL of a fresh server with a password."""
    port, password = free_port(), secrets.token_urlsafe(16)
    (place / "redis").mkdir()
    (place / "redis.conf").write_text(f"port {port}\nbind 127.0.0.1\nrequirepass {password}\ndir {place / 'redis'}\nappendonly yes\n")
    with (place / "redis.log").open("wb") as log:
        process = subprocess.Popen(["redis-server", place / "redis.conf"], stdout=log, stderr=log, start_new_session=True)
    try:
        url = f"redis://:{password}@127.0.0.1:{port}/0"
        client = redis.Redis.from_url(url)
        wait_until(client.ping, "Redis")
        client.close()
        yield url
    finally:
        process.terminate()
        process.wait(SECONDS)


def make_roles(url: str) -> dict[str, str]:
    """What the production page tells an operator to do; the two database URLs."""
    passwords = {"owner": secrets.token_urlsafe(16), "app": secrets.token_urlsafe(16)}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(ROLES.format(**passwords))
        connection.execute("CREATE DATABASE labsite OWNER labsite_owner")
    place = url.rpartition("@")[2].replace("/postgres", "/labsite")
    return {
        "DATABASE_URL": f"postgresql://labsite_app:{passwords['app']}@{place}",
        "LABSITE_OWNER_DATABASE_URL": f"postgresql://labsite_owner:{passwords['owner']}@{place}",
    }


def start_up(environment: dict[str, str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "manage.py", "up", "--json"]
    return subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)


def seconds_of_a_run(environment: dict[str, str]) -> float:
    """From its launch over the API to its settled end, which must be a success."""
    os.environ.update(environment, DJANGO_SETTINGS_MODULE="labsite.settings")
    # Django reads its settings when it is first imported: after the servers are there.
    import django  # noqa: PLC0415

    django.setup()
    from django.db import connection  # noqa: PLC0415

    from tests.factories_runs import make_laboratory  # noqa: PLC0415
    from workspaces.commands.token import create_token  # noqa: PLC0415

    laboratory = make_laboratory(code=b"print('hello')\n", slots=2)
    with laboratory.opened():
        _, token = create_token(actor=laboratory.owner, name="drill", scopes=("run:read", "run:write"))
    connection.close()
    runs = f"http://127.0.0.1:{environment['LABSITE_PORT']}/api/v1/workspaces/lab/runs"
    request = {"benchmark_id": "accuracy", "agent_id": "worker", "dataset_ids": ["table"], "budget": {"gpu_hours": 0.1}}
    began = time.monotonic()
    run = asked(runs, token, request)
    while run["ended_at"] is None:
        assert time.monotonic() - began < SECONDS, f"the run is still {run['status']}"
        time.sleep(0.1)
        run = asked(f"{runs}/{run['id']}", token)
    assert (run["status"], run["reserved_gpu_ms"]) == ("succeeded", 0), run
    assert run["spent_gpu_ms"] > 0
    return time.monotonic() - began


def asked(url: str, token: str, body: object = None) -> dict[str, Any]:
    """The API's answer; to a POST where there is a body."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)  # noqa: S310  # our own address
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
        return dict(json.load(answer))


def main() -> None:
    with ExitStack() as stack:
        place = Path(tempfile.mkdtemp(prefix="labsite-external-"))
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        place.chmod(0o711)
        superuser = stack.enter_context(debian_postgres(place))
        inherited = {name: value for name, value in os.environ.items() if not name.endswith("_URL") and name != "LABSITE_STATIC"}
        environment = inherited | make_roles(superuser) | {"REDIS_URL": stack.enter_context(debian_redis(place))}
        environment |= {"LABSITE_HOME": str(place / "home"), "LABSITE_RUNS": str(place / "runs"), "LABSITE_PORT": str(free_port())}
        environment |= {"LABSITE_EXAMPLES": "0"}
        # The run needs nothing but the standard library: an environment without packages, so that none is fetched.
        installed = place / "runs" / f"python-{pool_python.stamp()}"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(installed)], check=True)
        (place / "runs" / "python").symlink_to(installed.name)

        with psycopg.connect(superuser, autocommit=True) as connection:
            connection.execute("ALTER ROLE labsite_app BYPASSRLS")
            assert start_up(environment).wait(SECONDS) == 1, "served in a role that passes row security"
            connection.execute("ALTER ROLE labsite_app NOBYPASSRLS")
        print("refused a serving role with BYPASSRLS")

        serving = start_up(environment)
        try:
            assert serving.stdout
            told = json.loads(serving.stdout.readline() or "{}")
            assert told, "did not start"
            with urllib.request.urlopen(f"http://127.0.0.1:{environment['LABSITE_PORT']}/readyz", timeout=10) as answer:
                assert answer.status == 200
            assert not (place / "home" / "postgres").exists(), "an embedded PostgreSQL was made"
            print(f"served on PostgreSQL and Redis of Debian at {told['url']}")
            print(f"a run ended there after {seconds_of_a_run(environment):.1f} s, with its cost settled")
        finally:
            serving.send_signal(signal.SIGINT)
        assert serving.wait(SECONDS) == 0, "did not end well"
        with psycopg.connect(superuser) as connection:
            row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = 'labsite_app'").fetchone()
        assert row == (0,), "left connections behind"
        print("ended; the external servers live on")


if __name__ == "__main__":
    main()
