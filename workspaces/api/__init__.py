"""API of the ground floor, one file a noun; ROUTES is what the root mounts."""

from workspaces.api import (
    agent,
    approval,
    benchmark,
    budget,
    dataset,
    event,
    invitation,
    live_dataset,
    member,
    objective,
    pool,
    share,
    site,
    token,
    workspace,
)
from workspaces.api.door import Routes

ROUTES: dict[str, Routes] = {
    "approvals": approval.routes,
    "budgets": budget.routes,
    "objectives": objective.routes,
    "pools": pool.routes,
    "shares": share.routes,
    "agents": agent.routes,
    "benchmarks": benchmark.routes,
    "datasets": dataset.routes,
    "live datasets": live_dataset.routes,
    "events": event.routes,
    "invitations": invitation.routes,
    "members": member.routes,
    "site": site.routes,
    "tokens": token.routes,
    "workspace": workspace.routes,
}
