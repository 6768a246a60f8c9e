"""`manage.py apply FILE --as USER [--json]`: make or update the workspace that a JSON or YAML file declares."""

import argparse
import json
import sys
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.commands.declaration import Step, apply_declaration
from workspaces.declaration import MAX_BYTES, DeclarationError, parse_declaration
from workspaces.models import NotFound, User

MARKS = {"created": "+", "changed": "~", "kept": "?", "unchanged": "=", "ignored": "!"}


class Command(BaseCommand):
    help = "Make or update the workspace that a file declares, and say line by line what was done. Applied again, it changes nothing."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="JSON or YAML; - reads the standard input")
        parser.add_argument(
            "--as", dest="actor", required=True, metavar="USER", help="user name of who applies it, and owns a new workspace"
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object instead of lines")

    def handle(self, *, file: str, actor: str, as_json: bool, **options: object) -> None:
        user = User.objects.filter(username=actor, is_active=True).first()
        if user is None:
            raise CommandError(f"There is nobody named {actor} who may sign in.")
        try:
            declaration = parse_declaration(_content(file))
            applied = apply_declaration(actor=Actor.of(user), declaration=declaration, say=None if as_json else self.say)
        except DeclarationError as error:
            raise CommandError("\n".join(str(fault) for fault in error.faults)) from error
        except (Denied, Refusal, NotFound) as error:
            raise CommandError(str(error)) from error
        if as_json:
            steps = [{"did": step.did, "words": step.words} for step in applied.steps]
            found = {"workspace": applied.workspace.public_id, "is_new": applied.is_new, "changed": len(applied.changed), "steps": steps}
            self.stdout.write(json.dumps(found, ensure_ascii=False))
        elif not applied.changed:
            self.stdout.write(f"{applied.workspace.slug} is as the file says; nothing was changed.")

    def say(self, step: Step) -> None:
        self.stdout.write(f"{MARKS[step.did]} {step.did:9} {step.words}")


def _content(file: str) -> bytes:
    """At most one byte more than is read, so that the parser can say that it is too much."""
    try:
        if file == "-":
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        with Path(file).open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
