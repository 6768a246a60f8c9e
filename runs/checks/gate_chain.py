"""What gates look at of everything that a candidate was made of, and of who has approved it. Found by one walk up the lineage."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.db.models import Min

from runs.checks.candidate import Candidate, made_of
from runs.checks.held_out import doubts_of
from runs.eligibility import NAMED
from runs.models import Promotion, Run, UndeclaredInput
from runs.policy.document import Policy
from runs.policy.gates import REVIEW
from runs.queries.egress import strictest_of
from runs.queries.lineage import Lineage, Node
from runs.queries.lineage_edges import NodeKind
from runs.queries.undeclared import THING
from runs.queries.verdict import verdicts_of
from workspaces import scope
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.models import Approval, ApprovalVote, DatasetVersion, Pool, User
from workspaces.queries.requester import makers_behind

OF_CHAIN = frozenset({"contamination", "cost_ceiling", "licence", "undeclared_input", "egress"})
MOST_DATASETS, MOST_RUNS = 100, 1_000


def chain_for(checks: Iterable[Mapping[str, Any]], starts: Sequence[Node]) -> dict[str, Any]:
    """By one key for all of these checks; empty where no check asks."""
    if not any(given["check"] in OF_CHAIN for given in checks):
        return {}
    reached = made_of(starts)
    rows, runs = versions_in(reached), runs_in(reached)
    return {
        "chain": {
            "is_whole": reached.is_whole and len(rows) <= MOST_DATASETS and len(runs) <= MOST_RUNS,
            "gpu_ms": sum(run.spent_gpu_ms for run in runs),
            "runs": len(runs),
            "open_runs": sum(not run.is_terminal for run in runs),
            "egress": strictest_of(reached.of(NodeKind.DATASET_VERSION)),
            "datasets": _datasets(rows[:MOST_DATASETS]),
            "artifacts": [asdict(doubt) for doubt in doubts_of(reached)[:MOST_DATASETS]],
            "undeclared": undeclared_by(runs),
        }
    }


def versions_in(reached: Lineage) -> list[DatasetVersion]:
    """Dataset versions of a chain, with their datasets; more than MOST_DATASETS say that it is not whole."""
    rows = DatasetVersion.objects.filter(pk__in=reached.of(NodeKind.DATASET_VERSION)).select_related("dataset")
    return list(rows.order_by("dataset__slug", "number")[: MOST_DATASETS + 1])


def runs_in(reached: Lineage) -> list[Run]:
    """Runs of a chain, with their contracts; more than MOST_RUNS say that it is not whole."""
    return list(Run.objects.filter(pk__in=reached.of(NodeKind.RUN)).select_related("contract").order_by("number")[: MOST_RUNS + 1])


def licence_of(version: DatasetVersion) -> str:
    """What the version itself says, else its dataset."""
    return version.licence or version.dataset.licence


def reviews_for(checks: Iterable[Mapping[str, Any]], candidate: Candidate, name: str, proposer: User) -> dict[str, Any]:
    """Who has decided on exactly this content under this name: people who may still decide, and are neither the author of the run that made it nor
    whoever proposed it, by themselves or by a policy."""
    if not any(given["check"] == REVIEW for given in checks):
        return {}
    sha256 = candidate.artifact.blob.sha256
    promotions = Promotion.objects.filter(name=name, artifact__blob__sha256=sha256)
    requests = Approval.objects.filter(subject_type="promotion", subject_id__in=promotions.values("pk"))
    decided = requests.filter(status__in=[Approval.Status.APPROVED, Approval.Status.REFUSED])
    votes = ApprovalVote.objects.filter(approval__in=decided).select_related("person", "approval").order_by("created_at", "pk")
    barred = {candidate.run.requested_by_id, proposer.pk, *makers_behind([candidate.run.pk])}
    said: dict[bool, dict[uuid.UUID, dict[str, str]]] = {True: {}, False: {}}
    for vote in votes:
        if not {vote.person_id, vote.behalf_id}.isdisjoint(barred | {vote.approval.requested_by_id}) or not may_review(vote.person):
            continue
        entry = {"person": vote.person.label, "at": vote.created_at.isoformat(), "approval": vote.approval.public_id}
        said[not vote.approves].pop(vote.person_id, None)  # the later word of a person counts
        said[vote.approves][vote.person_id] = entry
    return {REVIEW: {"sha256": sha256, "approved": list(said[True].values()), "refused": list(said[False].values())}}


def may_review(person: User) -> bool:
    """May this person's word count as a reviewer's now?"""
    return person.kind == User.Kind.PERSON and rights_of(Actor.of(person), scope.current_id()).allows(Permission.APPROVE, Kind.APPROVAL)


def starts_of(datasets: Sequence[Mapping[str, str]], artifacts: Sequence[Mapping[str, str]]) -> list[Node]:
    """Of a launch: what it would read."""
    found = [Node(NodeKind.DATASET_VERSION, uuid.UUID(entry["id"])) for entry in datasets]
    return found + [Node(NodeKind.ARTIFACT, uuid.UUID(entry["id"])) for entry in artifacts]


def checks_of(policy: Policy) -> list[dict[str, Any]]:
    return [*policy.conditions, *policy.gate]


def _datasets(rows: Sequence[DatasetVersion]) -> list[dict[str, str]]:
    """Of a holdout there is no verdict beside itself: what trains may not read one, and what evaluates may."""
    verdicts = verdicts_of([row for row in rows if not row.is_holdout])
    found = []
    for row in rows:
        verdict = verdicts.get(row.pk)
        state, reason = ("clean", "") if verdict is None or verdict.is_promotable else (verdict.state.value, verdict.reason[:300])
        found.append(
            {
                "slug": row.dataset.slug,
                "label": f"{row.dataset.slug}@{row.number}",
                "licence": licence_of(row),
                "state": state,
                "reason": reason,
            }
        )
    return found


def undeclared_by(runs: Sequence[Run]) -> dict[str, Any]:
    """What runs have read unsaid, and which could have: without isolation, and with no owner who answers for that."""
    rows = UndeclaredInput.objects.filter(run__in=[run.pk for run in runs]).values("run_id", *THING)
    things = rows.annotate(noted=Min("created_at")).order_by("noted", "run_id", *THING)  # what many versions hold is one thing
    is_open = [run for run in runs if run.isolation == Pool.Isolation.NONE and not run.contract.accepts_no_isolation_reason]
    return {
        "count": things.count(),
        "named": [UndeclaredInput(**{name: row[name] for name in THING}).name for row in things[:NAMED]],
        "open": len(is_open),
        "examples": [{"id": run.public_id, "label": run.name} for run in is_open[:NAMED]],
    }
