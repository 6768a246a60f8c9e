"""The first start of an installation: its epoch, its first engine, its first people. And what a restored copy of it is."""

from collections.abc import Sequence
from dataclasses import dataclass

from workspaces import checkpoint
from workspaces.access import Actor, SiteRole
from workspaces.audit import Refusal
from workspaces.commands.user import check_username
from workspaces.models import Engine, Installation, User
from workspaces.models.installation import ThisDatabase, fresh_epoch
from workspaces.reasons import because
from workspaces.site_audit import SiteDraft, SiteVerb, site_command

SETTLED = "This database is the installation's own; nothing is to be decided."


@dataclass(frozen=True, slots=True)
class FirstPerson:
    """Who the first people are, with the password that each begins with."""

    username: str
    password: str
    roles: tuple[SiteRole, ...] = ()


@site_command(SiteVerb.INSTALLATION_STARTED, needs=None, by_system=True)
def start_installation(event: SiteDraft, *, actor: Actor, people: Sequence[FirstPerson], slots: int) -> list[User]:
    """Make what an empty installation needs, in one step; raises AlreadyStarted where that has happened before. `slots` is how many attempts
    this machine runs at once."""
    installation, _ = Installation.objects.get_or_create(is_current=True, defaults={"checkpoint_key": checkpoint.public_key_hex()})
    event.about(installation)
    if User.objects.exists():
        raise AlreadyStarted
    for person in people:
        check_username(person.username)
    Engine.objects.get_or_create(slug="local", defaults={"kind": Engine.Kind.LOCAL, "slots": slots})
    made = [_person(person) for person in people]
    event.details.update(epoch=installation.epoch, engine="local", slots=slots, people=", ".join(user.username for user in made))
    return made


@site_command(SiteVerb.INSTALLATION_RESTORED, needs=SiteRole.SITE_OPERATOR)
def settle_copy(event: SiteDraft, *, actor: Actor, is_apart: bool, reason: str) -> Installation:
    """Say what this restored database is: apart from the one that it was copied from, so that everything it starts has names of its own, or in its
    place. Raises Refusal where that is decided."""
    event.details["reason"] = because(reason, "Say why; it stands in the record.")
    row = Installation.objects.select_for_update(no_key=True).filter(is_current=True).exclude(database=ThisDatabase()).first()
    if row is None:
        raise Refusal(SETTLED)
    event.details["decision"] = "apart" if is_apart else "take over"
    here = Installation.objects.values_list(ThisDatabase(), flat=True).get(pk=row.pk)
    event.change(row, database=here, **({"epoch": fresh_epoch()} if is_apart else {}))
    return row


class AlreadyStarted(Exception):  # no fault: the usual case
    """There are people here; nothing is to be made."""


def _person(person: FirstPerson) -> User:
    name = person.username.replace("_", " ").replace(".", " ").title()
    user = User(username=person.username, display_name=name, site_roles=[str(role) for role in person.roles])
    user.set_password(person.password)
    user.save(force_insert=True)
    return user
