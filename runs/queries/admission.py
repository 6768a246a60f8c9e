"""The facts that an admission is decided upon, as they stand now. It only reads; a command has locked the ledger before, so that they hold
until it commits."""

import uuid
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from runs.admission_facts import AgentFacts, Facts, HoldoutFacts, LimitFacts, PoolFacts, PriorityFacts, SiteFacts, WorkspaceFacts
from runs.admission_inputs import InputFacts
from runs.models import Run
from runs.queries.at_once import at_work, count_at_work
from runs.queries.contract_facts import contract_facts
from runs.queries.frozen import Prepared, ResolvedInput
from runs.queries.held_out import held_out_among, where_in
from runs.queries.held_out import questions as held_out_questions
from runs.queries.lineage_edges import NodeKind
from runs.queries.quota import newer_than, quota_of
from runs.queries.secret import secret_facts
from workspaces import kept_query, scope
from workspaces.agent_inputs import Given, needs_from
from workspaces.models import AgentPool, SitePolicy, Unit, User, Workspace
from workspaces.queries.withdrawal import marks_on, standing_among
from workspaces.queries.workspace import creation_steps, steps_question
from workspaces.standings import questions as standing_questions
from workspaces.standings import standings


def admission_facts(
    prepared: Prepared,
    *,
    now: datetime,
    person: User | None,
    held: Run | None = None,
    priority: int = 0,
    is_approved: bool = False,
    workspace: Workspace | None = None,
) -> Facts:
    """`person` is whom the run counts for. `held` is a run that was asked for before: it counts in the period of then. `workspace` is the open
    one, where it is at hand."""
    workspace = workspace or Workspace.objects.get(pk=scope.current_id())
    version, pool, contract = prepared.version, prepared.pool, prepared.contract
    asked = {
        Unit.GPU_MS: prepared.gpu_ms,
        Unit.API_MICROS: prepared.api_micros,
        Unit.STORAGE_BYTES: 0,
        Unit.RUNS: 1,
        Unit.WALL_SECONDS: prepared.wall_seconds,
        Unit.SLOTS: version.slots,
    }
    asked_at = held.created_at if held is not None else now
    rests_on = _rests_on(prepared)
    newer, steps, pools, going, limits, accounts, policies, marks, *held_out = kept_query.ask_together(
        [
            newer_than(contract),
            steps_question(workspace),
            kept_query.Question(_allowed_pools, (), {"version": version.pk}),
            at_work(),
            *standing_questions(now=now),
            kept_query.question(SitePolicy, is_current=True, limit=1),
            marks_on(rests_on),
            *held_out_questions(blobs=_blobs(prepared), versions=_versions(prepared)),
        ]
    )
    quota = quota_of(contract, person, now=asked_at, workspace=workspace, but=held.pk if held is not None else None, newer=newer)
    withdrawn = standing_among(rests_on, marks)
    return Facts(
        workspace=WorkspaceFacts(
            name=workspace.name,
            status=workspace.status,
            missing=tuple(step.missing for step in creation_steps(workspace, steps) if not step.is_done),
        ),
        agent=AgentFacts(
            name=prepared.agent.name,
            version=version.number,
            kind=version.kind,
            slots=version.slots,
            pools=tuple(slug for (slug,) in pools),
        ),
        pool=PoolFacts(
            slug=pool.slug,
            slots=pool.slots,
            isolation=pool.isolation,
            isolation_words=pool.get_isolation_display(),
            is_accepting=pool.is_accepting and pool.engine.is_accepting,
        ),
        holdout=HoldoutFacts(
            in_contract=contract.holdout_id is not None,  # of one that is elsewhere nothing lies here to be kept apart
            inputs=_held_out(prepared, held_out),
            accepted=contract.accepts_no_isolation_reason,
            for_evaluators=True,
        ),
        limits=tuple(
            LimitFacts(
                name=standing.name,
                unit=standing.unit,
                window=standing.window,
                amount=standing.amount,
                mode=standing.mode,
                used=standing.used,
                reserved=standing.reserved,
                asked=asked[Unit(standing.unit)],
                until=standing.until,
            )
            for standing in standings(now=now, runs_at_once=count_at_work(going), workspace=workspace, found=(limits, accounts))
        ),
        quota=quota.as_facts() if quota is not None else None,
        secrets=secret_facts(version, pool=pool, benchmark=prepared.benchmark, agent=prepared.agent),
        priority=PriorityFacts(priority, workspace.priority_limit) if priority > workspace.priority_limit else None,
        site=_site(prepared, policies),
        contract=contract_facts(prepared, asked_at=asked_at, workspace=workspace),
        withdrawn=tuple(dict.fromkeys(label for thing, label in rests_on.items() if thing in withdrawn)),
        inputs=_inputs(prepared),
        is_approved=is_approved,
    )


def _rests_on(prepared: Prepared) -> dict[tuple[str, uuid.UUID], str]:
    """What it would rest on and a withdrawal may have marked, with labels: inputs, and the contract with its holdout; that of a copy may have
    been withdrawn here before the contract came."""
    measured = f"the contract of {prepared.benchmark.slug}"
    rests_on = {(NodeKind.CONTRACT.value, prepared.contract.pk): measured}
    if prepared.contract.holdout_id is not None:
        rests_on[NodeKind.DATASET_VERSION.value, prepared.contract.holdout_id] = measured
    for entry in prepared.inputs:
        if entry.dataset_version is not None:
            rests_on[NodeKind.DATASET_VERSION.value, entry.dataset_version.pk] = entry.label
        elif entry.artifact is not None:
            rests_on[NodeKind.ARTIFACT.value, entry.artifact.pk] = entry.label
    return rests_on


def _allowed_pools(version: Any) -> "QuerySet[Any, Any]":
    return AgentPool.objects.filter(version=version).order_by("pool__slug").values_list("pool__slug")


def _blobs(prepared: Prepared) -> set[uuid.UUID]:
    return {entry.artifact.blob_id for entry in prepared.inputs if entry.artifact is not None}


def _versions(prepared: Prepared) -> set[uuid.UUID]:
    """Those whose role does not say what they are."""
    versions = [entry.dataset_version for entry in prepared.inputs if entry.dataset_version is not None]
    return {version.pk for version in versions if not version.is_holdout}


def _held_out(prepared: Prepared, answers: list[Any]) -> tuple[str, ...]:
    """Inputs that are a holdout by their role, or hold a file of one under another name; or that tell its truth, as per-sample results do."""
    content = held_out_among(answers)
    places = where_in(_versions(prepared), content) if content else {}
    found = []
    for entry in prepared.inputs:
        version, artifact = entry.dataset_version, entry.artifact
        if version is not None and version.is_holdout:
            found.append(entry.label)
        elif version is not None and version.pk in places:
            path, blob = places[version.pk]
            found.append(f"{entry.label}, whose {path} {content[blob].words}")
        elif artifact is not None and artifact.blob_id in content:
            found.append(f"{entry.label}, which {content[artifact.blob_id].words}")
    return tuple(found)


def _site(prepared: Prepared, policies: list[SitePolicy]) -> SiteFacts | None:
    policy = next(iter(policies), None)
    if policy is None or (policy.max_wall_seconds is None and not policy.forbids_no_isolation):
        return None
    return SiteFacts(policy.max_wall_seconds, policy.forbids_no_isolation, prepared.wall_seconds)


def _inputs(prepared: Prepared) -> InputFacts | None:
    needs = tuple(need for need in needs_from(prepared.version.inputs) if need.required)
    if not needs:
        return None
    by_name = any(need.name for need in needs)
    return InputFacts(needs, tuple(_given(entry, by_name=by_name) for entry in prepared.inputs))


def _given(entry: ResolvedInput, *, by_name: bool) -> Given:
    version, artifact = entry.dataset_version, entry.artifact
    if version is None:
        return Given(entry.label, entry.kind, artifact.kind if artifact is not None else "")
    live = version.dataset.window_of if by_name else None
    return Given(entry.label, entry.kind, version.role, (entry.slug, *([live.slug] if live is not None else [])))
