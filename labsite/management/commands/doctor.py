"""`manage.py doctor`: does every invariant hold? Exit code 0 only where all is right."""

import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from labsite.doctor import examine


class Command(BaseCommand):
    help = "Check every invariant of the installation and of each workspace; changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", dest="as_json", action="store_true", help="one JSON object instead of sentences")

    def handle(self, *args: Any, as_json: bool, **options: Any) -> None:
        findings = list(examine())
        sick = [finding for finding in findings if finding.faults]
        if as_json:
            self.stdout.write(json.dumps({"healthy": not sick, "findings": [asdict(finding) for finding in findings]}))
        else:
            for finding in findings:
                where = f"{finding.workspace}: " if finding.workspace else ""
                self.stdout.write(f"{'!!' if finding.faults else 'ok'}  {where}{finding.check}")
                for fault in finding.faults[:20]:
                    self.stdout.write(f"      {fault}")
                for warning in finding.warnings[:20]:
                    self.stdout.write(f"      look: {warning}")
                if len(finding.faults) > 20:
                    self.stdout.write(f"      … and {len(finding.faults) - 20} more")
            self.stdout.write(f"{len(findings) - len(sick)} of {len(findings)} checks hold.")
        if sick:
            sys.exit(1)
