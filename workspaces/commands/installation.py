"""The first start of an installation: its epoch, its first engine, its first people."""

from dataclasses import dataclass

from workspaces import checkpoint
from workspaces.access import Actor, SiteRole
from workspaces.audit import Refusal
from workspaces.commands.user import check_username, fresh_password
from workspaces.models import Engine, Installation, User
from workspaces.site_audit import SiteDraft, SiteVerb, site_command


@dataclass(frozen=True, slots=True)
class SignIn:
    """A first person with their password, to be shown once."""

    user: User
    password: str


@site_command(SiteVerb.INSTALLATION_STARTED, needs=None, by_system=True)
def start_installation(event: SiteDraft, *, actor: Actor, admin: str, admin_password: str, slots: int) -> list[SignIn]:
    """Make what an empty installation needs, in one step; raises AlreadyStarted where that has happened before.

    `admin_password` is the operator's own choice, empty for a fresh one. `slots` is how many attempts this machine runs at once.
    """
    installation, _ = Installation.objects.get_or_create(is_current=True, defaults={"checkpoint_key": checkpoint.public_key_hex()})
    event.about(installation)
    if User.objects.exists():
        raise AlreadyStarted
    check_username(admin)
    if admin in ("researcher", "approver"):
        raise Refusal(f"The first person cannot be named {admin}: that is the name of an example person.", field="admin")
    Engine.objects.get_or_create(slug="local", defaults={"kind": Engine.Kind.LOCAL, "slots": slots})
    people = [
        _person(
            admin, admin_password or fresh_password(), roles=[SiteRole.CREATE_WORKSPACE, SiteRole.SITE_OPERATOR, SiteRole.SITE_AUDITOR]
        ),
        _person("researcher", fresh_password()),
        _person("approver", fresh_password()),
    ]
    event.details.update(epoch=installation.epoch, engine="local", slots=slots, people=", ".join(person.user.username for person in people))
    return people


class AlreadyStarted(Exception):  # no fault: the usual case
    """There are people here; nothing is to be made."""


def _person(username: str, password: str, roles: "list[SiteRole] | None" = None) -> SignIn:
    user = User(
        username=username, display_name=username.replace("_", " ").replace(".", " ").title(), site_roles=[str(role) for role in roles or []]
    )
    user.set_password(password)
    user.save(force_insert=True)
    return SignIn(user=user, password=password)
