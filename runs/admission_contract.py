"""What a contract demands of a launch beside its holdout and its limit of runs: that it is open, that an evaluation stays under its ceilings, that
the evaluator is the one it names. Pure."""

from dataclasses import dataclass

from workspaces import units

EVALUATE = "evaluate"
Judged = tuple[str, str, str, str]  # name of the rule; pass, warn or refuse; words; the way out


@dataclass(frozen=True, slots=True)
class ContractFacts:
    """Of a contract that demands any of it. Instants in words, with their zone; `moment` is before, open or after, as the launch was asked for."""

    benchmark: str
    version: int
    opens: str = ""
    closes: str = ""
    moment: str = "open"
    wall_seconds: int | None = None  # ceilings of an evaluation, and what the run asks for
    asked_wall_seconds: int | None = None
    memory_bytes: int | None = None
    asked_memory_bytes: int | None = None  # None: as much as there is
    evaluator: str = ""
    is_evaluator: bool = False


def judge_contract(facts: ContractFacts, *, agent: str, kind: str) -> list[Judged]:
    """A line for each demand that there is."""
    found = []
    if facts.opens or facts.closes:
        found.append(_open(facts))
    if kind == EVALUATE and facts.wall_seconds is not None and facts.asked_wall_seconds is not None:
        found.append(_wall(facts.wall_seconds, facts.asked_wall_seconds))
    if kind == EVALUATE and facts.memory_bytes is not None:
        found.append(_memory(facts.memory_bytes, facts.asked_memory_bytes))
    if facts.evaluator:
        found.append(_evaluator(facts, agent, kind))
    return found


def _open(facts: ContractFacts) -> Judged:
    since = f" from {facts.opens}" if facts.opens else ""
    until = f" until {facts.closes}" if facts.closes else ""
    words = f"{facts.benchmark} takes runs{since}{until}, as contract version {facts.version} says."
    way_out = {
        "before": f"Ask again from {facts.opens} on.",
        "after": "It is closed; runs are measured again once a next version of the contract opens.",
    }.get(facts.moment, "")
    return "Contract is open", "refuse" if way_out else "pass", words, way_out


def _wall(most: int, asked: int) -> Judged:
    words = f"{asked:,} of at most {most:,} seconds that the contract allows an evaluation."
    way_out = f"Ask for {asked - most:,} seconds less." if asked > most else ""
    return "Wall time, contract", "refuse" if way_out else "pass", words, way_out


def _memory(most: int, asked: int | None) -> Judged:
    allowed = units.amount(most, "storage_bytes")
    if asked is None:
        words = f"The agent names no memory limit; the contract allows an evaluation at most {allowed}."
        return "Memory, contract", "refuse", words, "Publish a version of the agent that names one."
    words = f"{units.amount(asked, 'storage_bytes')} of at most {allowed} of memory that the contract allows an evaluation."
    way_out = "Publish a version of the agent that takes less." if asked > most else ""
    return "Memory, contract", "refuse" if way_out else "pass", words, way_out


def _evaluator(facts: ContractFacts, agent: str, kind: str) -> Judged:
    name, sole = "Evaluator", f"Only {facts.evaluator} scores on {facts.benchmark}, as contract version {facts.version} says"
    if facts.is_evaluator:
        return name, "pass", f"{sole}; this is it.", ""
    if kind == EVALUATE:
        return name, "refuse", f"{sole}; this is {agent}.", f"Choose {facts.evaluator}, or publish a contract that names another."
    words = f"{sole}; what this run reports of itself is not kept as a score."
    return name, "warn", words, f"What it leaves may be scored by {facts.evaluator}."
