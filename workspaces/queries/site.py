"""What site operators may see of the whole installation: figures, names of accounts, ids of tokens; never a workspace's content."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q

from workspaces import scope
from workspaces.access import SiteRole
from workspaces.models import Engine, EngineWeight, NotFound, SiteEvent, User, Workspace
from workspaces.queries.owner import owners_by_workspace
from workspaces.queries.token_list import tokens
from workspaces.site_audit import site_event_hash

ROWS = 100
OPENED = 20  # workspaces whose scopes one page opens in turn, three queries each


@dataclass(frozen=True, slots=True)
class WorkspaceRow:
    workspace: Workspace
    owners: list[str]
    weight: int  # on engines that it shares


@dataclass(frozen=True, slots=True)
class LiveToken:
    """What stands outside the secret and what it is called: enough to end a token that has leaked."""

    id: str
    workspace: Workspace
    holder: str
    kind: str
    expires_at: datetime
    used_at: datetime | None


def find_people(text: str = "", after: str = "") -> tuple[list[User], str]:
    """Accounts by user name, a page at a time; the second part is where the next page begins."""
    rows = User.objects.filter(username__gt=after)
    if text:
        rows = rows.filter(Q(username__icontains=text) | Q(display_name__icontains=text) | Q(email__icontains=text))
    found = list(rows.order_by("username")[: ROWS + 1])
    return found[:ROWS], found[ROWS - 1].username if len(found) > ROWS else ""


def find_person(username: str) -> User:
    row = User.objects.filter(username=username).first()
    if row is None:
        raise NotFound("person")
    return row


def workspace_rows(after: str = "") -> tuple[list[WorkspaceRow], str]:
    """Workspaces by short name with who owns them."""
    found = list(Workspace.objects.filter(slug__gt=after).order_by("slug")[: ROWS + 1])
    owners = owners_by_workspace([row.pk for row in found[:ROWS]])
    weights = dict(EngineWeight.objects.filter(workspace__in=found[:ROWS]).values_list("workspace_id", "weight"))
    rows = [WorkspaceRow(row, [owner.label for owner in owners[row.pk]], weights.get(row.pk, 1)) for row in found[:ROWS]]
    return rows, found[ROWS - 1].slug if len(found) > ROWS else ""


def live_tokens(after: str = "") -> tuple[list[LiveToken], str]:
    """Tokens that work now, of a page of workspaces. Row security hides tokens outside their workspace, so each scope is opened in turn."""
    found = list(Workspace.objects.filter(slug__gt=after).order_by("slug")[: OPENED + 1])
    rows = []
    for workspace in found[:OPENED]:
        with scope.open_workspace(workspace.pk):
            rows += [
                LiveToken(
                    row.token.public_id, workspace, row.token.holder.label, row.token.get_kind_display(), row.token.expires_at, row.used_at
                )
                for row in tokens(live_only=True, limit=ROWS)
            ]
    return rows, found[OPENED - 1].slug if len(found) > OPENED else ""


def counts() -> dict[str, int]:
    people = User.objects.aggregate(
        people=Count("pk", filter=Q(kind=User.Kind.PERSON, is_active=True)),
        services=Count("pk", filter=Q(is_active=True) & ~Q(kind=User.Kind.PERSON)),
        operators=Count("pk", filter=Q(is_active=True, site_roles__contains=[SiteRole.SITE_OPERATOR])),
    )
    return {**people, "workspaces": Workspace.objects.count(), "engines": Engine.objects.count()}


def site_events(before: int | None = None) -> tuple[list[SiteEvent], str]:
    """The installation's record, newest first."""
    rows = SiteEvent.objects.filter(sequence__lt=before) if before is not None else SiteEvent.objects.all()
    found = list(rows.order_by("-sequence")[: ROWS + 1])
    return found[:ROWS], str(found[ROWS - 1].sequence) if len(found) > ROWS else ""


def first_broken(rows: list[SiteEvent]) -> int | None:
    """Among events that follow each other, newest first: the one whose hash, or link to the one before it, does not hold."""
    for position, event in enumerate(rows):
        before = rows[position + 1] if position + 1 < len(rows) else None
        if event.hash != site_event_hash(event) or (before and (event.previous_hash, event.sequence) != (before.hash, before.sequence + 1)):
            return event.sequence
    return None
