"""The first start of an installation: its epoch, its first engine, its first people."""

from collections.abc import Sequence
from dataclasses import dataclass

from workspaces import checkpoint
from workspaces.access import Actor, SiteRole
from workspaces.commands.user import check_username
from workspaces.models import Engine, Installation, User
from workspaces.site_audit import SiteDraft, SiteVerb, site_command


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


class AlreadyStarted(Exception):  # no fault: the usual case
    """There are people here; nothing is to be made."""


def _person(person: FirstPerson) -> User:
    name = person.username.replace("_", " ").replace(".", " ").title()
    user = User(username=person.username, display_name=name, site_roles=[str(role) for role in person.roles])
    user.set_password(person.password)
    user.save(force_insert=True)
    return user
