"""Finding a workspace, and what its creation still lacks."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, QuerySet, Value
from django.db.models.functions import Replace

from workspaces import ids, kept_query, scope
from workspaces.access import Role
from workspaces.models import Limit, Membership, Objective, Pool, Unit, Workspace
from workspaces.windows import zone_names


def find_workspace(text: str) -> Workspace | None:
    """The workspace that `text` names, as canonical id (`ws_…`), bare slug or UUID."""
    pk, slugs = ids.spellings(Workspace.prefix, text)
    found: list[Workspace] = kept_query.ask(_of_key, pk=pk) if pk is not None else []
    for name in slugs:
        found = found or kept_query.ask(_of_name, name=name)
    return found[0] if found else None


def _of_key(pk: Any) -> "QuerySet[Workspace]":
    return Workspace.objects.filter(pk=pk)


def _of_name(name: Any) -> "QuerySet[Workspace]":
    return Workspace.objects.alias(_name=Replace("slug", Value("_"), Value("-"))).filter(_name=name)


def is_archived() -> bool:
    """Is the open workspace archived, as far as the database knows this moment?"""
    return Workspace.objects.filter(pk=scope.current_id(), status=Workspace.Status.ARCHIVED).exists()


@dataclass(frozen=True, slots=True)
class Step:
    """One step of creating a workspace: what it settles, whether it is done, what is missing."""

    name: str
    words: str
    is_done: bool
    missing: str = ""


def _is_there(pk: Any) -> "QuerySet[Any, Any]":
    """What a workspace has; by one statement, since every launch asks."""
    asked = (
        Membership.objects.filter(role=Role.OWNER),
        Pool.objects.all(),
        Limit.objects.filter(unit=Unit.GPU_MS, window=Limit.Window.WEEK),
        Limit.objects.filter(unit=Unit.RUNS),
        Objective.objects.filter(is_current=True),
    )
    return Workspace.objects.filter(pk=pk).values_list(*map(Exists, asked))


def steps_question(workspace: Workspace) -> kept_query.Question:
    """What `creation_steps` asks, for one who asks for more in the same round trip."""
    return kept_query.Question(_is_there, (), {"pk": workspace.pk})


def creation_steps(workspace: Workspace, found: list[Any] | None = None) -> list[Step]:
    """The steps of feature 109 in their order; a workspace launches nothing before all are done. Wants its scope open. `found` is what
    `steps_question` has found."""
    [(owners, pools, weekly, at_once, objective)] = found or kept_query.ask_together([steps_question(workspace)])[0]
    zone = workspace.zone in zone_names()
    return [
        Step("owners", "Owners", owners, "" if owners else "Name at least one owner."),
        Step(
            "billing",
            "Billing account and cost centre",
            bool(workspace.billing_account and workspace.cost_centre),
            "" if workspace.billing_account and workspace.cost_centre else "Say which account pays and under which cost centre.",
        ),
        Step(
            "boundary",
            "Boundary kind with its reason",
            bool(workspace.boundary_kind and workspace.boundary_reason),
            "" if workspace.boundary_kind and workspace.boundary_reason else "Say what this boundary stands for, and why it is one.",
        ),
        Step("zone", "Time zone and first day of the week", zone, "" if zone else "Choose the zone in which budget weeks are cut."),
        Step(
            "visibility", "Default visibility", bool(workspace.visibility), "" if workspace.visibility else "Choose who may see benchmarks."
        ),
        Step("region", "Storage region", bool(workspace.region), "" if workspace.region else "Choose the store in which every file lies."),
        Step("pools", "Compute pools", pools, "" if pools else "Bind at least one pool."),
        Step(
            "budgets",
            "Budgets",
            weekly and at_once,
            "" if weekly and at_once else "Set GPU-hours a week and how many runs may run at once.",
        ),
        Step("objective", "Objective", objective, "" if objective else "Say what the group tries to improve."),
    ]
