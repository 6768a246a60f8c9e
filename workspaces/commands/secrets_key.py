"""The installation's key that wraps the data keys of all workspaces: a fresh one in its place, the old one destroyed once nothing needs it."""

import functools
from collections.abc import Collection

from django.conf import settings
from django.db import transaction

from workspaces.access import Actor, SiteRole
from workspaces.models import Installation
from workspaces.site_audit import SiteDraft, SiteVerb, site_command


@site_command(SiteVerb.SECRETS_KEY_RENEWED, needs=SiteRole.SITE_OPERATOR)
def renew_secrets_key(event: SiteDraft, *, actor: Actor) -> str:
    """Make the key that wraps from now on, and give its name; the one before stays until nothing is wrapped by it.

    Whoever makes a data key holds the same lock from before they read the newest key until they commit. So once this returns, everything that
    is wrapped by an older key can be seen, and nothing more will be.
    """
    Installation.objects.select_for_update(no_key=True).filter(is_current=True).first()
    name: str = settings.SECRETS_KEYS.renew()
    event.details["key"] = name
    return name


@site_command(SiteVerb.SECRETS_KEY_DESTROYED, needs=SiteRole.SITE_OPERATOR)
def destroy_keys(event: SiteDraft, *, actor: Actor, names: Collection[str]) -> None:
    """Destroy older keys by which, as the caller has seen, no data key is wrapped. Backups that need them cannot be read from then on."""
    event.details["keys"] = sorted(names)
    for name in names:
        transaction.on_commit(functools.partial(settings.SECRETS_KEYS.destroy, name))  # not before that is on record
