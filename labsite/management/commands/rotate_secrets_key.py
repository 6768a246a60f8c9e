"""`manage.py rotate_secrets_key --as USER`: wrap the data key of every workspace by a fresh key of the installation, and destroy the old one."""

import argparse
import json

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.secret import rewrap_data_key
from workspaces.commands.secrets_key import destroy_keys, renew_secrets_key
from workspaces.models import DataKey, User, Workspace
from workspaces.sealing import BrokenSeal
from workspaces.site_audit import SiteDenied
from workspaces.units import plural


class Command(BaseCommand):
    help = (
        "Make a fresh key for the secrets of this installation, wrap the data key of every workspace by it, and destroy the old one. Works while "
        "everything runs. Cut off and called again, it goes on where it was. Exit code 0: everything is wrapped by one key."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--as", dest="actor", required=True, metavar="USER", help="user name of a site operator")
        parser.add_argument("--keep-old", action="store_true", help="leave the old key where it is, for backups; call again to destroy it")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object instead of a sentence")

    def handle(self, *, actor: str, keep_old: bool, as_json: bool, **options: object) -> None:
        user = User.objects.filter(username=actor, is_active=True).first()
        if user is None:
            raise CommandError(f"There is nobody named {actor} who may sign in.")
        operator, keys = Actor.of(user), settings.SECRETS_KEYS
        try:
            is_new = not keys.older()  # else an earlier call was cut off, or kept the old key
            name = renew_secrets_key(actor=operator) if is_new else keys.newest()[0]
            rewrapped = sum(_rewrap(workspace) for workspace in Workspace.objects.order_by("slug"))
            older = keys.older()
            needed = {workspace.slug for workspace in Workspace.objects.order_by("slug") if _wrapped_by(workspace) in older}
            if needed:
                raise CommandError(f"Still wrapped by an older key: {', '.join(sorted(needed))}. Call this again.")
            destroyed = [] if keep_old else older
            if destroyed:
                destroy_keys(actor=operator, names=destroyed)
        except (SiteDenied, Refusal) as error:
            raise CommandError(str(error)) from error
        if as_json:
            self.stdout.write(json.dumps({"key": name, "is_new": is_new, "rewrapped": rewrapped, "destroyed": destroyed}))
        else:
            gone = "the old one is destroyed" if destroyed else "the old one stays beside it" if older else "there is no other"
            self.stdout.write(f"{plural(rewrapped, 'data key', 'data keys')} wrapped anew by key {name}; {gone}.")


def _rewrap(workspace: Workspace) -> int:
    """1 where the workspace's data key was wrapped anew, 0 where it has none or is already."""
    with scope.open_workspace(workspace.pk):
        row = DataKey.objects.first()
        if row is None or row.wrapped_by == settings.SECRETS_KEYS.newest()[0]:
            return 0
        try:
            rewrap_data_key(actor=Actor.system(job_id="rotate_secrets_key"))
        except BrokenSeal as error:
            words = f"The data key of {workspace.slug} cannot be opened: its key {row.wrapped_by} is not in LABSITE_HOME/keys."
            raise CommandError(words) from error
        except Refusal:
            return 0  # another call of this command did it this moment
    return 1


def _wrapped_by(workspace: Workspace) -> str:
    with scope.open_workspace(workspace.pk):
        return DataKey.objects.values_list("wrapped_by", flat=True).first() or ""
