"""What a restored copy of the database is: a site operator's decision. Whichever it is, no queue goes on before somebody has looked."""

from runs.models import QueueHold
from workspaces import scope
from workspaces.access import Actor, SiteRole
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.installation import SETTLED, settle_copy
from workspaces.models import Workspace
from workspaces.queries.installation import is_copy
from workspaces.reasons import because
from workspaces.site_audit import SiteDenied
from workspaces.verbs import Verb


def decide_restored(*, actor: Actor, is_apart: bool, reason: str) -> int:
    """Hold the queue of every workspace, then settle what this database is; returns how many queues are held by it. Cut off and called again, it
    goes on where it was. Raises Refusal where nothing is to be decided."""
    reason = because(reason, "Say why; whoever waits will read it.")
    if not is_copy():
        raise Refusal(SETTLED)
    held = 0
    for workspace in Workspace.objects.order_by("slug"):
        with scope.open_workspace(workspace.pk):
            if not QueueHold.objects.exists():
                hold_restored(actor=actor, reason=f"The database was restored; see what has run meanwhile before you release it. {reason}")
                held += 1
    settle_copy(actor=actor, is_apart=is_apart, reason=reason)
    return held


@command(
    Verb.QUEUE_HELD,
    needs=None,
    public_reason="the site role site_operator, checked first thing: nothing of a restored copy starts by itself",
    in_archive="nothing of a restored copy starts by itself",
)
def hold_restored(event: Draft, *, actor: Actor, reason: str) -> QueueHold:
    """Hold a workspace's queue as a site operator, who need not be a member. Only while the database is a copy that nobody has decided on."""
    if actor.user is None or not actor.has_site_role(SiteRole.SITE_OPERATOR):
        raise SiteDenied(SiteRole.SITE_OPERATOR)
    if not is_copy():
        raise Refusal(SETTLED)
    lock_ledger()
    event.reason = because(reason, "Say why; whoever waits will read it.")
    held = QueueHold.objects.create(held_by=actor.user, reason=event.reason)
    event.created(held)
    return held
