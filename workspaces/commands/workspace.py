"""Creating a workspace, settling what it is, and opening it for launches (feature 109)."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.utils import timezone

from workspaces import ids, scope
from workspaces.access import Actor, Kind, Permission, Role, SiteRole, give_role, make_role_groups
from workspaces.audit import Draft, Refusal, command
from workspaces.models import Membership, User, Workspace
from workspaces.queries.workspace import creation_steps
from workspaces.site_audit import SiteDenied
from workspaces.text import unreadable
from workspaces.verbs import Verb
from workspaces.windows import zone_names

SETTLED_FIELDS = frozenset(
    {"name", "boundary_kind", "boundary_reason", "billing_account", "cost_centre", "zone", "week_start", "visibility", "region"}
)


def create_workspace(*, actor: Actor, slug: str, name: str, owners: list[User], **settled: Any) -> Workspace:
    """Create a workspace with its first owners; what else is known of it may come along (SETTLED_FIELDS). It launches nothing yet."""
    workspace_id = ids.uuid7()
    with scope.open_workspace(workspace_id):
        try:
            return _create_workspace(actor=actor, workspace_id=workspace_id, slug=slug, name=name, owners=owners, settled=settled)
        except IntegrityError as error:
            if "workspace_slug_once" in str(error):
                raise Refusal(f"There is a workspace named {slug} already; choose another name.", field="slug") from error
            raise


@command(Verb.WORKSPACE_CREATED, needs=None, public_reason="the site role create_workspace, checked first thing")
def _create_workspace(
    event: Draft, *, actor: Actor, workspace_id: Any, slug: str, name: str, owners: list[User], settled: dict[str, Any]
) -> Workspace:
    if not actor.has_site_role(SiteRole.CREATE_WORKSPACE):
        raise SiteDenied(SiteRole.CREATE_WORKSPACE)
    if not owners:
        raise Refusal("A workspace wants at least one owner.", field="owners")
    if fault := unreadable(name):
        raise Refusal(fault, field="name")
    workspace = Workspace(id=workspace_id, slug=slug, name=name or slug)
    _settle(workspace, settled)
    workspace.save(force_insert=True)
    make_role_groups(workspace)
    event.created(workspace)
    for owner in owners:
        member = Membership.objects.create(user=owner, role=Role.OWNER)
        give_role(member)
        event.created(member)
    event.details["owners"] = [owner.label for owner in owners]
    return workspace


@command(Verb.WORKSPACE_CONFIGURED, needs=Permission.MANAGE_WORKSPACE, kind=Kind.WORKSPACE)
def configure_workspace(event: Draft, /, *, actor: Actor, reason: str = "", **settled: Any) -> Workspace:
    """Settle or change what the workspace is. The region is chosen once and stays: files lie in it from then on, and none is moved."""
    workspace = Workspace.objects.select_for_update(no_key=True).get(pk=scope.current_id())
    event.reason = reason
    event.changing(workspace)
    before = {name: getattr(workspace, name) for name in settled}
    if workspace.region and settled.get("region", workspace.region) != workspace.region:
        raise Refusal(f"The region was chosen as {workspace.region} when the workspace was created, and stays.")
    _settle(workspace, settled)
    workspace.save(update_fields=list(settled) or None)
    event.note(workspace, {name: (before[name], getattr(workspace, name)) for name in settled})
    return workspace


@command(Verb.WORKSPACE_ACTIVATED, needs=Permission.MANAGE_WORKSPACE, kind=Kind.WORKSPACE)
def activate_workspace(event: Draft, *, actor: Actor) -> Workspace:
    """Open the workspace for launches once every step of its creation is done."""
    workspace = Workspace.objects.select_for_update(no_key=True).get(pk=scope.current_id())
    if workspace.status != Workspace.Status.CONFIGURING:
        raise Refusal(f"{workspace.name} is {workspace.get_status_display()} already.")
    missing = [step.missing for step in creation_steps(workspace) if not step.is_done]
    if missing:
        raise Refusal(*missing)
    event.change(workspace, status=Workspace.Status.ACTIVE, activated_at=timezone.now())
    return workspace


def _settle(workspace: Workspace, settled: dict[str, Any]) -> None:
    unknown = set(settled) - SETTLED_FIELDS
    if unknown:
        raise Refusal(f"A workspace has no {', '.join(sorted(unknown))}.")
    for name, value in settled.items():
        setattr(workspace, name, value)
    if workspace.zone and workspace.zone not in zone_names():
        raise Refusal(f"{workspace.zone[:80]} is no IANA time zone; write one such as Europe/Berlin.", field="zone")
    if workspace.region and workspace.region not in settings.LABSITE_REGIONS:
        raise Refusal(
            f"There is no region {workspace.region[:80]}; there are {', '.join(sorted(settings.LABSITE_REGIONS))}.", field="region"
        )
    try:
        workspace.clean_fields()
    except ValidationError as error:
        name, messages = next(iter(error.message_dict.items()))
        raise Refusal(*messages, field=name) from error
