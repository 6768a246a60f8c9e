"""The fields of a declared workspace: which keys there are, what each may hold, and the frozen result."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal, TypeVar

from workspaces import ids
from workspaces.declaration.json_source import JSONReader
from workspaces.declaration.source import DeclarationError, Fault, Node, decoded, shown, stop
from workspaces.declaration.values import Noted, Values
from workspaces.declaration.yaml_source import YAMLReader
from workspaces.units import MS_PER_HOUR

T = TypeVar("T")
Syntax = Literal["json", "yaml"]

BOUNDARY_KINDS = ("customer", "team", "project", "security_boundary", "billing_account")
VISIBILITIES = ("private", "public")
ISOLATIONS = ("user", "namespace", "none")
BINDING = ("name", "engine", "slots", "isolation", "login", "folder", "python", "secret", "partition", "account")
LIMIT_MODES = ("hard_stop", "needs_approval", "warn")
MAX_FAULTS = 100

# key: (unit, window, how many of the smallest part one unit as written has, the smallest part in words)
BUDGETS = {
    "gpu_hours_per_week": ("gpu_ms", "week", MS_PER_HOUR, "GPU milliseconds"),
    "gpu_hours_per_run": ("gpu_ms", "run", MS_PER_HOUR, "GPU milliseconds"),
    "max_concurrent_runs": ("runs", "concurrent", 1, "runs"),
    "api_spend_per_week": ("api_micros", "week", 1_000_000, "millionths of the currency"),
    "storage_bytes": ("storage_bytes", "standing", 1, "bytes"),
}
AGENT_ROLES = {"agents": "", "teacher_agents": "teacher", "student_agents": "student", "judge_agents": "judge"}
# Spellings of one key; the first is the one that messages use.
SPELLINGS = {
    "workspace": ("workspace", "workspace_id", "slug"),
    "compute_pools": ("compute_pools", "pools"),
    "shared_memory": ("shared_memory", "memory"),
}


@dataclass(frozen=True, slots=True)
class DeclaredAgent:
    """`role` is `teacher`, `student`, `judge`, or empty where the file names none."""

    name: str
    role: str


@dataclass(frozen=True, slots=True)
class DeclaredBinding:
    """How a pool is bound to an engine of the installation; empty texts are as good as not said. The engine has the pool's name where none is."""

    name: str
    engine: str
    slots: int | None = None
    isolation: str | None = None
    far: tuple[tuple[str, str], ...] = ()  # login, folder, python, secret, partition, account


@dataclass(frozen=True, slots=True)
class DeclaredBudget:
    """`amount` in whole GPU milliseconds, runs, micro-units of currency or bytes, as `unit` says; `key` as written in the file."""

    key: str
    unit: str
    window: str
    amount: int
    mode: str = "hard_stop"


@dataclass(frozen=True, slots=True)
class DeclaredObjective:
    statement: str
    benchmark: str | None = None
    target: Decimal | None = None
    due: date | None = None


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a file says about a workspace. None and empty mean that it says nothing, never that something shall be removed."""

    slug: str
    pools: tuple[str, ...] = ()
    bindings: tuple[DeclaredBinding, ...] = ()  # of those pools that the file says more of than their name
    benchmarks: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    agents: tuple[DeclaredAgent, ...] = ()
    memory: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    budgets: tuple[DeclaredBudget, ...] = ()
    name: str | None = None
    owners: tuple[str, ...] = ()
    billing_account: str | None = None
    cost_centre: str | None = None
    boundary_kind: str | None = None
    boundary_reason: str | None = None
    zone: str | None = None
    week_start: int | None = None
    visibility: str | None = None
    region: str | None = None
    objective: DeclaredObjective | None = None
    unknown_keys: tuple[str, ...] = ()


def parse_declaration(content: bytes | str, syntax: Syntax | None = None) -> Declaration:
    """Read JSON or YAML of at most 1 MiB; without `syntax`, a text that begins with `{` is JSON, else YAML.

    Top-level keys that mean nothing here are named in `unknown_keys`; an unknown budget is a fault, because a limit that is silently
    dropped would not limit. Raises DeclarationError with every fault found.
    """
    text = decoded(content)
    if syntax is None:
        syntax = "json" if text.lstrip(" \t\r\n").startswith("{") else "yaml"
    node, faults = JSONReader(text).read() if syntax == "json" else YAMLReader(text).read()
    if not isinstance(node.value, dict):
        raise stop("must be a mapping of keys to values", node.line)
    document = _Document(node.value, faults)
    declaration = document.read()
    if faults:
        ordered = sorted(faults, key=lambda fault: fault.line or 0)
        more = [Fault("", f"has {len(faults) - MAX_FAULTS} more faults")] if len(faults) > MAX_FAULTS else []
        raise DeclarationError((*ordered[:MAX_FAULTS], *more))
    return declaration


class _Document:
    """The fields of one document, each taken out of `rest`; what is left there is unknown."""

    def __init__(self, table: dict[str, Node], faults: list[Fault]) -> None:
        self.rest = dict(table)
        self.values = Values(faults)
        self.bindings: list[DeclaredBinding] = []

    def read(self) -> Declaration:
        slug = self.one("workspace", self.values.slug)
        if slug is None and not any(fault.path in SPELLINGS["workspace"] for fault in self.values.faults):
            self.values.fault("workspace", "is missing; give the workspace a name, such as workspace: autogo-main", None)
        pools: tuple[Noted, ...] = self.one("compute_pools", self.pools) or ()
        return Declaration(
            slug=slug or "",
            pools=tuple(name for name, _line in pools),
            bindings=tuple(self.bindings),
            benchmarks=self.slugs("benchmarks"),
            datasets=self.slugs("datasets"),
            agents=self.agents(),
            memory=self.slugs("shared_memory"),
            policies=self.slugs("policies"),
            gates=self.slugs("gates"),
            budgets=self.one("budgets", self.budgets) or (),
            name=self.text("name", 200),
            owners=self.owners(),
            billing_account=self.text("billing_account", 100),
            cost_centre=self.text("cost_centre", 100),
            boundary_kind=self.choice("boundary_kind", BOUNDARY_KINDS),
            boundary_reason=self.text("boundary_reason", 1000),
            zone=self.one("zone", self.values.zone),
            week_start=self.one("week_start", self.values.week_start),
            visibility=self.choice("visibility", VISIBILITIES),
            region=self.one("region", self.values.slug),
            objective=self.one("objective", self.objective),
            unknown_keys=tuple(shown(key) for key in self.rest),
        )

    def one(self, key: str, read: Callable[[str, Node], T | None]) -> T | None:
        """The value of `key` in any of its spellings; None where the file says nothing or something wrong."""
        found = [(spelling, self.rest.pop(spelling)) for spelling in SPELLINGS.get(key, (key,)) if spelling in self.rest]
        if not found:
            return None
        (first, node), *others = found
        for spelling, other in others:
            self.values.fault(spelling, f"means the same as {first}; keep one of the two", other.line)
        return None if node.value is None else read(first, node)

    def text(self, key: str, limit: int) -> str | None:
        return self.one(key, lambda path, node: self.values.text(path, node, limit, lines=key == "boundary_reason"))

    def choice(self, key: str, choices: tuple[str, ...]) -> str | None:
        return self.one(key, lambda path, node: self.values.choice(path, node, choices))

    def slugs(self, key: str) -> tuple[str, ...]:
        noted: tuple[Noted, ...] = self.one(key, self.values.slugs) or ()
        return tuple(name for name, _line in noted)

    def pools(self, path: str, node: Node) -> tuple[Noted, ...]:
        """Names, some of them with how they are bound: a mapping of name and settings."""
        if not isinstance(node.value, tuple):
            return self.values.slugs(path, node)
        items = [self.binding(f"{path}[{index}]", item) if isinstance(item.value, dict) else item for index, item in enumerate(node.value)]
        return self.values.slugs(path, Node(tuple(item for item in items if item is not None), node.line))

    def binding(self, path: str, node: Node) -> Node | None:
        """The pool's name; how it is bound is kept in `bindings`."""
        assert isinstance(node.value, dict)
        parts = self.parts(path, node.value, BINDING)
        if "name" not in parts:
            self.values.fault(path, "has no name", node.line)
            return None
        name = self.values.slug(f"{path}.name", parts["name"])
        engine = self.values.slug(f"{path}.engine", parts["engine"]) if "engine" in parts else name
        slots = self.values.amount(f"{path}.slots", parts["slots"], 1, "slots") if "slots" in parts else None
        isolation = self.values.choice(f"{path}.isolation", parts["isolation"], ISOLATIONS) if "isolation" in parts else None
        far = [(key, self.values.text(f"{path}.{key}", parts[key], 200)) for key in BINDING[4:] if key in parts]
        if name is not None and engine is not None:
            self.bindings.append(DeclaredBinding(name, engine, slots, isolation, tuple((key, text) for key, text in far if text)))
        return None if name is None else Node(name, parts["name"].line)

    def owners(self) -> tuple[str, ...]:
        noted: tuple[Noted, ...] = self.one("owners", self.values.usernames) or ()
        return tuple(name for name, _line in noted)

    def agents(self) -> tuple[DeclaredAgent, ...]:
        found: dict[str, DeclaredAgent] = {}
        for key, role in AGENT_ROLES.items():
            for name, line in self.one(key, self.values.slugs) or ():
                first = found.setdefault(ids.same_name(name), DeclaredAgent(name, role))
                if first.role != role:
                    self.values.fault(key, f"lists {name}, which is already the {first.role or 'agent'} {first.name}", line)
        return tuple(found.values())

    def budgets(self, path: str, node: Node) -> tuple[DeclaredBudget, ...]:
        if not isinstance(node.value, dict):
            self.values.wrong_type(path, "a mapping of limits", node)
            return ()
        read = (self.budget(f"{path}.{shown(key)}", key, value) for key, value in node.value.items() if value.value is not None)
        return tuple(budget for budget in read if budget is not None)

    def budget(self, path: str, key: str, node: Node) -> DeclaredBudget | None:
        if key not in BUDGETS:
            self.values.fault(path, f"is no budget that can be limited; there are {', '.join(BUDGETS)}", node.line)
            return None
        unit, window, per_unit, smallest = BUDGETS[key]
        mode: str | None = "hard_stop"
        if isinstance(node.value, dict):
            parts = self.parts(path, node.value, ("amount", "mode"))
            if "mode" in parts:
                mode = self.values.choice(f"{path}.mode", parts["mode"], LIMIT_MODES)
            if "amount" not in parts:
                self.values.fault(path, "has no amount", node.line)
                return None
            path, node = f"{path}.amount", parts["amount"]
        amount = self.values.amount(path, node, per_unit, smallest)
        return None if amount is None or mode is None else DeclaredBudget(key, unit, window, amount, mode)

    def objective(self, path: str, node: Node) -> DeclaredObjective | None:
        """A sentence, or a mapping of statement, benchmark, target and due date."""
        if not isinstance(node.value, dict):
            statement = self.values.text(path, node, 500)
            return None if statement is None else DeclaredObjective(statement)
        parts = self.parts(path, node.value, ("statement", "benchmark", "target", "due"))
        if "statement" not in parts:
            self.values.fault(path, "has no statement; say in one sentence what the group tries to improve", node.line)
        values = self.values
        return DeclaredObjective(
            statement=(values.text(f"{path}.statement", parts["statement"], 500) or "") if "statement" in parts else "",
            benchmark=values.slug(f"{path}.benchmark", parts["benchmark"]) if "benchmark" in parts else None,
            target=values.number(f"{path}.target", parts["target"]) if "target" in parts else None,
            due=values.day(f"{path}.due", parts["due"]) if "due" in parts else None,
        )

    def parts(self, path: str, table: dict[str, Node], known: tuple[str, ...]) -> dict[str, Node]:
        """The entries that say something; a key that is not `known` is a fault, since inside a known field it is a slip."""
        for key in table.keys() - set(known):
            self.values.fault(f"{path}.{shown(key)}", f"is not known here; there are {', '.join(known)}", table[key].line)
        return {key: node for key, node in table.items() if key in known and node.value is not None}
