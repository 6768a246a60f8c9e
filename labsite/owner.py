"""The database's owner, who migrates and empties tables; the application itself serves in a role that cannot pass row security."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection, connections

APPEND_ONLY = (
    "workspaces_auditevent",
    "workspaces_eventsubject",
    "workspaces_eventpayload",
    "workspaces_ledgerentry",
    "workspaces_crossing",
    "workspaces_externalspend",
    "workspaces_recount",
    "workspaces_siteevent",
)
SEARCH_ROLE = "labsite_search"


@contextmanager
def as_owner(alias: str = "default") -> Iterator[None]:
    """Work on `alias` as the owner role; the database's name is left alone, so that it follows the test database."""
    wrapper = connections[alias]
    served = {key: wrapper.settings_dict[key] for key in ("USER", "PASSWORD")}
    wrapper.close()
    wrapper.settings_dict.update(settings.OWNER_DATABASE)
    try:
        yield
    finally:
        wrapper.close()
        wrapper.settings_dict.update(served)


def grant(app_role: str) -> None:
    """Give the application's role what it needs on all tables, and nothing on those that are only added to. Runs as owner; idempotent."""
    quoted = connection.ops.quote_name(app_role)
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        row = cursor.fetchone()
        if row is None or row[0] == app_role:
            return  # one role for both: `up` and `doctor` refuse to serve with it
        cursor.execute(f"GRANT USAGE ON SCHEMA public TO {quoted}")
        cursor.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {quoted}")
        cursor.execute(f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {quoted}")
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = {name for (name,) in cursor.fetchall()}
        for table in APPEND_ONLY:
            if table in tables:
                cursor.execute(f"REVOKE UPDATE, DELETE, TRUNCATE ON {connection.ops.quote_name(table)} FROM {quoted}")
        cursor.execute(f"REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON django_migrations FROM {quoted}")
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [SEARCH_ROLE])
        if cursor.fetchone():
            cursor.execute(f"GRANT USAGE ON SCHEMA public TO {SEARCH_ROLE}")
            cursor.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {SEARCH_ROLE}")
