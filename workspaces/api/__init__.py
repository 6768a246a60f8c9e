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
    notification,
    objective,
    pool,
    secret,
    share,
    site,
    token,
    upload,
    workspace,
)
from workspaces.api.door import Routes

ROUTES: dict[str, Routes] = {
    "approvals": approval.routes,
    "budgets": budget.routes,
    "objectives": objective.routes,
    "pools": pool.routes,
    "secrets": secret.routes,
    "shares": share.routes,
    "agents": agent.routes,
    "benchmarks": benchmark.routes,
    "datasets": dataset.routes,
    "live datasets": live_dataset.routes,
    "events": event.routes,
    "invitations": invitation.routes,
    "members": member.routes,
    "notifications": notification.routes,
    "site": site.routes,
    "tokens": token.routes,
    "uploads": upload.routes,
    "workspace": workspace.routes,
}
