"""Writes to what no workspace owns (people, groups, engines): a site command has one durable transaction and one event in the site's chain."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.db import connection, models, transaction
from django.utils import timezone

from workspaces import ids
from workspaces.access import Actor, SiteRole
from workspaces.audit import DENIALS_A_MINUTE, NOTHING_YET, Denied, label_of, type_name
from workspaces.canonical import digest, plain
from workspaces.models import ActorKind, SiteEvent

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

CHAIN_LOCK = 0x6C61_6273  # one writer at a time gives the sequence without gaps


class SiteVerb(StrEnum):
    """Every verb of the installation's record."""

    INSTALLATION_STARTED = "installation.started"
    INSTALLATION_RESTORED = "installation.restored"
    SECRETS_KEY_RENEWED = "secrets_key.renewed"  # a verb
    SECRETS_KEY_DESTROYED = "secrets_key.destroyed"  # a verb
    ENGINE_ADDED = "engine.added"
    ENGINE_CHANGED = "engine.changed"
    ENGINE_WEIGHT_SET = "engine.weight_set"
    SITE_POLICY_SET = "site_policy.set"
    SITE_RULES_PROPOSED = "site_rules.proposed"
    SITE_RULES_DECIDED = "site_rules.decided"
    SITE_RULES_STOPPED = "site_rules.stopped"
    USER_CREATED = "user.created"
    USER_INVITED_IN = "user.invited_in"
    USER_DEACTIVATED = "user.deactivated"
    USER_ACTIVATED = "user.activated"
    USER_SITE_ROLES_SET = "user.site_roles_set"
    USER_PASSWORD_SET = "user.password_set"  # noqa: S105  # a verb
    GROUP_CREATED = "group.created"
    GROUP_MEMBER_ADDED = "group.member_added"
    GROUP_MEMBER_REMOVED = "group.member_removed"
    PREFERENCES_SET = "preferences.set"
    SIGNED_IN = "sign_in.done"
    SIGNED_OUT = "sign_in.ended"
    SIGN_IN_FAILED = "sign_in.failed"
    ACCESS_DENIED = "access.denied"


class SiteDenied(Denied):
    """The actor lacks a role of the installation."""

    def __init__(self, role: str) -> None:
        super().__init__(role)
        self.args = (f"This needs the site role “{role.replace('_', ' ')}”.",)


@dataclass(slots=True)
class SiteDraft:
    """The event that a site command is about to write; the body says what it is about and what changed."""

    verb: SiteVerb
    subject: models.Model | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def about(self, row: models.Model) -> None:
        self.subject = row

    def change(self, row: models.Model, **values: Any) -> None:
        """Set and save fields of one row, with before and after in the details."""
        self.about(row)
        before = {name: getattr(row, name) for name in values}
        for name, value in values.items():
            setattr(row, name, value)
        row.save(update_fields=list(values))
        self.details["changed"] = {name: [plain(before[name]), plain(value)] for name, value in values.items() if before[name] != value}


def site_command(
    verb: SiteVerb, *, needs: SiteRole | None, by_system: bool = False, public_reason: str = ""
) -> Callable[[Callable[Concatenate[SiteDraft, Parameters], Result]], Callable[Parameters, Result]]:
    """Make a function the one way to a write outside workspaces; `command` in workspaces/audit.py is its counterpart inside one.

    `needs=None` is for labsite's own jobs (`by_system`) and for the few whose right lies elsewhere (`public_reason` says where).
    """
    if needs is None and not by_system and not public_reason:
        raise TypeError("A site command without a site role must say why.")

    def decorate(body: Callable[Concatenate[SiteDraft, Parameters], Result]) -> Callable[Parameters, Result]:
        @functools.wraps(body)
        def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            actor = kwargs["actor"]
            if not isinstance(actor, Actor):
                raise TypeError("A site command wants an Actor.")
            with transaction.atomic(durable=True):
                _check(actor, needs=needs, by_system=by_system, is_open=bool(public_reason))
                draft = SiteDraft(verb=verb)
                result = body(draft, *args, **kwargs)
                write_site_event(draft, actor=actor)
            return result

        setattr(run, "site_command", {"verb": verb, "needs": needs, "by_system": by_system, "public_reason": public_reason})
        return run

    return decorate


def write_site_event(draft: SiteDraft, *, actor: Actor) -> SiteEvent:
    """Append to the site's chain, inside the caller's transaction. Commands of a workspace that also touch people call it for that part."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CHAIN_LOCK])
        cursor.execute("SELECT transaction_timestamp()")
        (now,) = cursor.fetchone()
    last = SiteEvent.objects.order_by("-sequence").first()
    subject = draft.subject
    event = SiteEvent(
        sequence=last.sequence + 1 if last else 1,
        actor_kind=actor.kind,
        actor_id=actor.user.pk if actor.user else None,
        actor_label=actor.label[:200],
        verb=draft.verb,
        subject_type=type_name(subject) if subject else "",
        subject_id=str(plain(subject.pk)) if subject else "",
        subject_label=label_of(subject) if subject else "",
        details=plain(draft.details),
        command_id=ids.uuid7(),
        request_id=actor.request_id[:64],
        previous_hash=last.hash if last else NOTHING_YET,
    )
    event.recorded_at = now
    event.hash = site_event_hash(event)
    event.save(force_insert=True)
    return event


HASHED = ("id", "sequence", "recorded_at", "actor_kind", "actor_id", "actor_label", "verb", "subject_type", "subject_id", "subject_label",
          "details", "command_id", "request_id", "previous_hash")  # fmt: skip


def site_event_hash(event: SiteEvent) -> str:
    """SHA-256 over every stored column but the hash itself, in the canonical JSON of workspaces/audit.py."""
    return digest({name: plain(getattr(event, name)) for name in HASHED})


@site_command(SiteVerb.ACCESS_DENIED, needs=None, public_reason="whoever was denied leaves this trace")
def _deny(event: SiteDraft, *, actor: Actor, role: str, where: str) -> None:
    event.subject = actor.user
    event.details.update(role=role, where=where[:300])


def record_site_denial(*, actor: Actor, role: str, where: str) -> None:
    """Write `access.denied` into the installation's record; at most ten a minute and actor, as in a workspace."""
    since = timezone.now() - timedelta(minutes=1)
    seen = SiteEvent.objects.filter(verb=SiteVerb.ACCESS_DENIED, actor_id=actor.user.pk if actor.user else None, recorded_at__gte=since)
    if seen.count() < DENIALS_A_MINUTE:
        _deny(actor=actor, role=role, where=where)


def _check(actor: Actor, *, needs: SiteRole | None, by_system: bool, is_open: bool) -> None:
    if actor.kind == ActorKind.SYSTEM:
        if not by_system:
            raise SiteDenied("act as labsite itself")
        return
    if needs is None:
        if not is_open:
            raise SiteDenied("act as labsite itself")
        return
    if not actor.has_site_role(needs):
        raise SiteDenied(needs)
