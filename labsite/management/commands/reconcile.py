"""`manage.py reconcile`: does every stored file have its row, and every row its file? Reads only; the nightly look puts it on record."""

import argparse
import json
import sys

from django.core.management.base import BaseCommand, CommandError

from workspaces import scope
from workspaces.commands.blob import stray_files
from workspaces.commands.reconcile import compare_files
from workspaces.models import Workspace
from workspaces.queries.blob_use import unnamed
from workspaces.queries.workspace import find_workspace
from workspaces.units import plural

SHOWN = 20


class Command(BaseCommand):
    help = "Compare the stored files of every workspace with their rows, both ways. Exit code 0: no row lacks its file."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--workspace", default="", metavar="W", help="slug, canonical id or UUID; without it all")
        parser.add_argument("--json", dest="as_json", action="store_true", help="one JSON object instead of sentences")

    def handle(self, *, workspace: str, as_json: bool, **options: object) -> None:
        found = [_compared(one) for one in _chosen(workspace)]
        if as_json:
            self.stdout.write(json.dumps({"stores": found}))
        else:
            for one in found:
                self.stdout.write(_sentence(one))
        if any(one["missing"] for one in found):
            sys.exit(1)


def _compared(workspace: Workspace) -> dict[str, object]:
    with scope.open_workspace(workspace.pk):
        compared = compare_files()
        missing = sorted(blob.sha256 for blob in (*compared.missing, *compared.known))
        free = sorted(unnamed().values_list("sha256", flat=True))
        return {"workspace": workspace.slug, "rows": compared.looked, "missing": missing, "strays": sorted(stray_files()), "unnamed": free}


def _sentence(one: dict[str, object]) -> str:
    missing, strays, free = (
        list(map(str, names)) if isinstance(names, list) else [] for names in map(one.get, ("missing", "strays", "unnamed"))
    )
    lines = [f"{one['workspace']}: {one['rows']} rows — {'every file is there' if not missing else 'FILES ARE MISSING'}"]
    lines += [f"  missing: {sha256}" for sha256 in missing[:SHOWN]]
    if strays:
        lines.append(f"  {plural(len(strays), 'file has', 'files have')} no row; the next tidying up removes what is older than a day")
    if free:
        lines.append(f"  {plural(len(free), 'file is', 'files are')} named by nothing; the nightly look lets go of them")
    return "\n".join(lines)


def _chosen(text: str) -> list[Workspace]:
    if not text:
        return list(Workspace.objects.order_by("slug"))
    found = find_workspace(text)
    if found is None:
        raise CommandError(f"There is no workspace {text}.")
    return [found]
