"""The definition of a public benchmark, read through its standing public grant: by anyone as a page, by another workspace as a frozen copy."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workspaces import scope
from workspaces.contract_metrics import Metric
from workspaces.models import Benchmark, Contract, NotFound, ShareGrant, Workspace
from workspaces.queries.share import open_public


@dataclass(frozen=True, slots=True)
class PublicDefinition:
    """What a public benchmark says of itself: no score, no run, no data. `content` is what `content_hash` is the hash of; it names the holdout, like
    every other row, by its hash alone. Empty where the contract was published before contracts kept it."""

    workspace_id: uuid.UUID
    workspace: str
    workspace_slug: str
    benchmark_id: uuid.UUID
    benchmark: str
    benchmark_slug: str
    description: str
    version: int
    metrics: tuple[Metric, ...]
    over_seeds: str
    tie_words: str
    opens_at: datetime | None
    closes_at: datetime | None
    terms: str
    content: dict[str, Any]
    content_hash: str
    published_at: datetime

    @property
    def source(self) -> dict[str, str]:
        """As a frozen copy keeps it: names as they are now, and keys."""
        return {
            "workspace": self.workspace, "workspace_slug": self.workspace_slug, "workspace_id": self.workspace_id.hex,
            "benchmark": self.benchmark, "benchmark_slug": self.benchmark_slug, "benchmark_id": self.benchmark_id.hex,
        }  # fmt: skip


def find_public(giver: Workspace, text: str) -> uuid.UUID:
    """Key of the benchmark of `giver` that `text` names, whether or not it is public. Raises NotFound. No scope may matter to the caller."""
    with scope.open_workspace(giver.pk):
        return Benchmark.objects.find(text).pk


def public_definition(giver: Workspace, benchmark_id: uuid.UUID) -> PublicDefinition:
    """Raises NotFound where the benchmark is not public, not granted to everyone, or has no contract.

    A reading is on nobody's record: what is public has no reader to name, and looking at a page writes nothing. Importing is on record on both sides.
    """
    with open_public(giver, benchmark_id, record=_unrecorded):
        return read_definition(giver)


def _unrecorded(grant: ShareGrant) -> None:
    """See `public_definition`."""


def read_definition(giver: Workspace) -> PublicDefinition:
    """The definition of the one benchmark that a share grant has opened. Rows that the contract names stay closed: nothing of them is read."""
    benchmark = Benchmark.objects.get()
    contract = Contract.objects.order_by("-version").first()
    if contract is None:
        raise NotFound("contract")
    return PublicDefinition(
        workspace_id=giver.pk, workspace=giver.name, workspace_slug=giver.slug, benchmark_id=benchmark.pk, benchmark=benchmark.name,
        benchmark_slug=benchmark.slug, description=benchmark.description, version=contract.version, metrics=contract.all_metrics,
        over_seeds=contract.over_seeds, tie_words=contract.tie_words, opens_at=contract.opens_at, closes_at=contract.closes_at, terms=contract.terms,
        content=contract.content, content_hash=contract.content_hash, published_at=contract.created_at,
    )  # fmt: skip


def standing_grant(benchmark: Benchmark) -> ShareGrant | None:
    """The grant that opens the definition to everyone; None where there is none that holds."""
    rows = ShareGrant.objects.filter(is_public=True, object_type="benchmark", object_id=benchmark.pk, revoked_at=None)
    return next((grant for grant in rows.order_by("pk") if grant.status == "active"), None)


def is_open_to_all(workspace: Workspace, benchmark: Benchmark) -> bool:
    """May anyone read its definition now? The workspace allows it, the benchmark is public, and a grant stands."""
    allowed = workspace.visibility == Workspace.Visibility.PUBLIC_BENCHMARKS
    return allowed and benchmark.is_public and standing_grant(benchmark) is not None
