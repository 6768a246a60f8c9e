"""Opening one object to another workspace, closing it again, and writing down who read it."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.utils import timezone

from workspaces import scope
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.models import Benchmark, Dataset, NotFound, ShareGrant, Workspace
from workspaces.queries.share import open_grant, open_public
from workspaces.verbs import Verb

SHAREABLE: dict[str, type[Benchmark] | type[Dataset]] = {"benchmark": Benchmark, "dataset": Dataset}


@command(Verb.SHARE_GRANTED, needs=Permission.SHARE, kind=Kind.SHARE)
def grant_share(
    event: Draft,
    *,
    actor: Actor,
    object_type: str,
    object_id: str,
    to_workspace: Workspace | None,
    expires_at: datetime | None,
    reason: str,
) -> ShareGrant:
    """Let another workspace read one object until a moment. Without a receiver it is everyone's: only for the definition of a public benchmark."""
    if object_type not in SHAREABLE:
        raise Refusal(f"Shared are {', '.join(SHAREABLE)}; {object_type[:40]} is not.", field="object_type")
    if actor.user is None:
        raise Refusal("Only a person shares.")
    if not reason.strip():
        raise Refusal("Say why; both sides will read it.", field="reason")
    model = SHAREABLE[object_type]
    shared = model.objects.select_for_update(no_key=True).get(
        pk=model.objects.find(object_id).pk
    )  # its class holds until this share stands
    if isinstance(shared, Dataset) and shared.egress == Dataset.Egress.RESTRICTED:
        raise Refusal(f"{shared.name} is {shared.get_egress_display()}. Whoever manages the workspace can change that.", field="object_id")
    if to_workspace is None:
        if not (isinstance(shared, Benchmark) and shared.is_public):
            raise Refusal("Without a receiver only a public benchmark is shared; name the workspace that may read.", field="to_workspace")
    else:
        if to_workspace.pk == scope.current_id():
            raise Refusal("This workspace has it already; name another one.", field="to_workspace")
        if expires_at is None or expires_at <= timezone.now():
            raise Refusal("Say until when; the moment lies ahead.", field="expires_at")
    grant = ShareGrant.objects.create(
        to_workspace=to_workspace,
        is_public=to_workspace is None,
        object_type=object_type,
        object_id=shared.pk,
        object_label=shared.name[:300],
        reason=reason.strip()[:1000],
        granted_by=actor.user,
        expires_at=expires_at,
    )
    event.created(grant)
    event.reason = grant.reason
    event.details |= {"object": shared.public_id, "to": to_workspace.slug if to_workspace else "everyone", "until": expires_at}
    return grant


@command(Verb.SHARE_REVOKED, needs=Permission.SHARE, kind=Kind.SHARE, in_archive="taking a right away never waits")
def revoke_share(event: Draft, *, actor: Actor, grant: ShareGrant, reason: str = "") -> ShareGrant:
    """Close what was opened; the very next read is refused."""
    locked = ShareGrant.objects.select_for_update(no_key=True).filter(pk=grant.pk).first()
    if locked is None:
        raise NotFound("share grant")
    if locked.revoked_at is not None:
        raise Refusal(f"{locked.object_label} is shared no more already.")
    event.reason = reason.strip()[:1000]
    event.change(locked, revoked_at=timezone.now())
    return locked


@contextmanager
def read_shared(*, actor: Actor, grant_id: uuid.UUID) -> Iterator[ShareGrant]:
    """Open what a grant to the open workspace opens, read-only, for the time of the block; both workspaces have it on record.

    NotFound where the grant is unknown, another's, expired or revoked; Denied for who may not see what is shared here.
    """
    if not rights_of(actor, scope.current_id()).allows(Permission.VIEW, Kind.SHARE):
        raise Denied(Permission.VIEW, Kind.SHARE)
    reader = Workspace.objects.get(pk=scope.current_id())
    with open_grant(grant_id, record=lambda grant: _record_read(actor=actor, grant=grant, reader=reader.slug)) as opened:
        yield opened


@contextmanager
def read_public(*, actor: Actor, giver: Workspace, benchmark_id: uuid.UUID) -> Iterator[ShareGrant]:
    """Open the definition of a public benchmark for the time of the block; the giver has it on record. NotFound where it is not public."""
    with open_public(giver, benchmark_id, record=lambda grant: _record_read(actor=actor, grant=grant, reader="")) as opened:
        yield opened


@command(
    Verb.SHARE_READ,
    needs=None,
    by_system=True,
    public_reason="the grant is the right, and opening it has checked it",
    in_archive="what is shared stays readable, and who reads it is on record",
)
def _record_read(event: Draft, *, actor: Actor, grant: ShareGrant, reader: str) -> None:
    event.details = {
        "grant": grant.pk,
        "object_type": grant.object_type,
        "object": grant.object_id,
        "label": grant.object_label,
        "by": reader or "public",
    }
