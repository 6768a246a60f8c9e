"""Django's `flush`, run as the owner: the serving role may not empty the record. Tests use it between each other."""

from typing import Any

from django.core.management.commands.flush import Command as Flush
from django.db import connections, transaction

from labsite.owner import as_owner

MADE_BY_MIGRATE = frozenset({"django_content_type", "auth_permission", "django_migrations"})

SMALL_BYTES = 1 << 20


class Command(Flush):
    def handle(self, **options: Any) -> None:
        with as_owner(options["database"]):
            if options["interactive"]:
                super().handle(**options)
            else:
                self.empty(options["database"])

    def empty(self, database: str) -> None:
        """Remove every row but those that `migrate` makes anew. DELETE takes a tenth of the time where there is little, as after a test;
        TRUNCATE where a table has grown, be it by rows that were deleted."""
        connection = connections[database]
        named = sorted(set(connection.introspection.django_table_names(only_existing=True, include_views=False)) - MADE_BY_MIGRATE)
        with transaction.atomic(using=database), connection.cursor() as cursor:
            cursor.execute("SELECT max(pg_relation_size(name::regclass)) FROM unnest(%s::text[]) AS name", [named])
            tables = [connection.ops.quote_name(name) for name in named]
            if cursor.fetchone()[0] > SMALL_BYTES:
                cursor.execute(f"TRUNCATE {', '.join(tables)}")
                return
            looked_at = (f"SELECT {number} WHERE EXISTS (SELECT FROM {table})" for number, table in enumerate(tables))  # noqa: S608  # our own tables
            cursor.execute(" UNION ALL ".join(looked_at))
            for (number,) in cursor.fetchall():
                cursor.execute(f"DELETE FROM {tables[number]}")  # noqa: S608  # our own tables
