"""Setting what the installation demands of every run."""

from workspaces.access import Actor, SiteRole
from workspaces.audit import Refusal
from workspaces.models import SitePolicy
from workspaces.site_audit import SiteDraft, SiteVerb, site_command

LONGEST_SECONDS = 30 * 86_400


@site_command(SiteVerb.SITE_POLICY_SET, needs=SiteRole.SITE_OPERATOR)
def set_site_policy(event: SiteDraft, *, actor: Actor, max_wall_seconds: int | None, forbids_no_isolation: bool) -> SitePolicy:
    """Set both demands; None for no longest wall limit. It holds for launches from now on, and for approvals of those that wait for one."""
    if max_wall_seconds is not None and not 1 <= max_wall_seconds <= LONGEST_SECONDS:
        raise Refusal(f"A wall limit lies between 1 and {LONGEST_SECONDS:,} seconds.", field="max_wall_seconds")
    policy, _ = SitePolicy.objects.select_for_update(no_key=True).get_or_create(is_current=True)
    event.change(policy, max_wall_seconds=max_wall_seconds, forbids_no_isolation=forbids_no_isolation)
    return policy
