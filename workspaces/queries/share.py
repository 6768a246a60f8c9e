"""What a share grant opens: the only callers of `scope.open_shared`. Each opening is handed to `record` first, on both sides."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db.models import Q, QuerySet
from django.utils import timezone

from workspaces import scope
from workspaces.models import Benchmark, NotFound, ShareGrant, Workspace

Record = Callable[[ShareGrant], None]


def grants_given() -> "QuerySet[ShareGrant]":
    """What the open workspace has opened to others, closed ones too."""
    return ShareGrant.objects.select_related("to_workspace", "granted_by")


def grants_received() -> "QuerySet[ShareGrant]":
    """What others have opened to the workspace that is open and holds now. Row security lets a receiver see its grants; the manager of the
    model knows only those it gave."""
    rows = ShareGrant._base_manager.filter(to_workspace_id=scope.current_id())
    return _holding(rows).select_related("workspace", "granted_by")


@contextmanager
def open_grant(grant_id: uuid.UUID, *, record: Record) -> Iterator[ShareGrant]:
    """Open what a grant to the open workspace opens, read-only, for the time of the block. NotFound where the grant is unknown, another's,
    expired or revoked. `record` is called with the receiver's scope open, then with the giver's."""
    grant = grants_received().filter(pk=grant_id).first()
    if grant is None:
        raise NotFound("share")
    record(grant)
    with scope.open_workspace(grant.workspace.pk):
        if not _holding(ShareGrant.objects.filter(pk=grant.pk)).exists():  # the giver's side has the last word
            raise NotFound("share")
        record(grant)
    with scope.open_shared(workspace_id=grant.workspace.pk, shared=_shared(grant)):
        yield grant


@contextmanager
def open_public(giver: Workspace, benchmark_id: uuid.UUID, *, record: Record) -> Iterator[ShareGrant]:
    """Open the definition of a public benchmark to anyone: its standing grant holds, the benchmark is public, the workspace allows it."""
    if giver.visibility != Workspace.Visibility.PUBLIC_BENCHMARKS:
        raise NotFound("benchmark")
    with scope.open_workspace(giver.pk):
        rows = ShareGrant.objects.filter(is_public=True, object_type="benchmark", object_id=benchmark_id)
        grant = _holding(rows).order_by("pk").first()
        if grant is None or not Benchmark.objects.filter(pk=benchmark_id, is_public=True).exists():
            raise NotFound("benchmark")
        record(grant)
    with scope.open_shared(workspace_id=giver.pk, shared=_shared(grant)):
        yield grant


def _holding(rows: "QuerySet[ShareGrant]") -> "QuerySet[ShareGrant]":
    return rows.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()), revoked_at=None)


def _shared(grant: ShareGrant) -> scope.SharedObject:
    return scope.SharedObject(grant_id=grant.pk, object_type=grant.object_type, object_id=grant.object_id)
