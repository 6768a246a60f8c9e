"""API of the ground floor, one file a noun; ROUTES is what the root mounts."""

from workspaces.api import agent, benchmark, dataset, event, invitation, member, site, token
from workspaces.api.door import Routes

ROUTES: dict[str, Routes] = {
    "agents": agent.routes,
    "benchmarks": benchmark.routes,
    "datasets": dataset.routes,
    "events": event.routes,
    "invitations": invitation.routes,
    "members": member.routes,
    "site": site.routes,
    "tokens": token.routes,
}
