"""`manage.py verify`: is the record of every workspace whole? With `--export`: is that export?"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs.export_verify import Fault, check
from workspaces import checkpoint, scope
from workspaces.models import Installation, Workspace
from workspaces.queries.chain import Verification, verify_chain
from workspaces.queries.site_chain import verify_site_chain
from workspaces.queries.workspace import find_workspace
from workspaces.units import plural


@dataclass(frozen=True, slots=True)
class Line:
    chain: str
    result: Verification


class Command(BaseCommand):
    help = "Recompute the audit chain of the site and every workspace, and hold them against their checkpoints. Exit code 0: all is whole."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--workspace", default="", metavar="W", help="slug, canonical id or UUID; without it all, and the site's own chain"
        )
        parser.add_argument("--export", default="", metavar="DIR", help="an export instead: its files, its record, its signatures")
        parser.add_argument("--json", dest="as_json", action="store_true", help="one JSON object instead of sentences")

    def handle(self, *, workspace: str, export: str, as_json: bool, **options: object) -> None:
        if export:
            self._verify_export(export, as_json=as_json)
            return
        lines = [Line(one.slug, _verified(one)) for one in _chosen(workspace)]
        if not workspace:
            lines.insert(0, Line("(site)", verify_site_chain()))
        key_fault = _key_fault()
        faults = [line for line in lines if not line.result.is_whole]
        if as_json:
            self.stdout.write(
                json.dumps({"whole": not faults and not key_fault, "fault": key_fault, "chains": [_plain(line) for line in lines]})
            )
        else:
            for line in lines:
                self.stdout.write(_sentence(line))
            if key_fault:
                self.stdout.write(f"checkpoint key: {key_fault}")
            self.stdout.write(f"{len(lines) - len(faults)} of {len(lines)} chains are whole.")
        if faults or key_fault:
            sys.exit(1)

    def _verify_export(self, folder: str, *, as_json: bool) -> None:
        """What the export's own verify.py does. Whose key signed it is said, not demanded: it may come from another installation."""
        found: list[str] = []
        try:
            faults = check(folder, found.append)
        except Fault as fault:
            raise CommandError(str(fault)) from fault
        if as_json:
            self.stdout.write(json.dumps({"whole": not faults, "faults": faults, "checked": found}))
        else:
            for line in [*found, *(f"WRONG {fault}" for fault in faults)]:
                self.stdout.write(line)
            self.stdout.write(f"The export is {'NOT whole' if faults else 'whole'}.")
        if faults:
            sys.exit(1)


def _chosen(text: str) -> list[Workspace]:
    if not text:
        return list(Workspace.objects.order_by("slug"))
    found = find_workspace(text)
    if found is None:
        raise CommandError(f"There is no workspace {text}.")
    return [found]


def _verified(workspace: Workspace) -> Verification:
    with scope.open_workspace(workspace.pk):
        return verify_chain()


def _key_fault() -> str:
    """Does the key in the installation's folder agree with the one that the database remembers?"""
    kept = Installation.objects.filter(is_current=True).values_list("checkpoint_key", flat=True).first()
    if kept and kept != checkpoint.public_key_hex():
        return (
            f"the key in the keys folder ({checkpoint.public_key_hex()[:16]}…) is not the one this installation began with ({kept[:16]}…)."
        )
    return ""


def _plain(line: Line) -> dict[str, Any]:
    stated = asdict(line.result)
    stated["sealed_at"] = line.result.sealed_at.isoformat() if line.result.sealed_at else None
    return {"chain": line.chain, "whole": line.result.is_whole, "tail": line.result.tail, **stated}


def _sentence(line: Line) -> str:
    result = line.result
    sealed = f"last sealed {result.sealed_at:%Y-%m-%d %H:%M:%S} UTC at event {result.sealed}" if result.sealed_at else "never sealed"
    more = f", {result.erased_payloads} payloads erased" if result.erased_payloads else ""
    more += f", {result.unreadable_lines} unreadable checkpoint lines" if result.unreadable_lines else ""
    verdict = "whole" if result.is_whole else f"BROKEN: {result.fault}"
    events = plural(result.events, "event", "events")
    checkpoints = plural(result.checkpoints, "checkpoint", "checkpoints")
    return f"{line.chain}: {events}, head {result.head[:16]}…, {checkpoints}, {sealed}, {result.tail} after it{more} — {verdict}"
