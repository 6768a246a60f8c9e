"""`manage.py recount`: are the balances of every workspace the sums of their entries? Reads only."""

import argparse
import json
import sys

from django.core.management.base import BaseCommand, CommandError

from workspaces import scope
from workspaces.models import LedgerEntry, Workspace
from workspaces.queries.ledger import Miscount, recount
from workspaces.queries.workspace import find_workspace


class Command(BaseCommand):
    help = "Count the ledger of every workspace anew from its entries. Exit code 0: all balances are what the entries say."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--workspace", default="", metavar="W", help="slug, canonical id or UUID; without it all")
        parser.add_argument("--json", dest="as_json", action="store_true", help="one JSON object instead of sentences")

    def handle(self, *, workspace: str, as_json: bool, **options: object) -> None:
        counted = [(one.slug, *_counted(one)) for one in _chosen(workspace)]
        is_right = not any(wrong for _, _, wrong in counted)
        if as_json:
            found = [{"workspace": slug, "entries": entries, "wrong": [one.as_json() for one in wrong]} for slug, entries, wrong in counted]
            self.stdout.write(json.dumps({"right": is_right, "ledgers": found}))
        else:
            for slug, entries, wrong in counted:
                self.stdout.write(f"{slug}: {entries} entries — {'everything adds up' if not wrong else 'WRONG'}")
                for one in wrong:
                    since = f", window from {one.starts_at:%Y-%m-%d %H:%M} UTC" if one.starts_at else ""
                    self.stdout.write(f"  {one.what}{since}: stands at {one.balance}, counts to {one.counted}")
        if not is_right:
            sys.exit(1)


def _chosen(text: str) -> list[Workspace]:
    if not text:
        return list(Workspace.objects.order_by("slug"))
    found = find_workspace(text)
    if found is None:
        raise CommandError(f"There is no workspace {text}.")
    return [found]


def _counted(workspace: Workspace) -> tuple[int, list[Miscount]]:
    with scope.open_workspace(workspace.pk):
        return LedgerEntry.objects.count(), recount()
