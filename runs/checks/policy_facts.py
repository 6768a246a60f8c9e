"""Everything that a policy decides upon, read once and kept: pure rules do the rest (`runs.policy.decide`). It writes nothing."""

import math
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum

from runs.checks.candidate import candidate_of
from runs.checks.gate_chain import chain_for, checks_of, reviews_for, starts_of
from runs.checks.gate_samples import samples_for
from runs.checks.policy_memory import memory_for
from runs.launch import LaunchRequest
from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Artifact, Decision, Evaluation, PolicyVersion, Promotion, QueueItem, Run, Sweep
from runs.policy.decide import Outcome
from runs.policy.document import Policy
from runs.policy.facts import Cause, Facts, Measured, Result
from runs.policy.results import about_results, asks_for_results
from runs.policy.site import under
from runs.queries.home_seeds import seed_lead
from runs.queries.launch_request import prepare
from runs.queries.lineage import Node
from runs.queries.lineage_edges import NodeKind
from runs.queries.policy import USED_GPU_MS
from runs.queries.policy_names import name_faults
from runs.queries.policy_use import acted
from runs.queries.ranking import FINITE, best_first
from runs.queries.scoreboard import scores_under
from runs.queries.site_rules import site_facts
from runs.queries.suspension import suspended
from workspaces import ids, scope
from workspaces.accounts import window_at
from workspaces.audit import Refusal
from workspaces.models import Agent, ApprovalVote, Benchmark, Contract, Dataset, DatasetVersion, Limit, NotFound, Objective, Unit, Workspace
from workspaces.queries.registry import current_contract
from workspaces.queries.withdrawal import withdrawn
from workspaces.standings import standings
from workspaces.units import MS_PER_HOUR

MOST_RESULTS = 1_000  # the newest: each decision keeps all that it weighed, some 300 bytes a result
MOST_IN_A_ROW = 50  # decisions that are looked back on for failures
MOST_ARTIFACTS, MOST_WINDOWS = 100, 200


def facts_for(version: PolicyVersion, policy: Policy, cause: Cause, now: datetime) -> Facts:
    """The facts of this instant. What cannot be found out stays None, what the document names and is not here becomes a problem."""
    site = site_facts(version.policy_id, now)
    policy = under(policy, site)
    problems = name_faults(policy)
    known: dict[str, Any] = {}
    if policy.does.startswith("launch") and not problems:
        datasets, artifacts, missing = _inputs(policy, cause)
        known = {"datasets": tuple(datasets), "artifacts": tuple(artifacts), "missing": tuple(missing)}
        known |= _results(policy) | {"memory": memory_for(policy, now)}
        try:
            known["gpu_ms_each"] = prepare(request_of(policy, datasets, artifacts), is_draft=True).gpu_ms
        except (Refusal, NotFound) as fault:
            problems.append(str(fault))
        known["gates"] = chain_for(checks_of(policy), starts_of(known["datasets"], known["artifacts"]))
    if policy.does == "promote" and cause.type == "evaluation" and not problems:
        known = _promotable(version, policy, cause)
    if not policy.does.startswith("launch") and asks_for_results(policy) and not problems:
        known = _results(policy) | known
    week = [row for row in standings(now=now, units={Unit.GPU_MS}) if row.window == Limit.Window.WEEK and row.mode == Limit.Mode.STOP]
    return Facts(
        at=now.isoformat(),
        cause={"on": policy.on, "type": cause.type, "id": cause.id.hex, "label": cause.label, **_how_it_ended(cause)},
        left_gpu_ms=min((row.free for row in week), default=None),
        week_gpu_ms=min((row.amount for row in week), default=None),
        waiting_runs=QueueItem.objects.count(),
        problems=tuple(problems),
        site=site,
        **_history(version, window_at(Workspace.objects.get(pk=scope.current_id()), Limit.Window.WEEK, now).starts_at),
        **known,
    )


def _how_it_ended(cause: Cause) -> dict[str, str]:
    if cause.type == "question":
        return {"answer": ApprovalVote.objects.values_list("answer", flat=True).get(approval=cause.id, approves=True)}
    if cause.type == "promotion":  # one that another has superseded since was promoted all the same
        status = Promotion.objects.values_list("status", flat=True).get(pk=cause.id)
        return {"status": "promoted" if status == Promotion.Status.SUPERSEDED else status}
    if cause.type != "run":
        return {}
    return {"status": Run.objects.values_list("status", flat=True).get(pk=cause.id)}


def request_of(policy: Policy, datasets: list[dict[str, str]], artifacts: list[dict[str, str]]) -> LaunchRequest:
    """What every launch of the policy shares."""
    action = policy.action
    hours = action.get("gpu_hours_each")
    return LaunchRequest(
        benchmark=action["benchmark"],
        agent=action["agent"],
        pool=action.get("pool", ""),
        datasets=tuple(entry["id"] for entry in datasets),
        artifacts=tuple(entry["id"] for entry in artifacts),
        parameters=dict(action.get("parameters", {})),
        gpu_ms=round(hours * MS_PER_HOUR) if hours is not None else None,
    )


# --- What the policy has done -------------------------------------------------------------------------------------------------------------


def _history(version: PolicyVersion, week_starts: datetime) -> dict[str, Any]:
    own = acted(version)
    last = own.order_by("-number").first()
    runs = Run.objects.filter(sweep__decision__policy=version.policy_id)
    is_open = ~Q(status__in=sorted(TERMINAL))
    sums = runs.aggregate(all=Sum(USED_GPU_MS), week=Sum(USED_GPU_MS, filter=Q(created_at__gte=week_starts)))
    sweeps = Sweep.objects.filter(decision__policy=version.policy_id)
    running = list(sweeps.filter(status=Sweep.Status.RUNNING).annotate(launched=Count("runs")))
    # What a sweep has still to launch is as good as spent: it goes on by itself.
    ahead = sum((row.members - row.launched) * row.gpu_ms_each for row in running)
    open_sweeps = {row.pk for row in running}
    open_sweeps |= set(runs.filter(is_open).values_list("sweep", flat=True))
    # So is what was decided and the job has not come to yet: else two decisions of one moment would each take what is left.
    acting = Decision.objects.filter(policy=version.policy_id, status=Decision.Status.ACTING, sweeps=None).aggregate(
        count=Count("pk"), gpu_ms=Sum("gpu_ms")
    )
    ahead += int(acting["gpu_ms"] or 0)
    return {
        "acted": own.count(),
        "failures": _failures(version),
        "last_acted_at": last.created_at.isoformat() if last else None,
        "under_way": len(open_sweeps) + acting["count"],
        "spent_gpu_ms": int(sums["all"] or 0) + ahead,
        "spent_week_gpu_ms": int(sums["week"] or 0) + ahead,
    }


def _failures(version: PolicyVersion) -> int:
    """How many of its newest launches in a row came to nothing: could not be launched, or no run of it succeeded. One under way breaks no row."""
    resumed = version.policy.status_at
    rows = Decision.objects.filter(version=version, outcome=Outcome.ACTS)
    rows = rows.filter(created_at__gt=resumed) if resumed is not None else rows
    good = Count("sweeps__runs", filter=Q(sweeps__runs__status=RunStatus.SUCCEEDED))
    open_runs = Count("sweeps__runs", filter=~Q(sweeps__runs__status__in=sorted(TERMINAL)))
    found = 0
    for row in rows.annotate(good=good, open_runs=open_runs, sweep_status=F("sweeps__status")).order_by("-number")[:MOST_IN_A_ROW]:
        if row.status == Decision.Status.ACTING or row.open_runs or row.sweep_status == Sweep.Status.RUNNING:
            continue
        if row.status != Decision.Status.FAILED and (row.good or row.sweep_status is None):
            break
        found += 1
    return found


# --- What it chooses from -----------------------------------------------------------------------------------------------------------------


def _results(policy: Policy) -> dict[str, Any]:
    about = about_results(policy)
    benchmark = Benchmark.objects.find(about["benchmark"])
    contract = current_contract(benchmark.pk)
    known: dict[str, Any] = {"of": about} if policy.does.startswith("launch") else {}
    if contract is None:
        return known
    of = {"agent": Agent.objects.find(about["agent"])} if "agent" in about else {}
    runs = list(Run.objects.filter(benchmark=benchmark, **of).order_by("-created_at", "-pk")[: MOST_RESULTS + 1])[::-1]
    has_older = len(runs) > MOST_RESULTS
    runs = runs[-MOST_RESULTS:]
    scores = {
        row.run_id: row.value for row in scores_under(contract).filter(FINITE, run__in=[run.pk for run in runs]).order_by("created_at")
    }
    gone = withdrawn(NodeKind.RUN, [run.pk for run in runs])
    lead = seed_lead(contract) if contract.over_seeds else None
    best = lead if contract.over_seeds else scores_under(contract).filter(FINITE).order_by(*best_first(contract.direction)).first()
    objective = Objective.objects.filter(is_current=True, benchmark=benchmark).first()
    return known | {
        "direction": "maximize" if contract.direction == Contract.Direction.MAXIMIZE else "minimize",
        "target": objective.target if objective else None,
        "best": best.value if best else None,
        "has_older": has_older,
        "results": tuple(
            Result(run.public_id, run.name, run.parameters, scores.get(run.pk), run.is_terminal) for run in runs if run.pk not in gone
        ),
    }


def _promotable(version: PolicyVersion, policy: Policy, cause: Cause) -> dict[str, Any]:
    """What the evaluation of the cause has measured, and what stands under the name, each with its newest score under the contract that holds."""
    row = Evaluation.objects.filter(pk=cause.id).select_related("subject_artifact__blob", "subject_artifact__run__contract").first()
    artifact = row.subject_artifact if row is not None else None
    if artifact is None or artifact.deleted_at is not None:
        return {}
    name = ids.same_name(policy.action["name"])
    candidate = candidate_of(artifact, name)
    contract, standing, checks = candidate.contract, candidate.standing, checks_of(policy)
    asked = Promotion.objects.filter(name=name, artifact=artifact, status=Promotion.Status.PROPOSED).first()
    return {
        "missing": (f"A person still has to decide on it: {asked.label}.",) if asked is not None else (),
        "direction": "minimize" if contract is not None and contract.direction == Contract.Direction.MINIMIZE else "maximize",
        "candidate": _measured(artifact, candidate.score),
        "standing": _measured(standing.artifact, candidate.standing_score) if standing is not None else None,
        "gates": chain_for(checks, [Node(NodeKind.ARTIFACT, artifact.pk)])
        | samples_for(checks, candidate)
        | reviews_for(checks, candidate, name, version.proposed_by),
    }


def _measured(artifact: Artifact, score: Evaluation | None) -> Measured:
    value = score.value if score is not None and math.isfinite(score.value) else None
    return Measured(
        artifact.pk.hex, f"{artifact.name or artifact.path} of {artifact.run.name}", value, score.standard_error if score else None
    )


# --- What its launches read ---------------------------------------------------------------------------------------------------------------


def _inputs(policy: Policy, cause: Cause) -> tuple[list[dict[str, str]], list[dict[str, str]], list[str]]:
    """Datasets, artifacts, and a sentence for each input that is not there yet."""
    datasets: list[DatasetVersion] = []
    artifacts: list[Artifact] = []
    missing: list[str] = []
    for entry in policy.action.get("inputs", ()):
        if "dataset" in entry:
            found = _newest(Dataset.objects.find(entry["dataset"]))
            datasets += found
            missing += [] if found else [f"{entry['dataset']} has no version yet."]
        elif "windows_of" in entry:
            windows = _windows(Dataset.objects.find(entry["windows_of"]), int(entry.get("newest", 1)))
            datasets += windows
            missing += [] if windows else [f"{entry['windows_of']} has no window yet."]
        elif "promoted" in entry:
            standing, lacking = _promoted(entry["promoted"])
            artifacts += standing
            missing += [lacking] if entry.get("required", False) and lacking else []
        else:
            made = _made_by(cause, entry["made_by_cause"])[: entry.get("best", MOST_ARTIFACTS)]
            artifacts += made
            missing += [] if made else [f"{cause.label} has made no {entry['made_by_cause']}."]
    unique = list({artifact.pk: artifact for artifact in artifacts}.values())
    return (
        [{"id": version.pk.hex, "label": f"{version.dataset.slug}@{version.number}"} for version in datasets],
        [{"id": artifact.pk.hex, "label": artifact.name or artifact.path} for artifact in unique],
        missing,
    )


def _newest(dataset: Dataset) -> list[DatasetVersion]:
    """Its newest version that stands."""
    return _standing(DatasetVersion.objects.filter(dataset=dataset).order_by("-number"))[:1]


def _windows(dataset: Dataset, newest: int) -> list[DatasetVersion]:
    """The newest windows that stand."""
    return _standing(DatasetVersion.objects.filter(dataset__window_of=dataset).order_by("-dataset__window_number"))[:newest]


def _standing(rows: "QuerySet[DatasetVersion]") -> list[DatasetVersion]:
    """Of the first so many those that nobody has withdrawn: policies stop reading what was."""
    found = list(rows.select_related("dataset")[:MOST_WINDOWS])
    gone = withdrawn(NodeKind.DATASET_VERSION, [row.pk for row in found])
    return [row for row in found if row.pk not in gone]


def _promoted(name: str) -> tuple[list[Artifact], str]:
    """What stands under a name, or why a policy cannot read it, in a sentence: nobody rests on what is suspended, and a policy asks nobody."""
    rows = Artifact.objects.filter(promotions__name=ids.same_name(name), promotions__status="promoted", deleted_at=None)
    standing = list(rows[:1])
    why = suspended([row.pk for row in standing])
    if not standing:
        return [], f"Nothing is promoted as {name} yet."
    return ([], f"{name} is suspended: {why[standing[0].pk]}") if why else (standing, "")


def _made_by(cause: Cause, kind: str) -> list[Artifact]:
    """Artifacts of a kind that the run, or every run of the sweep, of the cause has made: of each run the newest, the best by the run's own score
    first, since an evaluation is about the first."""
    runs = {
        "run": Q(run=cause.id),
        "sweep": Q(run__sweep=cause.id),
        "evaluation": Q(run__in=Evaluation.objects.filter(pk=cause.id).values("run")),
    }
    if cause.type not in runs:
        return []
    rows = Artifact.objects.filter(runs[cause.type], kind=kind, deleted_at=None).select_related("run__contract")
    newest = list(rows.order_by("run", "-created_at", "-pk").distinct("run")[:MOST_ARTIFACTS])
    gone = withdrawn(NodeKind.ARTIFACT, [row.pk for row in newest])
    found = [row for row in newest if row.pk not in gone]
    scores = Evaluation.objects.filter(
        FINITE, run__in=[row.run_id for row in found], metric=F("contract__metric"), contract=F("run__contract")
    )
    values = {score.run_id: score.value for score in scores.order_by("created_at")}

    def place(row: Artifact) -> tuple[bool, float, int]:
        sign = -1 if row.run.contract.direction == Contract.Direction.MAXIMIZE else 1
        return row.run_id not in values, sign * values.get(row.run_id, 0.0), row.run.number

    return sorted(found, key=place)
