"""`manage.py first_start`: on an empty installation, the epoch, the local engine, three people. Each time, what this machine can isolate."""

import argparse
import json
import os
from pathlib import Path

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from labsite.embedded.home import Home, write_private
from labsite.sign_ins import sign_in_table
from runs.pools.isolation import available
from workspaces.access import Actor, SiteRole
from workspaces.audit import Refusal
from workspaces.commands.engine import tell_isolations
from workspaces.commands.installation import AlreadyStarted, FirstPerson, start_installation
from workspaces.commands.user import fresh_password
from workspaces.models import User
from workspaces.queries.installation import UNDECIDED, is_copy

EXAMPLE_PEOPLE = ("researcher", "approver")


class Command(BaseCommand):
    help = "Make what an empty installation needs; prints the sign-ins once."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", dest="as_json", action="store_true", help="print one JSON line a person instead of a table")
        parser.add_argument("--keep", action="store_true", help="print nothing; the sign-ins stay kept for whoever shows them")

    def handle(self, *, as_json: bool = False, keep: bool = False, **options: object) -> None:
        system = Actor.system(job_id="first_start")
        kept = Home(settings.LABSITE_HOME).sign_ins
        if not User.objects.exists():
            self.make(system, kept)
        lines = kept.read_text().splitlines() if kept.exists() else []
        if lines and not keep:
            self.stdout.write("\n".join(lines if as_json else sign_in_table(map(json.loads, lines))))
            self.stdout.flush()
            kept.unlink()  # they have been shown
        if is_copy():
            self.stderr.write(UNDECIDED)
        tell_isolations(actor=system, isolations=[isolation.value for isolation in available(as_root=os.geteuid() == 0)])

    def make(self, system: Actor, kept: Path) -> None:
        """Choose and keep the sign-ins, then make the people: whenever this is ended, either there are none or what they were given is kept."""
        name = os.environ.get("LABSITE_ADMIN_USER") or "admin"
        chosen = os.environ.get("LABSITE_ADMIN_PASSWORD", "")
        if name in EXAMPLE_PEOPLE:
            raise CommandError(f"LABSITE_ADMIN_USER: The first person cannot be named {name}: that is the name of an example person.")
        people = [
            FirstPerson(name, chosen or fresh_password(), (SiteRole.CREATE_WORKSPACE, SiteRole.SITE_OPERATOR, SiteRole.SITE_AUDITOR)),
            *(FirstPerson(example, fresh_password()) for example in EXAMPLE_PEOPLE),
        ]
        lines = [
            # The operator knows the password that they chose; it is not said again.
            {
                "username": person.username,
                "password": None if person.password == chosen else person.password,
                "site_roles": list(person.roles),
            }
            for person in people
        ]
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(kept, "\n".join(map(json.dumps, lines)))
        try:
            made = start_installation(actor=system, people=people, slots=max(1, len(os.sched_getaffinity(0))))
        except AlreadyStarted:
            kept.unlink()  # another start was faster (`up` lets only one in): nobody has these passwords, so nobody is shown them
        except Refusal as refusal:
            kept.unlink()
            raise CommandError(f"LABSITE_ADMIN_USER: {refusal}") from refusal
        else:
            if chosen:
                self.warn_of_weakness(chosen, made[0])

    def warn_of_weakness(self, password: str, first: User) -> None:
        try:
            validate_password(password, first)
        except ValidationError as weakness:
            self.stderr.write(f"LABSITE_ADMIN_PASSWORD is weaker than the rules for passwords here: {' '.join(weakness.messages)}")
