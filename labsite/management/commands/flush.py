"""Django's `flush` (tests use it), run as the owner: the serving role may not empty the record."""

from typing import Any

from django.core.management.commands.flush import Command as Flush

from labsite.owner import as_owner


class Command(Flush):
    def handle(self, **options: Any) -> None:
        with as_owner(options["database"]):
            super().handle(**options)
