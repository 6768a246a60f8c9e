"""The life of an artifact: kept until some day, deleted (hidden and restorable), removed for good. Never while something rests on it.

Removing gives the bytes back at once: the row of the file is counted no more in the transaction that says so, and the file leaves the store right
after it. No limit is asked on the way, so a full store can always be emptied.
"""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.utils import timezone

from runs.models import Artifact, KeptFile
from runs.models.artifact import GRACE
from runs.queries.rests import what_rests_on, words_of
from workspaces import scope
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.blob import drop_file, lock_blob, release_blob
from workspaces.models import Blob, Workspace
from workspaces.units import plural
from workspaces.verbs import Verb

RESTORED = timedelta(days=30)
MOST_DAYS = 36_500
MOST_KINDS = 50
AT_ONCE = 200  # artifacts of one command of the job


@command(Verb.ARTIFACT_KEPT_UNTIL, needs=Permission.EDIT_REGISTRY, kind=Kind.ARTIFACT)
def set_keep_until(event: Draft, *, actor: Actor, artifact: Artifact, until: datetime | None, reason: str = "") -> Artifact:
    """When it is deleted by itself; None: as its kind says. What still rests on it then keeps it longer."""
    artifact = _locked(artifact)
    if artifact.going:
        raise Refusal(f"It {artifact.going}.")
    if until is not None and until <= timezone.now():
        raise Refusal("Choose an instant that is still to come; to delete it now, delete it.", field="until")
    if until == artifact.keep_until:
        raise Refusal("That is set already.", field="until")
    event.reason = reason.strip()[:1000]
    event.change(artifact, keep_until=until)
    return artifact


@command(Verb.ARTIFACT_DELETED, needs=Permission.EDIT_REGISTRY, kind=Kind.ARTIFACT)
def delete_artifact(event: Draft, *, actor: Actor, artifact: Artifact, reason: str) -> Artifact:
    """Hide it; its file is removed once GRACE is over, and it can be restored until then. Refuses with the list of what rests on it."""
    lock_ledger()
    artifact = _locked(artifact)
    if artifact.deleted_at is not None:
        raise Refusal("It is removed already." if artifact.removed_at else "It is to be removed already.")
    event.reason = reason.strip()[:1000]
    if not event.reason:
        raise Refusal("Say why; whoever looks for it will read it.", field="reason")
    _refuse_rested_on(artifact)
    event.change(artifact, deleted_at=timezone.now(), deleted_reason=event.reason)
    return artifact


@command(Verb.ARTIFACT_DELETED, needs=None, by_system=True)
def delete_expired(event: Draft, *, actor: Actor, artifacts: Sequence[Artifact]) -> list[Artifact]:
    """Hide those whose time is over and on which nothing rests; returns them. Refuses where there is none."""
    lock_ledger()
    keys = [artifact.pk for artifact in artifacts]
    rows = list(Artifact.objects.select_for_update(no_key=True).filter(pk__in=keys, deleted_at=None).order_by("pk"))
    held = {one.artifact_id for one in what_rests_on(rows)}
    due = [row for row in rows if row.pk not in held]
    if not due:
        raise Refusal("Something rests on each of them.")
    event.reason = "Its time was over."
    event.changing(*due)
    for row in due:
        row.deleted_at, row.deleted_reason = timezone.now(), event.reason
    Artifact.objects.bulk_update(due, ["deleted_at", "deleted_reason"])
    event.details["artifacts"] = len(due)
    return due


@command(Verb.ARTIFACT_RESTORED, needs=Permission.EDIT_REGISTRY, kind=Kind.ARTIFACT)
def restore_artifact(event: Draft, *, actor: Actor, artifact: Artifact) -> Artifact:
    """Bring it back, until its file is removed. One whose time was over is kept for RESTORED from now."""
    artifact = _locked(artifact)
    if artifact.removed_at is not None:
        raise Refusal("Its file was removed for good; only a run that makes it again brings it back.")
    if artifact.deleted_at is None:
        raise Refusal("It is kept; there is nothing to restore.")
    event.change(artifact, deleted_at=None, deleted_reason="")
    if artifact.keep_until is not None or artifact.kind in Workspace.objects.get(pk=scope.current_id()).artifact_days:
        event.change(artifact, keep_until=max(artifact.keep_until or timezone.now(), timezone.now() + RESTORED))
    return artifact


@command(Verb.ARTIFACT_RESTORED, needs=None, by_system=True)
def keep_rested_on(event: Draft, *, actor: Actor, artifact: Artifact) -> Artifact:
    """Bring back one that was deleted and on which something has come to rest since. Refuses where nothing does."""
    artifact = _locked(artifact)
    resting = what_rests_on([artifact])
    if not resting or artifact.deleted_at is None or artifact.removed_at is not None:
        raise Refusal("Nothing rests on it, or it is not to be removed.")
    event.reason = words_of(resting)[0][:1000]
    event.change(artifact, deleted_at=None, deleted_reason="")
    return artifact


def remove_artifact(*, actor: Actor, artifact: Artifact) -> Artifact:
    """Remove the file of a deleted artifact now, without waiting for the grace to end. What it took is free when this returns, unless
    something else has the same content."""
    began = time.time()
    artifact, released = _remove(actor=actor, artifact=artifact)
    if released is not None:
        drop_file(released, released_after=began)
    return artifact


def remove_deleted(*, actor: Actor, artifact: Artifact) -> Artifact:
    """The same by a job, once the grace is over."""
    began = time.time()
    artifact, released = _remove_by_system(actor=actor, artifact=artifact)
    if released is not None:
        drop_file(released, released_after=began)
    return artifact


@command(Verb.ARTIFACT_REMOVED, needs=Permission.EDIT_REGISTRY, kind=Kind.ARTIFACT)
def _remove(event: Draft, *, actor: Actor, artifact: Artifact) -> tuple[Artifact, Blob | None]:
    return _let_go(event, artifact)


@command(Verb.ARTIFACT_REMOVED, needs=None, by_system=True)
def _remove_by_system(event: Draft, *, actor: Actor, artifact: Artifact) -> tuple[Artifact, Blob | None]:
    event.reason = f"It was deleted more than {GRACE.days} days ago."
    return _let_go(event, artifact)


@command(Verb.WORKSPACE_ARTIFACT_DAYS_SET, needs=Permission.MANAGE_WORKSPACE, kind=Kind.WORKSPACE)
def set_artifact_days(event: Draft, *, actor: Actor, days: Mapping[str, int], reason: str) -> Workspace:
    """For how many days artifacts of a kind are kept; a kind that is not named stays. An artifact's own day goes before."""
    workspace = lock_ledger()
    event.reason = reason.strip()[:1000]
    if not event.reason:
        raise Refusal("Say why; it stands in the record.", field="reason")
    if len(days) > MOST_KINDS:
        raise Refusal(f"At most {MOST_KINDS} kinds are named.", field="days")
    for kind, count in days.items():
        if not 0 < len(kind) <= 40 or not 1 <= count <= MOST_DAYS:
            raise Refusal(f"{kind[:40]}: a kind has at most 40 characters, and is kept for 1 to {MOST_DAYS:,} days.", field="days")
    event.change(workspace, artifact_days=dict(sorted(days.items())))
    return workspace


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def _let_go(event: Draft, artifact: Artifact) -> tuple[Artifact, Blob | None]:
    """The artifact and, where nothing else names its file, the released row of it."""
    lock_ledger()
    artifact = _locked(artifact)
    if artifact.removed_at is not None:
        raise Refusal("It is removed already.")
    if artifact.deleted_at is None:
        raise Refusal("It is kept; delete it first.")
    _refuse_rested_on(artifact)
    event.change(artifact, removed_at=timezone.now())
    blob = lock_blob(artifact.blob_id)
    is_released = not KeptFile.objects.filter(sha256=blob.sha256).exists() and release_blob(event, blob)
    event.details |= {"path": artifact.path, "sha256": blob.sha256, "freed_bytes": blob.bytes if is_released else 0}
    return artifact, blob if is_released else None


def _refuse_rested_on(artifact: Artifact) -> None:
    resting = what_rests_on([artifact])
    if resting:
        things = plural(len(resting), "thing rests", "things rest")
        raise Refusal(f"{things} on {artifact.name or artifact.path}, so it stays.", *words_of(resting))


def _locked(artifact: Artifact) -> Artifact:
    return Artifact.objects.select_for_update(no_key=True).get(pk=artifact.pk)
