"""`manage.py openapi`: the description of the API that is checked in, docs/openapi.json."""

import argparse
import json
import sys
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand

from labsite.api import api


def document() -> str:
    """The OpenAPI document as it is checked in: sorted, indented, without an installation's address."""
    return json.dumps(api.get_openapi_schema(), indent=1, sort_keys=True, ensure_ascii=False, default=str) + "\n"


class Command(BaseCommand):
    help = "Print the OpenAPI document, check docs/openapi.json against it, or write it."
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--check", action="store_true", help="exit with 1 where docs/openapi.json is out of date")
        which.add_argument("--write", action="store_true", help="write docs/openapi.json")

    def handle(self, *, check: bool, write: bool, **options: object) -> None:
        path = Path(settings.BASE_DIR) / "docs" / "openapi.json"
        if write:
            path.parent.mkdir(exist_ok=True)
            path.write_text(document())
        elif not check:
            self.stdout.write(document(), ending="")
        elif not path.exists() or path.read_text() != document():
            self.stderr.write("docs/openapi.json is out of date; run `manage.py openapi --write` and look at the change")
            sys.exit(1)
