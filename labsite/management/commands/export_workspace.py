"""`manage.py export_workspace WORKSPACE --to DIR --as USER`: write an export of a workspace to a folder of this machine."""

import argparse
import json
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from runs.commands.export import request_export
from runs.export_folder import part_of
from runs.jobs.export import write
from runs.models import Export
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.models import User
from workspaces.queries.workspace import find_workspace
from workspaces.units import size


class Command(BaseCommand):
    help = "Write a workspace as a folder of JSON lines with hashes, which anybody can check with the verify.py inside (docs/export.md)."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("workspace", metavar="WORKSPACE", help="slug, canonical id or UUID")
        parser.add_argument("--to", required=True, metavar="DIR", help="a folder that is not there yet")
        parser.add_argument("--as", dest="actor", required=True, metavar="USER", help="user name of who takes it away")
        parser.add_argument(
            "--files", choices=Export.Files.values, default=Export.Files.NONE, help="whose content travels besides the rows"
        )
        parser.add_argument("--reason", default="", help="demanded for files of internal datasets and artifacts")
        parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON object instead of a sentence")

    def handle(self, *, workspace: str, to: str, actor: str, files: str, reason: str, as_json: bool, **options: object) -> None:
        user = User.objects.filter(username=actor, is_active=True).first()
        found = find_workspace(workspace)
        if user is None:
            raise CommandError(f"There is nobody named {actor} who may sign in.")
        if found is None:
            raise CommandError(f"There is no workspace {workspace}.")
        folder = Path(to).absolute()
        for place in (folder, part_of(folder)):
            if place.exists() or place.is_symlink():
                raise CommandError(f"{place} is there already; name a folder that is not, or remove it.")
        try:
            with scope.open_workspace(found.pk):
                asked = request_export(actor=Actor.of(user), files=files, reason=reason, is_kept=False)
                export = write(Actor.system(job_id="export_workspace"), asked, folder)
        except (Denied, Refusal) as error:
            raise CommandError(str(error)) from error
        if export.status != Export.Status.TAKEN:
            raise CommandError(export.failure or f"Export {export.number} is {export.get_status_display().lower()}.")
        if as_json:
            stated = {"export": export.public_id, "folder": str(folder), "bytes": export.bytes, "manifest_sha256": export.manifest_sha256}
            self.stdout.write(json.dumps({**stated, "left_out": export.contents["left_out"]}))
            return
        rows = sum(entry["rows"] or 0 for entry in export.contents["files"])
        self.stdout.write(f"{folder}: {size(export.bytes or 0)}, {rows:,} rows, {export.contents['blobs']['count']:,} stored files.")
        for entry in export.contents["left_out"]:
            self.stdout.write(f"left out: {entry['what']}{' ' + entry['dataset'] if 'dataset' in entry else ''} ({entry['why']})")
        self.stdout.write(f"Check it anywhere: python3 {folder}/verify.py")
