"""`manage.py first_start`: on an empty installation, the epoch, the local engine, three people. Else nothing."""

import json
import os

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.installation import AlreadyStarted, SignIn, start_installation


class Command(BaseCommand):
    help = "Make what an empty installation needs; prints the sign-ins once, one JSON line a person."

    def handle(self, **options: object) -> None:
        name = os.environ.get("LABSITE_ADMIN_USER") or "admin"
        password = os.environ.get("LABSITE_ADMIN_PASSWORD", "")
        try:
            people = start_installation(
                actor=Actor.system(job_id="first_start"), admin=name, admin_password=password, slots=max(1, len(os.sched_getaffinity(0)))
            )
        except AlreadyStarted:
            return
        except Refusal as refusal:
            raise CommandError(f"LABSITE_ADMIN_USER: {refusal}") from refusal
        if password:
            self.warn_of_weakness(password, people[0])
        for person in people:
            # The operator knows the password that they chose; it is not said again.
            chosen = bool(password) and person is people[0]
            line = {"username": person.user.username, "password": None if chosen else person.password, "site_roles": person.user.site_roles}
            self.stdout.write(json.dumps(line))

    def warn_of_weakness(self, password: str, first: SignIn) -> None:
        try:
            validate_password(password, first.user)
        except ValidationError as weakness:
            self.stderr.write(f"LABSITE_ADMIN_PASSWORD is weaker than the rules for passwords here: {' '.join(weakness.messages)}")
