"""Asking for an export, its life, and who took it away. A job writes it (runs/jobs/export.py); nothing here touches a file."""

import uuid
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Max
from django.utils import timezone

from runs import queue
from runs.models import Export
from runs.queries.export_files import closed_since, free_bytes, needed_bytes
from workspaces import ids, scope
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.accounts import lock_ledger
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.models import Workspace
from workspaces.units import plural, size
from workspaces.verbs import Verb

MAX_TRIES = 3  # a worker that dies over it so often dies of it
TAKEN_ALONG = "an archive can be taken along"


@command(Verb.WORKSPACE_EXPORT_ASKED, needs=Permission.EXPORT, kind=Kind.WORKSPACE, in_archive=TAKEN_ALONG)
def request_export(
    event: Draft,
    *,
    actor: Actor,
    files: str = Export.Files.NONE,
    reason: str = "",
    is_kept: bool = True,
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Export:
    """Ask for an export. `files`: whose content travels besides the rows; for internal things it wants a reason. `is_kept=False`: the caller
    writes it to a folder of its own at once. Refuses one while another is being made, and one for which the disk has no room."""
    _demand_all(actor)
    if files not in Export.Files.values:
        raise Refusal(f"An export carries {', '.join(Export.Files.values)}; {files[:40]} is not among them.", field="files")
    if files == Export.Files.INTERNAL and not reason.strip():
        raise Refusal("Files of internal datasets and artifacts leave with a reason: say where they go, and why.", field="reason")
    if actor.user is None:
        raise Refusal("An export is asked for by somebody who answers for it.")
    workspace = lock_ledger()
    under_way = Export.objects.filter(status__in=Export.OPEN).first()
    if under_way is not None:
        raise Refusal(f"Export {under_way.number} is being made; ask again once it is there.")
    if is_kept:
        _refuse_full(files)
    number = (Export.objects.aggregate(last=Max("number"))["last"] or 0) + 1
    export = Export(
        id=id or ids.uuid7(), number=number, files=files, reason=reason.strip()[:1000], requested_by=actor.user, is_kept=is_kept
    )
    export.save(force_insert=True)
    event.created(export)
    _about(event, workspace, export)
    event.reason = export.reason
    if is_kept:
        queue.ring("make_export", subject=export.pk)
    return export


@command(Verb.WORKSPACE_EXPORT_BEGUN, needs=None, by_system=True, in_archive=TAKEN_ALONG)
def begin_export(event: Draft, *, actor: Actor, export: Export) -> Export:
    """A worker begins to write, perhaps anew after another one that died. After MAX_TRIES the export fails."""
    export = _locked(export)
    if export.status not in Export.OPEN:
        raise Refusal(f"Export {export.number} is {export.get_status_display().lower()} already.")
    _about(event, Workspace.objects.get(pk=scope.current_id()), export)
    if export.tries >= MAX_TRIES:
        _fail(event, export, f"Whoever wrote it was ended {plural(MAX_TRIES, 'time', 'times')} before it was there.")
    else:
        event.change(export, status=Export.Status.RUNNING, tries=export.tries + 1, began_at=timezone.now())
    return export


@command(Verb.WORKSPACE_EXPORTED, needs=None, by_system=True, in_archive=TAKEN_ALONG)
def finish_export(
    event: Draft, *, actor: Actor, export: Export, total_bytes: int, manifest_sha256: str, contents: dict[str, Any]
) -> Export:
    """It is written and on the disk; kept for LABSITE_EXPORT_DAYS."""
    export = _locked(export)
    if export.status != Export.Status.RUNNING:
        raise Refusal(f"Export {export.number} is {export.get_status_display().lower()}.")
    _about(event, Workspace.objects.get(pk=scope.current_id()), export)
    now = timezone.now()
    event.changing(export)
    export.status = Export.Status.READY if export.is_kept else Export.Status.TAKEN
    export.ended_at, export.bytes, export.manifest_sha256, export.contents = now, total_bytes, manifest_sha256, contents
    export.expires_at = now + timedelta(days=settings.EXPORT_DAYS) if export.is_kept else None
    export.save(update_fields=["status", "ended_at", "bytes", "manifest_sha256", "contents", "expires_at"])
    event.details |= {"bytes": total_bytes, "manifest": manifest_sha256, "left_out": contents.get("left_out", [])}
    return export


@command(Verb.WORKSPACE_EXPORT_FAILED, needs=None, by_system=True, in_archive=TAKEN_ALONG)
def fail_export(event: Draft, *, actor: Actor, export: Export, reason: str) -> Export:
    export = _locked(export)
    if export.status not in Export.OPEN:
        raise Refusal(f"Export {export.number} is {export.get_status_display().lower()} already.")
    _about(event, Workspace.objects.get(pk=scope.current_id()), export)
    _fail(event, export, reason)
    return export


@command(Verb.WORKSPACE_EXPORT_DOWNLOADED, needs=Permission.EXPORT, kind=Kind.WORKSPACE, in_archive=TAKEN_ALONG)
def record_download(event: Draft, *, actor: Actor, export: Export) -> Export:
    """Somebody takes it away. Refuses one that is gone, or holds what has been closed since."""
    _demand_all(actor)
    export = _locked(export)
    if export.status != Export.Status.READY:
        raise Refusal(f"Export {export.number} is {export.get_status_display().lower()}; there is nothing to download.")
    closed = closed_since(export)
    if closed:
        raise Refusal(f"{closed[0].name} is {closed[0].get_egress_display()} since this export was made. Ask for a new one.")
    event.changing(export)
    _about(event, Workspace.objects.get(pk=scope.current_id()), export)
    event.details["manifest"] = export.manifest_sha256
    return export


@command(Verb.WORKSPACE_EXPORT_REMOVED, needs=Permission.EXPORT, kind=Kind.WORKSPACE, in_archive=TAKEN_ALONG)
def remove_export(event: Draft, *, actor: Actor, export: Export) -> Export:
    """Give its room back; its folder goes with the next tidying up."""
    return _remove(event, export)


@command(Verb.WORKSPACE_EXPORT_REMOVED, needs=None, by_system=True, in_archive=TAKEN_ALONG)
def expire_export(event: Draft, *, actor: Actor, export: Export) -> Export:
    """Its days are over."""
    event.reason = f"It was kept for {plural(settings.EXPORT_DAYS, 'day', 'days')}."
    return _remove(event, export)


def _remove(event: Draft, export: Export) -> Export:
    export = _locked(export)
    if export.status != Export.Status.READY:
        raise Refusal(f"Export {export.number} is {export.get_status_display().lower()}; there is nothing to remove.")
    _about(event, Workspace.objects.get(pk=scope.current_id()), export)
    event.change(export, status=Export.Status.REMOVED)
    queue.ring("tidy_workspace", subject=scope.current_id())
    return export


def _demand_all(actor: Actor) -> None:
    """An export shows everything: whoever takes it, or the token that does, must be allowed to see every kind of thing."""
    rights = rights_of(actor, scope.current_id())
    for kind in Kind:
        if not rights.allows(Permission.VIEW, kind):
            raise Denied(Permission.VIEW, kind)
    if not rights.allows(Permission.VIEW_AUDIT, Kind.AUDIT):
        raise Denied(Permission.VIEW_AUDIT, Kind.AUDIT)


def _refuse_full(files: str) -> None:
    needed, free = needed_bytes(files), free_bytes()
    if needed > free:
        raise Refusal(
            f"The export needs about {size(needed)} and the disk has {size(free)} left. Remove an older export, take fewer files along, or write it "
            "elsewhere: manage.py export_workspace."
        )


def _about(event: Draft, workspace: Workspace, export: Export) -> None:
    event.about = workspace
    event.details |= {"export": export.number, "files": export.files}


def _fail(event: Draft, export: Export, reason: str) -> None:
    event.verb = Verb.WORKSPACE_EXPORT_FAILED
    event.reason = reason[:1000]
    event.change(export, status=Export.Status.FAILED, failure=reason[:1000], ended_at=timezone.now())


def _locked(export: Export) -> Export:
    return Export.objects.select_for_update(no_key=True).get(pk=export.pk)
