"""People and service accounts of the installation: made, let in or kept out by site operators."""

import re
import secrets
import uuid
from collections.abc import Sequence

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from workspaces import ids
from workspaces.access import Actor, SiteRole
from workspaces.audit import Refusal
from workspaces.models import NotFound, User
from workspaces.queries.owner import lock_workspaces, owned_by, owners_of
from workspaces.site_audit import SiteDraft, SiteVerb, site_command
from workspaces.text import is_name

USERNAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")


@site_command(SiteVerb.USER_CREATED, needs=SiteRole.SITE_OPERATOR)
def create_user(
    event: SiteDraft, *, actor: Actor, username: str, display_name: str = "", email: str = "", kind: str = User.Kind.PERSON
) -> tuple[User, str]:
    """Make an account; a person's fresh password is returned, to be shown once. Service accounts have none."""
    password = fresh_password() if kind == User.Kind.PERSON else None
    user = new_user(username=username, display_name=display_name, email=email, kind=kind, password=password)
    event.about(user)
    event.details["kind"] = user.kind
    return user, password or ""


@site_command(SiteVerb.USER_DEACTIVATED, needs=SiteRole.SITE_OPERATOR)
def deactivate_user(event: SiteDraft, *, actor: Actor, username: str) -> User:
    """Keep an account out: its sessions and tokens are refused from the next request on. Its record stays."""
    user = _locked(username)
    if actor.user is not None and user.pk == actor.user.pk:
        raise Refusal("You cannot deactivate yourself; another site operator can.")
    if not user.is_active:
        raise Refusal(f"{user.label} is deactivated already.")
    owned = owned_by(user)
    lock_workspaces(owned)
    event.change(user, is_active=False)
    alone = [workspace.name for workspace in owned if not owners_of(workspace.pk)]
    if alone:
        raise Refusal(
            f"{user.label} is the only owner of {', '.join(alone[:5])}{' and others' if len(alone) > 5 else ''}.",
            "Have another person made owner there first. To keep a stranger out of the account now, give it a new password and revoke its tokens.",
        )
    _check_operator_stays()
    return user


@site_command(SiteVerb.USER_ACTIVATED, needs=SiteRole.SITE_OPERATOR)
def activate_user(event: SiteDraft, *, actor: Actor, username: str) -> User:
    """Let a deactivated account in again, with the memberships it still has."""
    user = _locked(username)
    if user.is_active:
        raise Refusal(f"{user.label} can sign in already.")
    event.change(user, is_active=True)
    return user


@site_command(SiteVerb.USER_SITE_ROLES_SET, needs=SiteRole.SITE_OPERATOR)
def set_site_roles(event: SiteDraft, *, actor: Actor, username: str, roles: Sequence[str]) -> User:
    """Say what a person may do for the installation; one site operator always stays."""
    user = _locked(username)
    unknown = sorted(set(roles) - set(SiteRole.values))
    if unknown:
        raise Refusal(f"There is no site role {unknown[0][:40]}; there are {', '.join(SiteRole.values)}.", field="roles")
    if user.kind != User.Kind.PERSON and roles:
        raise Refusal("Only people hold site roles.", field="roles")
    event.change(user, site_roles=sorted(set(roles)))
    _check_operator_stays()
    return user


@site_command(SiteVerb.USER_PASSWORD_SET, needs=SiteRole.SITE_OPERATOR)
def give_new_password(event: SiteDraft, *, actor: Actor, username: str) -> tuple[User, str]:
    """Replace a person's password by a fresh one, which is returned to be shown once; every session of theirs ends."""
    user = _locked(username)
    if user.kind != User.Kind.PERSON:
        raise Refusal(f"{user.label} is no person and signs in with tokens only.")
    password = fresh_password()
    user.set_password(password)
    user.save(update_fields=["password"])
    event.about(user)
    return user, password


# --- Pieces that other commands share -----------------------------------------------------------------------------------------------------


def new_user(
    *,
    username: str,
    display_name: str = "",
    email: str = "",
    kind: str = User.Kind.PERSON,
    password: str | None = None,
    key: uuid.UUID | None = None,
) -> User:
    """Write an account by the rules for names, addresses and passwords. Inside the transaction of the command that makes it."""
    user = User(
        id=key or ids.uuid7(), username=username, display_name=display_name.strip() or username, email=email.strip().lower(), kind=kind
    )
    check_username(username)
    if len(user.display_name) > 120 or not is_name(user.display_name):
        raise Refusal("A name to show has at most 120 characters, all of which can be printed.", field="display_name")
    if kind not in User.Kind.values:
        raise Refusal(f"There is no kind of account {kind[:40]}.", field="kind")
    if user.email:
        try:
            validate_email(user.email)
        except ValidationError as error:
            raise Refusal(*error.messages, field="email") from error
        if User.objects.filter(email__iexact=user.email).exists():
            raise Refusal("There is an account with this e-mail address already.", field="email")
    if password is None:
        user.set_unusable_password()
    else:
        check_password_rules(password, user)
        user.set_password(password)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError as error:
        raise Refusal(f"The user name {username} is taken; choose another.", field="username") from error
    return user


def check_username(username: str) -> None:
    if username in ids.RESERVED_SLUGS:
        raise Refusal(f"The user name {username} is reserved; choose another.", field="username")
    if not USERNAME.fullmatch(username):
        raise Refusal(
            "A user name has 1 to 64 lower-case letters, digits, dots, - or _, beginning and ending with a letter or digit.",
            field="username",
        )


def check_password_rules(password: str, user: User) -> None:
    """The rules of AUTH_PASSWORD_VALIDATORS, as reasons of a refusal."""
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Refusal(*error.messages, field="password") from error


def fresh_password() -> str:
    """120 bits, as text that can be read aloud."""
    return "-".join(secrets.token_hex(3) for _ in range(5))


def _locked(username: str) -> User:
    user = User.objects.select_for_update(no_key=True).filter(username=username).first()
    if user is None:
        raise NotFound("person")
    return user


def _check_operator_stays() -> None:
    # Locked in one order, so that two who take the role from each other cannot both succeed.
    operators = (
        User.objects.select_for_update(no_key=True).filter(is_active=True, site_roles__contains=[SiteRole.SITE_OPERATOR]).order_by("pk")
    )
    if not list(operators):
        raise Refusal("The installation keeps at least one site operator who can sign in.", field="roles")
