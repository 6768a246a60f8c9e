"""Applying a declaration: the workspace and what it names, each by its own command, and nothing where the file says what is so already.

Not one transaction: every step is a command with its event, and a file that stops half-way is applied again from where it stopped.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Value
from django.db.models.functions import Replace

from workspaces import ids, scope
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.commands.agent import change_agent, create_agent
from workspaces.commands.benchmark import create_benchmark
from workspaces.commands.dataset import create_dataset
from workspaces.commands.limit_raise import change_limit
from workspaces.commands.objective import set_objective
from workspaces.commands.pool import bind_pool
from workspaces.commands.registry import insert
from workspaces.commands.workspace import configure_workspace, create_workspace
from workspaces.declaration import Declaration, DeclaredBinding, DeclaredBudget
from workspaces.models import Agent, Approval, Benchmark, Dataset, DeclaredName, Engine, Limit, Objective, Owned, Pool, User, Workspace
from workspaces.queries.workspace import find_workspace
from workspaces.standings import amount_words, name_of
from workspaces.verbs import Verb

WINDOWS = {"run": Limit.Window.RUN, "week": Limit.Window.WEEK, "concurrent": Limit.Window.NOW, "standing": Limit.Window.NOW}
MODES = {"hard_stop": Limit.Mode.STOP, "needs_approval": Limit.Mode.APPROVAL, "warn": Limit.Mode.WARN}
VISIBILITIES = {"private": Workspace.Visibility.PRIVATE, "public": Workspace.Visibility.PUBLIC_BENCHMARKS}
NO_ENGINE, NOT_DEFINED = "no engine is bound under this name yet", "declared, not yet defined"
REASON = "said so in the declaration"
Note = Callable[[str, str], None]  # what was done, and the words for it


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done, or found to be so already. `did` is created, changed, kept (as a name), unchanged or ignored."""

    did: str
    words: str


@dataclass(frozen=True, slots=True)
class Application:
    workspace: Workspace
    is_new: bool
    steps: list[Step]

    @property
    def changed(self) -> list[Step]:
        return [step for step in self.steps if step.did in ("created", "changed", "kept")]


def apply_declaration(*, actor: Actor, declaration: Declaration, say: Callable[[Step], None] | None = None) -> Application:
    """Make or update the workspace that a file declares; `say` hears each step as it is done.

    What the file does not name stays as it is; nothing is removed. Raises Refusal and Denied like the commands that it calls; the steps said
    until then are done.
    """
    steps: list[Step] = []

    def note(did: str, words: str) -> None:
        steps.append(Step(did, words))
        if say is not None:
            say(steps[-1])

    for key in declaration.unknown_keys:
        note("ignored", f"{key}: not known, left out")
    owners = _owners(actor, declaration.owners)
    workspace = find_workspace(declaration.slug)
    is_new = workspace is None
    settled = _settled(declaration)
    if workspace is None:
        name = settled.pop("name", declaration.slug)
        workspace = create_workspace(actor=actor, slug=declaration.slug, name=name, owners=owners, **settled)
        note("created", f"workspace {workspace.slug}, owned by {', '.join(owner.label for owner in owners)}")
    with scope.open_workspace(workspace.pk):
        if not is_new:
            _refuse_strangers(actor, workspace)
            workspace = _configured(actor, workspace, settled, note)
        _register(actor, declaration, note)
        for budget in declaration.budgets:
            _limit(actor, budget, note)
        _objective(actor, declaration, note)
        _keep_names(actor, declaration, note)
    return Application(workspace, is_new, steps)


def _owners(actor: Actor, usernames: Iterable[str]) -> list[User]:
    """The actor, who must be able to go on, and whom the file names."""
    if actor.user is None:
        raise Refusal("A declaration is applied by a person.")
    owners = {actor.user.pk: actor.user}
    for username in usernames:
        user = User.objects.filter(username=username, is_active=True).first()
        if user is None:
            raise Refusal(f"There is nobody here named {username[:80]}; invite them first, or take them out of owners.", field="owners")
        owners.setdefault(user.pk, user)
    return list(owners.values())


def _refuse_strangers(actor: Actor, workspace: Workspace) -> None:
    rights = rights_of(actor, workspace.pk)
    if not rights.may_enter:
        raise Refusal(f"There is a workspace named {workspace.slug} already; choose another name.", field="slug")
    if not rights.allows(Permission.MANAGE_WORKSPACE, Kind.WORKSPACE):
        raise Denied(Permission.MANAGE_WORKSPACE, Kind.WORKSPACE)


def _settled(declaration: Declaration) -> dict[str, Any]:
    """What the file settles of the workspace itself, in the columns' own terms."""
    names = ("name", "boundary_kind", "boundary_reason", "billing_account", "cost_centre", "zone", "region")
    settled: dict[str, Any] = {name: getattr(declaration, name) for name in names}
    settled["visibility"] = VISIBILITIES[declaration.visibility] if declaration.visibility else None
    settled["week_start"] = declaration.week_start - 1 if declaration.week_start is not None else None
    return {name: value for name, value in settled.items() if value is not None}


def _configured(actor: Actor, workspace: Workspace, settled: dict[str, Any], note: Note) -> Workspace:
    changed = {name: value for name, value in settled.items() if getattr(workspace, name) != value}
    if changed:
        workspace = configure_workspace(actor=actor, reason=REASON, **changed)
        note("changed", f"workspace {workspace.slug}: {', '.join(name.replace('_', ' ') for name in changed)}")
    else:
        note("unchanged", f"workspace {workspace.slug}")
    return workspace


def _register(actor: Actor, declaration: Declaration, note: Note) -> None:
    for slug in declaration.benchmarks:
        if _find(Benchmark, slug) is not None:
            note("unchanged", f"benchmark {slug}")
        else:
            create_benchmark(actor=actor, slug=slug)
            note("created", f"benchmark {slug}, without a contract yet")
    for slug in declaration.datasets:
        if _find(Dataset, slug) is not None:
            note("unchanged", f"dataset {slug}")
        else:
            create_dataset(actor=actor, slug=slug)
            note("created", f"dataset {slug}, without a version yet")
    for declared in declaration.agents:
        agent = _find(Agent, declared.name)
        if agent is None:
            create_agent(actor=actor, slug=declared.name, part=declared.role)
            note("created", f"agent {declared.name}{f', {declared.role}' if declared.role else ''}, without a version yet")
        elif declared.role and agent.part != declared.role:
            change_agent(actor=actor, agent=agent, part=declared.role, reason=REASON)
            note("changed", f"agent {declared.name}: part {declared.role}")
        else:
            note("unchanged", f"agent {declared.name}")


def _find(model: type[Owned], slug: str) -> Any:
    """The row of this slug, `-` and `_` taken as one; no other spelling counts, for a declared name is a name."""
    return model.objects.annotate(_name=Replace("slug", Value("_"), Value("-"))).filter(_name=ids.same_name(slug)).first()


def _limit(actor: Actor, budget: DeclaredBudget, note: Note) -> None:
    window, mode = WINDOWS[budget.window], MODES[budget.mode]
    words = f"limit on {name_of(budget.unit, window)}: {amount_words(budget.amount, budget.unit)}"
    before = Limit.objects.filter(unit=budget.unit, window=window, mode=mode).first()
    if before is not None and before.amount == budget.amount:
        note("unchanged", words)
        return
    made = change_limit(actor=actor, unit=budget.unit, window=window, amount=budget.amount, mode=mode, reason=REASON)
    if isinstance(made, Approval):
        note("unchanged", f"{words} is asked for, since another person decides on a larger one")
        return
    note("changed" if before else "created", words)


def _objective(actor: Actor, declaration: Declaration, note: Note) -> None:
    declared = declaration.objective
    if declared is None:
        return
    target = float(declared.target) if declared.target is not None else None
    benchmark = _find(Benchmark, declared.benchmark) if declared.benchmark else None
    if declared.benchmark and benchmark is None:
        raise Refusal(f"The objective names the benchmark {declared.benchmark}, which is neither here nor in the file.", field="objective")
    key = benchmark.pk if benchmark else None
    current = Objective.objects.filter(is_current=True).first()
    if current and (current.statement, current.benchmark_id, current.target, current.due_on) == (
        declared.statement,
        key,
        target,
        declared.due,
    ):
        note("unchanged", f"objective: {declared.statement}")
        return
    slug = benchmark.slug if benchmark else None
    set_objective(actor=actor, statement=declared.statement, benchmark=slug, target=target, due_on=declared.due, reason=REASON)
    note("changed" if current else "created", f"objective: {declared.statement}")


def _keep_names(actor: Actor, declaration: Declaration, note: Note) -> None:
    """Names of things that are not there yet, kept so that the file has not said them in vain."""
    missing = [("pool", slug, words) for slug, words in _pools(actor, declaration, note)]
    for kind, slugs in (("memory", declaration.memory), ("policy", declaration.policies), ("gate", declaration.gates)):
        missing += [(kind, slug, NOT_DEFINED) for slug in slugs]
    known = {(row.kind, ids.same_name(row.slug)) for row in DeclaredName.objects.all()}
    fresh = [entry for entry in missing if (entry[0], ids.same_name(entry[1])) not in known]
    for kind, slug, words in missing:
        if (kind, ids.same_name(slug)) in known:
            note("unchanged", f"{kind} {slug}, declared" + ("" if words in (NO_ENGINE, NOT_DEFINED) else f": {words}"))
    if fresh:
        keep_declared_names(actor=actor, names=fresh)
        for kind, slug, words in fresh:
            note("kept", f"{kind} {slug}: {words}")


def _pools(actor: Actor, declaration: Declaration, note: Note) -> list[tuple[str, str]]:
    """Bind each pool to the engine of its name, or to the one that the file says; the names of those that cannot be bound yet, and why."""
    bindings = {binding.name: binding for binding in declaration.bindings}
    missing: list[tuple[str, str]] = []
    for slug in declaration.pools:
        if _find(Pool, slug) is not None:
            note("unchanged", f"pool {slug}")
            continue
        binding = bindings.get(slug) or DeclaredBinding(slug, slug)
        engine = Engine.objects.filter(slug=binding.engine).first()
        if engine is None:
            missing.append((slug, NO_ENGINE))
            continue
        isolation = binding.isolation or next(iter(engine.isolations), Pool.Isolation.NONE)  # the strongest that it was found to offer
        slots = engine.slots if binding.slots is None else binding.slots
        try:
            bind_pool(
                actor=actor, engine=engine.slug, slug=slug, slots=slots, isolation=isolation, reason=REASON, **dict[str, Any](binding.far)
            )
        except Refusal as refused:  # such as a key that is not a secret here yet: the file is applied again then
            missing.append((slug, str(refused)[:300]))
        else:
            note("created", f"pool {slug} on the engine {engine.slug}, {slots} slots, isolation {isolation}")
    return missing


@command(Verb.DECLARATION_APPLIED, needs=Permission.MANAGE_WORKSPACE, kind=Kind.WORKSPACE)
def keep_declared_names(event: Draft, *, actor: Actor, names: list[tuple[str, str, str]]) -> list[DeclaredName]:
    """Keep names, each as (kind, slug, note), whose kind or engine is not there yet."""
    event.details["names"] = [f"{kind} {slug}" for kind, slug, _ in names]
    return [insert(event, DeclaredName(kind=kind, slug=slug, note=words)) for kind, slug, words in names]
