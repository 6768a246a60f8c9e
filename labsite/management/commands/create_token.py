"""`manage.py create_token --as A --user U --workspace W --scopes a,b --days N`: prints the token alone on the last line."""

import argparse

from django.core.management.base import BaseCommand, CommandError

from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.commands.token import create_token
from workspaces.models import NotFound, User
from workspaces.queries.workspace import find_workspace


class Command(BaseCommand):
    help = "Make a bearer token of one workspace; the last line of the output is the token, shown this once."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--as", dest="actor", required=True, metavar="A", help="user name of who makes it")
        parser.add_argument("--user", metavar="U", help="user name of who holds it; the maker where left out")
        parser.add_argument("--workspace", required=True, metavar="W", help="slug, canonical id or UUID")
        parser.add_argument("--scopes", required=True, metavar="a,b", help="such as run:read,run:write")
        parser.add_argument("--days", type=int, default=90, metavar="N", help="how long it lasts, 1 to 365")
        parser.add_argument("--name", default="command line", help="how the token is called in lists")

    def handle(self, *, actor: str, user: str | None, workspace: str, scopes: str, days: int, name: str, **options: object) -> None:
        maker = self.person(actor)
        holder = self.person(user) if user else maker
        found = find_workspace(workspace)
        if found is None:
            raise CommandError(f"There is no workspace {workspace}.")
        try:
            with scope.open_workspace(found.pk):
                _, text = create_token(
                    actor=Actor.of(maker), holder=holder, name=name, scopes=scopes.split(","), days=days, at_console=True
                )
        except (Denied, Refusal, NotFound) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(text)

    def person(self, username: str) -> User:
        user = User.objects.filter(username=username, is_active=True).first()
        if user is None:
            raise CommandError(f"There is nobody named {username} who may sign in.")
        return user
