"""`manage.py restored --apart|--take-over --as USER --reason WHY`: say what this restored database is, so that work begins again."""

import argparse

from django.core.management.base import BaseCommand, CommandError

from runs.commands.restored import decide_restored
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.models import User
from workspaces.units import plural


class Command(BaseCommand):
    help = (
        "Say what a restored database is. Until then labsite's workers touch nothing. It holds the queue of every workspace: see what has run since "
        "the copy was made, then release each queue."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            "--apart", action="store_true", help="the other installation lives on, or this is a drill: what it has started is its own"
        )
        what.add_argument(
            "--take-over",
            action="store_true",
            help="the other installation is gone for good: what it has started is watched and collected here",
        )
        parser.add_argument("--as", dest="actor", required=True, metavar="USER", help="user name of a site operator")
        parser.add_argument("--reason", required=True, metavar="WHY", help="for the record, and for whoever waits in a queue")

    def handle(self, *, apart: bool, actor: str, reason: str, **options: object) -> None:
        user = User.objects.filter(username=actor, is_active=True).first()
        if user is None:
            raise CommandError(f"There is nobody named {actor} who may sign in.")
        try:
            held = decide_restored(actor=Actor.of(user), is_apart=apart, reason=reason)
        except (Denied, Refusal) as error:
            raise CommandError(str(error)) from error
        said = "is apart from the one that it was copied from" if apart else "takes the place of the one that it was copied from"
        self.stdout.write(f"This installation {said}. {plural(held, 'queue is', 'queues are')} held until somebody releases them.")
