"""`manage.py example w2s` or `autogo`: make an example laboratory by ordinary commands; what is there already is left alone."""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from labsite.embedded import pool_python
from labsite.embedded.home import Home
from labsite.embedded.unchanged import set_stamp
from labsite.examples.autogo import make as autogo
from labsite.examples.autogo.plan import WORKSPACE as AUTOGO
from labsite.examples.ground import NotReady
from labsite.examples.w2s import make as w2s
from labsite.examples.w2s.plan import WORKSPACE as W2S
from workspaces.access import Actor, SiteRole
from workspaces.audit import Refusal
from workspaces.models import User, Workspace

POLL_SECONDS = 0.5
SLUGS = {"w2s": W2S.slug, "autogo": AUTOGO.slug}


class Command(BaseCommand):
    help = "Make an example laboratory. Its people are those of the first start, or the ones that are named."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", choices=list(SLUGS))
        parser.add_argument("--workspace", default="", help="slug of the workspace to make, where it shall not be the laboratory's own")
        parser.add_argument(
            "--as", dest="admin", default=os.environ.get("LABSITE_ADMIN_USER") or "admin", help="who creates and configures it"
        )
        parser.add_argument("--researcher", default="researcher")
        parser.add_argument("--approver", default="approver")
        parser.add_argument("--set-up-only", action="store_true", help="stop before anything that needs the pool's Python")
        parser.add_argument("--stamp", action="store_true", help="note in the data folder that it is complete; `up` calls it no more")
        parser.add_argument("--seconds", type=float, default=600, help="how long to wait for the pool's Python and for runs")

    def handle(self, *args: Any, **options: Any) -> None:
        self.deadline = time.monotonic() + options["seconds"]
        admin, researcher, approver = (self._user(options[name]) for name in ("admin", "researcher", "approver"))
        if SiteRole.CREATE_WORKSPACE not in admin.site_roles:
            raise CommandError(f"{admin.username} may not create workspaces.")
        people: dict[str, Any] = {"admin": Actor.of(admin), "researcher": researcher, "approver": approver}
        name, slug = options["name"], options["workspace"] or SLUGS[options["name"]]
        start_w2s = partial(w2s.start, approver=Actor.of(approver))
        laboratories: dict[str, tuple[Callable[..., Workspace], Callable[..., None]]] = {
            "w2s": (w2s.set_up, start_w2s),
            "autogo": (autogo.set_up, autogo.start),
        }
        set_up, start = laboratories[name]
        try:
            workspace = set_up(slug=slug, as_root=os.geteuid() == 0, say=self._say, **people)
            if options["set_up_only"]:
                return
            python = self._pool_python()
            if name == "w2s":
                w2s.fill(workspace=workspace, admin=people["admin"], python=python, say=self._say)
            start(workspace=workspace, researcher=Actor.of(researcher), say=self._say, seconds=max(0.0, self.deadline - time.monotonic()))
            if options["stamp"]:
                set_stamp(Home(settings.LABSITE_HOME), f"example-{name}", name)
        except (Refusal, NotReady) as error:
            raise CommandError(str(error)) from error

    def _pool_python(self) -> Path:
        """The pool's own Python, once it is installed."""
        while not pool_python.is_ready(settings.LABSITE_RUNS):
            if time.monotonic() > self.deadline:
                raise NotReady("the pool's Python environment is not there yet")
            time.sleep(POLL_SECONDS)
        return Path(settings.LABSITE_RUNS) / "python" / "bin" / "python"

    def _user(self, username: str) -> User:
        user = User.objects.filter(username=username, is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active person named {username}; name another with --as, --researcher or --approver.")
        return user

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
