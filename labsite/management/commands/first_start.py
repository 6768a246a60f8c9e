"""`manage.py first_start`: on an empty installation, the epoch, the local engine, three people. Each time, what this machine can isolate."""

import argparse
import json
import os

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from labsite.sign_ins import sign_in_table
from runs.pools.isolation import available
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.engine import tell_isolations
from workspaces.commands.installation import AlreadyStarted, SignIn, start_installation


class Command(BaseCommand):
    help = "Make what an empty installation needs; prints the sign-ins once."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", dest="as_json", action="store_true", help="print one JSON line a person instead of a table")

    def handle(self, *, as_json: bool = False, **options: object) -> None:
        name = os.environ.get("LABSITE_ADMIN_USER") or "admin"
        password = os.environ.get("LABSITE_ADMIN_PASSWORD", "")
        system = Actor.system(job_id="first_start")
        try:
            people = start_installation(actor=system, admin=name, admin_password=password, slots=max(1, len(os.sched_getaffinity(0))))
        except AlreadyStarted:
            people = []
        except Refusal as refusal:
            raise CommandError(f"LABSITE_ADMIN_USER: {refusal}") from refusal
        tell_isolations(actor=system, isolations=[isolation.value for isolation in available(as_root=os.geteuid() == 0)])
        if not people:
            return
        if password:
            self.warn_of_weakness(password, people[0])
        # The operator knows the password that they chose; it is not said again.
        lines = [
            {
                "username": person.user.username,
                "password": None if password and person is people[0] else person.password,
                "site_roles": person.user.site_roles,
            }
            for person in people
        ]
        self.stdout.write("\n".join(map(json.dumps, lines) if as_json else sign_in_table(lines)))

    def warn_of_weakness(self, password: str, first: SignIn) -> None:
        try:
            validate_password(password, first.user)
        except ValidationError as weakness:
            self.stderr.write(f"LABSITE_ADMIN_PASSWORD is weaker than the rules for passwords here: {' '.join(weakness.messages)}")
