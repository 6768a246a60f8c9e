"""May this database serve? Row security is only a wall for a role that cannot step over it."""

import time
from urllib.parse import urlsplit

import psycopg
import redis

from labsite.embedded.home import StartError

LOADING_SECONDS = 60  # a queue of much data reads it in after a start
OLDEST_VERSION = 15  # the database owner owns `public` from 15 on

# Roles that the current role is, or may become by SET ROLE, and that row security does not bind.
_STRONGER_ROLES = """
    SELECT rolname FROM pg_roles
    WHERE (rolsuper OR rolbypassrls OR (rolcreaterole AND rolname = current_user))
      AND (rolname = current_user OR pg_has_role(current_user, oid, 'MEMBER'))
    ORDER BY rolname = current_user DESC LIMIT 1
"""
_OWNED_TABLE = """
    SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = 'public' AND relkind IN ('r', 'p') AND pg_has_role(current_user, relowner, 'MEMBER') LIMIT 1
"""


def refuse_unfit_database(url: str, owner_url: str) -> str:
    """The server's version in words. Raises StartError where it is too old, or the serving role could pass row security."""
    with _connected(url, "DATABASE_URL") as serving, _connected(owner_url, "LABSITE_OWNER_DATABASE_URL") as owner:
        if serving.info.server_version < OLDEST_VERSION * 10_000:
            raise StartError(f"PostgreSQL {version_of(serving)} is too old; labsite needs {OLDEST_VERSION} or newer")
        role, owner_role = serving.info.user, owner.info.user
        if role == owner_role or _may_become(serving, owner_role):
            raise StartError(
                f"the serving role {role} is or may become the owner {owner_role}; it could pass row security: use two unrelated roles"
            )
        if stronger := serving.execute(_STRONGER_ROLES).fetchone():
            raise StartError(
                f"the serving role {role} could pass row security as {stronger[0]}; "
                f"run: ALTER ROLE {role} NOSUPERUSER NOBYPASSRLS NOCREATEROLE, and revoke memberships"
            )
        if table := serving.execute(_OWNED_TABLE).fetchone():
            raise StartError(
                f"the serving role {role} owns the table {table[0]}; it could pass row security: give the table to {owner_role}"
            )
        if not _binds_not(owner):
            raise StartError(f"the owner {owner_role} is bound by row security and cannot migrate; run: ALTER ROLE {owner_role} BYPASSRLS")
        return version_of(serving)


def refuse_unfit_queue(url: str) -> None:
    """Raises StartError where Redis or Valkey does not answer; one that is reading its data in is waited for."""
    try:
        client = redis.Redis.from_url(url, socket_connect_timeout=5, socket_timeout=5)
    except ValueError as error:
        raise StartError(f"REDIS_URL: {_one_line(error)}") from None
    end = time.monotonic() + LOADING_SECONDS
    try:
        while not _has_loaded(client, end):
            time.sleep(0.1)
    except redis.RedisError as error:
        raise StartError(f"REDIS_URL: {_place(url)} does not answer: {_one_line(error)}") from None
    finally:
        client.close()


def _has_loaded(client: redis.Redis, end: float) -> bool:
    try:
        return bool(client.ping())
    except redis.BusyLoadingError:
        if time.monotonic() > end:
            raise
        return False


def version_of(connection: "psycopg.Connection[tuple[object, ...]]") -> str:
    """As `15.8`: the number PostgreSQL gives is the major version times 10,000 and the minor one."""
    return f"{connection.info.server_version // 10_000}.{connection.info.server_version % 10_000}"


def _connected(url: str, variable: str) -> "psycopg.Connection[tuple[object, ...]]":
    try:
        return psycopg.connect(url, autocommit=True, connect_timeout=10)
    except psycopg.Error as error:
        raise StartError(f"{variable}: cannot connect: {_one_line(error)}") from None


def _may_become(connection: "psycopg.Connection[tuple[object, ...]]", role: str) -> bool:
    row = connection.execute("SELECT pg_has_role(current_user, oid, 'MEMBER') FROM pg_roles WHERE rolname = %s", [role]).fetchone()
    return row is not None and bool(row[0])


def _binds_not(connection: "psycopg.Connection[tuple[object, ...]]") -> bool:
    row = connection.execute("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user").fetchone()
    return row is not None and bool(row[0])


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _place(url: str) -> str:
    """The address without its password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
