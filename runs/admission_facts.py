"""What an admission is decided upon, and how a certificate keeps it. Pure: values alone."""

from dataclasses import asdict, dataclass
from typing import Any

from runs.admission_contract import ContractFacts
from runs.admission_inputs import InputFacts, input_facts_from

FORM = 6  # of kept facts; a change of what is kept or of how it is decided makes a new one
# Forms that are still decided upon as they were; 2 knows no limit of runs per person and no secrets, 3 no priority and no site policy,
# 4 no inputs, nothing that was withdrawn, and kept holdouts from agents that train alone, 5 nothing that a contract demands of a launch.
DECIDED = (2, 3, 4, 5, 6)


@dataclass(frozen=True, slots=True)
class WorkspaceFacts:
    name: str
    status: str  # configuring, active, archived
    missing: tuple[str, ...] = ()  # sentences: what its set-up wants still


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """The agent's version that would run, and the pools it may run on; none named: every pool."""

    name: str
    version: int
    kind: str
    slots: int
    pools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolFacts:
    slug: str
    slots: int
    isolation: str  # user, namespace, none
    isolation_words: str
    is_accepting: bool  # the pool and its engine


@dataclass(frozen=True, slots=True)
class HoldoutFacts:
    """What must be kept from agents: is there a holdout in the contract, which inputs are one, why an owner accepts no isolation."""

    in_contract: bool = False
    inputs: tuple[str, ...] = ()
    accepted: str = ""
    for_evaluators: bool = False  # since form 5: before, whoever did not train was given one


@dataclass(frozen=True, slots=True)
class LimitFacts:
    """One limit as it stood under the lock. Amounts in the unit's integers; `used` is spent (or now in use), `reserved` promised to others."""

    name: str
    unit: str
    window: str
    amount: int
    mode: str  # stop, approval, warn
    used: int
    reserved: int
    asked: int
    until: str = ""  # when the window ends, in the workspace's zone, in words


@dataclass(frozen=True, slots=True)
class QuotaFacts:
    """What the contract allows one person in a period, and what they have used of it; `under_way` of those may still give their place back."""

    benchmark: str
    allowed: int
    period: str  # day, week, month
    used: int
    under_way: int
    asked: int
    until: str  # when the period ends, in the workspace's zone, in words

    @property
    def left(self) -> int:
        return max(0, self.allowed - self.used)


@dataclass(frozen=True, slots=True)
class SecretFacts:
    """A secret that the agent's version names: does it hold, and whom is it not allowed to?"""

    name: str
    standing: str  # ready, missing, revoked
    refuses: tuple[str, ...] = ()  # of "the agent worker", "the pool local", "the benchmark accuracy"


@dataclass(frozen=True, slots=True)
class PriorityFacts:
    """How soon it wants to go, above what the workspace lets go without an approver."""

    asked: int
    limit: int


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What the operators of the installation demand of every run, and the wall limit that this one asks for."""

    max_wall_seconds: int | None
    forbids_no_isolation: bool
    asked_wall_seconds: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a decision rests on."""

    workspace: WorkspaceFacts
    agent: AgentFacts
    pool: PoolFacts
    holdout: HoldoutFacts
    limits: tuple[LimitFacts, ...] = ()
    quota: QuotaFacts | None = None  # None: the contract limits no person
    secrets: tuple[SecretFacts, ...] = ()
    priority: PriorityFacts | None = None  # None: it asks for none that needs an approver
    site: SiteFacts | None = None  # None: the installation demands nothing
    inputs: InputFacts | None = None  # None: the agent needs none
    contract: ContractFacts | None = None  # None: the contract demands nothing of the kind
    withdrawn: tuple[str, ...] = ()  # what it would rest on and may not be rested on
    is_approved: bool = False  # a person has said yes to what is above a limit that asks for approval

    def as_json(self) -> dict[str, Any]:
        """As a certificate keeps them."""
        return {"form": FORM, **asdict(self)}


def facts_from(kept: dict[str, Any]) -> Facts:
    """Facts as a certificate has kept them. Raises ValueError for a form that this version does not decide upon."""
    if kept.get("form") not in DECIDED:
        forms = " and ".join(map(str, DECIDED))
        raise ValueError(f"These facts are of form {kept.get('form', 1)}; this version of labsite decides upon forms {forms}.")
    return Facts(
        workspace=WorkspaceFacts(**{**kept["workspace"], "missing": tuple(kept["workspace"]["missing"])}),
        agent=AgentFacts(**{**kept["agent"], "pools": tuple(kept["agent"]["pools"])}),
        pool=PoolFacts(**kept["pool"]),
        holdout=HoldoutFacts(**{**kept["holdout"], "inputs": tuple(kept["holdout"]["inputs"])}),
        limits=tuple(LimitFacts(**limit) for limit in kept["limits"]),
        quota=QuotaFacts(**kept["quota"]) if kept.get("quota") else None,
        site=SiteFacts(**kept["site"]) if kept.get("site") else None,
        inputs=input_facts_from(kept["inputs"]) if kept.get("inputs") else None,
        contract=ContractFacts(**kept["contract"]) if kept.get("contract") else None,
        withdrawn=tuple(kept.get("withdrawn", ())),
        secrets=tuple(SecretFacts(**{**secret, "refuses": tuple(secret["refuses"])}) for secret in kept.get("secrets", ())),
        priority=PriorityFacts(**kept["priority"]) if kept.get("priority") else None,
        is_approved=kept["is_approved"],
    )
