"""API of the upper floor, one file a noun; ROUTES is what the root mounts."""

from runs.api import (
    approval,
    archive,
    artifact,
    benchmark,
    burn,
    export,
    failure,
    ledger,
    lineage,
    promotion,
    queue,
    report,
    run,
    search,
    spend,
    sweep,
    withdrawal,
)
from workspaces.api.door import Routes

ROUTES: dict[str, Routes] = {
    "runs": run.routes,
    "metrics": report.routes,
    "certificates": run.certificates,
    "queue": queue.routes,
    "failures": failure.routes,
    "withdrawals": withdrawal.routes,
    "sweeps": sweep.routes,
    "artifacts": artifact.routes,
    "promotions": promotion.routes,
    "evaluations": artifact.evaluations,
    "archive": archive.routes,
    "approvals": approval.routes,
    "ledger": ledger.routes,
    "lineage": lineage.routes,
    "exports": export.routes,
    "burn": burn.routes,
    "spend": spend.routes,
    "search": search.routes,
    "benchmarks": benchmark.routes,
}
