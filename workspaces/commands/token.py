"""Bearer tokens of the workspace: made by their holder, or by an admin for a service account; shown once."""

import uuid
from collections.abc import Sequence
from datetime import timedelta

from django.db import connection
from django.utils import timezone

from workspaces import ids, scope
from workspaces.access import Actor, Kind, Permission, Rights, SiteRole, rights_of
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.commands.member import check_grant
from workspaces.models import Membership, NotFound, Token, User
from workspaces.queries.token import fresh_secret, hash_secret, spell
from workspaces.site_audit import SiteDenied
from workspaces.text import is_name
from workspaces.verbs import Verb

MAX_DAYS = 365
READS = (Permission.VIEW, Permission.VIEW_AUDIT)
SCOPES = tuple(f"{kind}:{access}" for kind in Kind for access in ("read", "write"))


@command(Verb.TOKEN_CREATED, needs=Permission.VIEW)
def create_token(
    event: Draft,
    *,
    actor: Actor,
    name: str,
    scopes: Sequence[str],
    days: int = 90,
    holder: User | None = None,
    at_console: bool = False,
    token_id: uuid.UUID | None = None,
) -> tuple[Token, str]:
    """Make a token for the actor, or by an admin for a service account; its text is returned, to be shown once, and kept nowhere.

    `at_console` lets an admin on the machine make one for another person as well (`manage.py create_token --as A --user U`).
    """
    if actor.token_id is not None:
        raise Refusal("A token makes no tokens; sign in to make one.")
    holder = holder or actor.user
    if holder is None:
        raise Refusal("A token wants a holder.", field="user")
    if actor.user is None or holder.pk != actor.user.pk:
        _check_other(actor, holder, at_console=at_console)
    wanted = _checked_scopes(rights_of(Actor.of(holder), scope.current_id()), scopes, holder)
    name = name.strip()
    if not 1 <= len(name) <= 120 or not is_name(name):
        raise Refusal("A token's name has 1 to 120 characters, all of which can be printed.", field="name")
    if not 1 <= days <= MAX_DAYS:
        raise Refusal(f"A token lasts 1 to {MAX_DAYS} days.", field="days")
    secret = fresh_secret()
    row = Token.objects.create(
        id=token_id or ids.uuid7(),
        kind=Token.Kind.PERSON if holder.kind == User.Kind.PERSON else Token.Kind.SERVICE,
        holder=holder,
        name=name,
        secret_hash=hash_secret(secret),
        scopes=wanted,
        expires_at=timezone.now() + timedelta(days=days),
    )
    event.created(row)
    event.details.update(holder=holder.label, scopes=wanted, days=days)
    return row, spell(row.kind, scope.current_id(), row.pk, secret)


@command(Verb.TOKEN_REVOKED, needs=Permission.VIEW, in_archive="taking a right away never waits")
def revoke_token(event: Draft, *, actor: Actor, token: str, reason: str = "") -> Token:
    """End a token: one's own, or as an admin anybody's. It is refused from the next request on."""
    row = Token.objects.select_for_update(no_key=True).get(pk=Token.objects.find(token).pk)
    if not actor.is_user(row.holder_id) and not rights_of(actor, scope.current_id()).allows(Permission.MANAGE_MEMBERS, Kind.MEMBER):
        raise Denied(Permission.MANAGE_MEMBERS, Kind.MEMBER)
    return _revoke(event, row, reason)


@command(
    Verb.TOKEN_REVOKED,
    needs=None,
    public_reason="the site role site_operator, checked first thing: a leaked token is ended at once",
    in_archive="taking a right away never waits",
)
def revoke_leaked_token(event: Draft, *, actor: Actor, token: str) -> Token:
    """End any token as a site operator, who need not be a member and reads nothing else here."""
    if not actor.has_site_role(SiteRole.SITE_OPERATOR):
        raise SiteDenied(SiteRole.SITE_OPERATOR)
    row = Token.objects.select_for_update(no_key=True).get(pk=Token.objects.find(token).pk)
    return _revoke(event, row, "revoked by a site operator")


def note_use(token_id: uuid.UUID, *, address: str) -> None:
    """Remember when and from where a token was last used, at most once a minute: telemetry, no event. Wants the workspace's scope open.

    Within the minute nothing is written: a conflict alone would lock the row, for which requests of one token wait, and commit that to disk."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO workspaces_tokenuse (id, workspace_id, token_id, used_at, address)
            SELECT use.*, now(), %(address)s FROM (VALUES (%(id)s::uuid, %(workspace)s::uuid, %(token)s::uuid)) AS use (id, workspace, token)
            WHERE NOT EXISTS (
                SELECT FROM workspaces_tokenuse
                WHERE workspace_id = %(workspace)s AND token_id = %(token)s AND used_at >= now() - interval '1 minute'
            )
            ON CONFLICT (workspace_id, token_id) DO UPDATE SET used_at = excluded.used_at, address = excluded.address
            WHERE workspaces_tokenuse.used_at < now() - interval '1 minute'
            """,
            {"id": ids.uuid7(), "workspace": scope.current_id(), "token": token_id, "address": address[:45]},
        )


def _revoke(event: Draft, row: Token, reason: str) -> Token:
    if row.revoked_at is not None:
        raise Refusal(f"The token {row.name} is revoked already.")
    event.reason = reason[:1000]
    event.change(row, revoked_at=timezone.now())
    return row


def _check_other(actor: Actor, holder: User, *, at_console: bool) -> None:
    rights = rights_of(actor, scope.current_id())
    if not rights.allows(Permission.MANAGE_MEMBERS, Kind.MEMBER):
        raise Denied(Permission.MANAGE_MEMBERS, Kind.MEMBER)
    if holder.kind == User.Kind.PERSON and not at_console:
        raise Refusal(f"{holder.label} is a person and makes tokens themselves; make a service account for a program.", field="user")
    if not rights_of(Actor.of(holder), scope.current_id()).may_enter:
        raise NotFound("member")
    for member in Membership.objects.filter(user=holder):
        check_grant(rights, member.role, member.kinds)


def _checked_scopes(rights: Rights, scopes: Sequence[str], holder: User) -> list[str]:
    wanted = sorted({text.strip() for text in scopes if text.strip()})
    if not wanted:
        raise Refusal("Choose at least one scope, such as run:read.", field="scopes")
    for text in wanted:
        if text not in SCOPES:
            raise Refusal(
                f"There is no scope {text[:60]}; a scope is <noun>:read or <noun>:write, with a noun of {', '.join(Kind)}.", field="scopes"
            )
        noun, _, access = text.partition(":")
        held = any(rights.allows(permission, Kind(noun)) for permission in rights.grants if (permission in READS) == (access == "read"))
        if not held:
            raise Refusal(f"{holder.label} may not {access} {noun} objects here, so that {text} would grant nothing.", field="scopes")
    return wanted
