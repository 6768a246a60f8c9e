"""Django's `migrate`, run as the owner of the database and followed by the grants of the serving role."""

from typing import Any

from django.conf import settings
from django.core.management.commands.migrate import Command as Migrate

from labsite.owner import as_owner, grant


class Command(Migrate):
    def handle(self, *args: Any, **options: Any) -> None:
        app_role = settings.APP_ROLE
        with as_owner(options["database"]):
            super().handle(*args, **options)
            grant(app_role)
