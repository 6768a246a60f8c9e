"""`manage.py dbshell`: Django's, which finds the embedded PostgreSQL's own psql, and with `--owner` works as the database's owner."""

import os
import shutil
from contextlib import nullcontext
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import dbshell

from labsite.embedded.postgres import programs
from labsite.owner import as_owner


class Command(dbshell.Command):
    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--owner", action="store_true", help="as the owner, whom neither row security nor the record's grants hold back"
        )

    def handle(self, *, owner: bool = False, **options: Any) -> None:
        if not shutil.which("psql"):
            if not (programs() / "psql").exists():
                raise CommandError("There is no psql here; install PostgreSQL's client.")
            os.environ["PATH"] = f"{os.environ.get('PATH', '')}{os.pathsep}{programs()}"
        with as_owner() if owner else nullcontext():
            super().handle(**options)
