"""`manage.py example w2s`: make an example laboratory by ordinary commands; what is there already is left alone."""

import os
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from labsite.embedded import pool_python
from labsite.embedded.home import Home
from labsite.embedded.unchanged import set_stamp
from labsite.examples.w2s import make
from workspaces.access import Actor, SiteRole
from workspaces.audit import Refusal
from workspaces.models import User

POLL_SECONDS = 0.5


class Command(BaseCommand):
    help = "Make an example laboratory. Its people are those of the first start, or the ones that are named."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", choices=["w2s"])
        parser.add_argument("--workspace", default="w2s-medqa", help="slug of the workspace to make")
        parser.add_argument(
            "--as", dest="admin", default=os.environ.get("LABSITE_ADMIN_USER") or "admin", help="who creates and configures it"
        )
        parser.add_argument("--researcher", default="researcher")
        parser.add_argument("--approver", default="approver")
        parser.add_argument("--set-up-only", action="store_true", help="stop before anything that needs the pool's Python")
        parser.add_argument("--stamp", action="store_true", help="note in the data folder that it is complete; `up` calls it no more")
        parser.add_argument("--seconds", type=float, default=600, help="how long to wait for the pool's Python and for runs")

    def handle(self, *args: Any, **options: Any) -> None:
        began = time.monotonic()
        admin, researcher, approver = (self._user(options[name]) for name in ("admin", "researcher", "approver"))
        if SiteRole.CREATE_WORKSPACE not in admin.site_roles:
            raise CommandError(f"{admin.username} may not create workspaces.")
        try:
            workspace = make.set_up(
                slug=options["workspace"], admin=Actor.of(admin), researcher=researcher, approver=approver, as_root=os.geteuid() == 0, say=self._say
            )  # fmt: skip
            if options["set_up_only"]:
                return
            while not pool_python.is_ready(settings.LABSITE_RUNS):
                if time.monotonic() - began > options["seconds"]:
                    raise make.NotReady("the pool's Python environment is not there yet")
                time.sleep(POLL_SECONDS)
            make.fill(workspace=workspace, admin=Actor.of(admin), python=settings.LABSITE_RUNS / "python" / "bin" / "python", say=self._say)
            make.start(workspace=workspace, researcher=Actor.of(researcher), say=self._say, seconds=options["seconds"])
            if options["stamp"]:
                set_stamp(Home(settings.LABSITE_HOME), "example", options["name"])
        except (Refusal, make.NotReady) as error:
            raise CommandError(str(error)) from error

    def _user(self, username: str) -> User:
        user = User.objects.filter(username=username, is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active person named {username}; name another with --as, --researcher or --approver.")
        return user

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
