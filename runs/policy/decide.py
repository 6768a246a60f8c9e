"""One decision: a policy and the facts of an instant, and what comes of them. Pure, so that any version can be asked about any day that is kept."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from runs.eligibility import Fact, Verdict, in_the_way
from runs.policy.checks import look
from runs.policy.choosing import RULES, Candidate
from runs.policy.document import Policy
from runs.policy.facts import Facts
from runs.policy.gates import REVIEW
from runs.policy.memory import LEAST, preferring, reading
from runs.policy.site import reviewers_of, site_lines, waits_for_reviewers
from workspaces.units import MS_PER_HOUR, gpu_time, plural


class Outcome(StrEnum):
    ACTS = "acts"
    HOLDS = "holds"  # a condition does not hold: nothing to do this time
    BARRED = "barred"  # the gate does not pass
    LIMITED = "limited"  # one of the policy's own limits; a lasting one stops it
    FAILED = "failed"  # it cannot act as it is written: what it names is not there


@dataclass(frozen=True, slots=True)
class Decided:
    """`stops`: the policy should act no more until a person says so. `gpu_ms` is what its launches may reserve together, None where nobody knows."""

    outcome: Outcome
    words: str
    checks: tuple[Fact, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    gpu_ms: int | None = None
    stops: bool = False

    @property
    def chosen(self) -> list[dict[str, Any]]:
        return [candidate.parameters for candidate in self.candidates if candidate.is_chosen]

    def as_json(self) -> dict[str, Any]:
        """What a decision keeps, and what a replay is held against."""
        return {
            "outcome": self.outcome.value,
            "words": self.words,
            "checks": [fact.stored for fact in self.checks],
            "candidates": [candidate.as_json() for candidate in self.candidates],
            "gpu_ms": self.gpu_ms,
            "stops": self.stops,
        }


def decide(policy: Policy, facts: Facts) -> Decided:
    """What the policy says, and then what the rules of the site leave of it: they bar what it would do, and let nothing through."""
    own = _decide(policy, facts)
    if not facts.site:
        return own
    lines = site_lines(policy, facts, own.gpu_ms)
    checks, shut = (*own.checks, *lines), [line for line in lines if line.verdict is not Verdict.PASS]
    if own.outcome is not Outcome.ACTS or not shut or waits_for_reviewers(shut, policy, facts):
        return replace(own, checks=checks)
    return replace(own, outcome=Outcome.BARRED, words=" ".join(in_the_way(shut)), checks=checks)


def _decide(policy: Policy, facts: Facts) -> Decided:
    """Conditions and gate are always all looked at, so that a page shows every reason and not only the first."""
    conditions = [look(entry, facts) for entry in policy.conditions]
    gate = [look(entry, facts) for entry in policy.gate]
    checks = (*conditions, *gate)
    limited = _limited(policy, facts)
    if limited is not None:
        words, stops = limited
        return Decided(Outcome.LIMITED, words, checks, stops=stops)
    if facts.problems:
        return Decided(Outcome.FAILED, " ".join(facts.problems), checks)
    unfit = [fact for fact in checks if fact.verdict is Verdict.UNKNOWN and fact.observed == "no such check"]
    if unfit:
        return Decided(Outcome.FAILED, " ".join(in_the_way(unfit)), checks)
    if any(fact.verdict is not Verdict.PASS for fact in conditions):
        return Decided(Outcome.HOLDS, " ".join(in_the_way(conditions)), checks)
    if facts.missing:
        return Decided(Outcome.HOLDS, " ".join(facts.missing), checks)
    shut = [fact for fact in gate if fact.verdict is not Verdict.PASS]
    if shut and not _waits_for_a_person(policy, facts, shut):
        return Decided(Outcome.BARRED, " ".join(in_the_way(gate)), checks)
    return _act(policy, facts, checks)


def _waits_for_a_person(policy: Policy, facts: Facts, shut: Sequence[Fact]) -> bool:
    """All that is left is a reviewer's word on what would be put forward: it is asked for by putting it forward, and promoted by that word alone."""
    is_review = all(fact.key == REVIEW and fact.verdict is Verdict.UNKNOWN for fact in shut)
    return is_review and policy.does == "promote" and facts.candidate is not None


def _act(policy: Policy, facts: Facts, checks: tuple[Fact, ...]) -> Decided:
    if policy.does == "notify":
        return Decided(Outcome.ACTS, str(policy.action["words"]), checks, gpu_ms=0)
    if policy.does == "ask":
        return Decided(Outcome.ACTS, f"Asks “{policy.action['question']}”", checks, gpu_ms=0)
    if policy.does == "write_memory":
        words = f"Writes about {facts.cause['label']} to {policy.action['collection']}; nobody has reviewed it yet."
        return Decided(Outcome.ACTS, words, checks, gpu_ms=0)
    if policy.does == "promote":
        if facts.candidate is None:
            return Decided(
                Outcome.HOLDS, f"{facts.cause['label']} measured no artifact that is kept, so there is nothing to put forward.", checks
            )
        needed = reviewers_of(policy, facts.site)
        who = f"{plural(needed, 'reviewer', 'reviewers')} other than its author" if needed else "another person"
        decides = "decides" if needed < 2 else "decide"
        words = f"Puts {facts.candidate.label} forward as {policy.action['name']}; {who} {decides}."
        return Decided(Outcome.ACTS, words, checks, gpu_ms=0)
    if policy.does == "launch_run":
        candidate = Candidate(dict(policy.action.get("parameters", {})), True, "as the policy says")
        words = f"Launches {plural(seeds_of(policy), 'run', 'runs')} of {policy.action['agent']}."
        return _within(policy, facts, checks, words, (candidate,))
    if facts.of != {"agent": policy.action["agent"], "benchmark": policy.action["benchmark"]}:
        words = "The facts that are kept are of another agent or benchmark, so nobody can say what this version would have chosen."
        return Decided(Outcome.FAILED, words, checks)
    choose = policy.action["choose"]
    asked = policy.action.get("memory")
    fixed = {**(facts.memory or {}).get("defaults", {}), **policy.action.get("parameters", {})}
    read = reading(facts.memory, asked.get("least", LEAST)) if asked else reading(None)
    first = preferring(facts.memory, asked.get("least", LEAST)) if asked and "prefer" in asked else None
    favoured = {"favoured": first.speaks_for} if first is not None and first.obeyed else {}
    choice = RULES[choose["rule"]].choose(choose, facts, lambda point: read.against({**fixed, **point}), **favoured)
    older = (
        f"It weighed the newest {len(facts.results):,} results alone; what was tried before them may be tried again."
        if facts.has_older
        else ""
    )
    words = " ".join(part for part in (choice.words, older, read.words) if part)
    if not choice.chosen:
        return Decided(Outcome.HOLDS, words, checks, choice.candidates)
    return _within(policy, facts, checks, words, choice.candidates)


def seeds_of(policy: Policy) -> int:
    """Runs of each configuration that it launches, one with each seed."""
    return len(policy.action.get("seeds", ())) or 1


def _within(policy: Policy, facts: Facts, checks: tuple[Fact, ...], words: str, candidates: tuple[Candidate, ...]) -> Decided:
    """What it asks for together must fit into the policy's own limits."""
    count = sum(candidate.is_chosen for candidate in candidates) * seeds_of(policy)
    gpu_ms = count * facts.gpu_ms_each if facts.gpu_ms_each is not None else None
    limits = {name: round(policy.limits[name] * MS_PER_HOUR) for name in ("gpu_hours", "gpu_hours_a_week") if name in policy.limits}
    if (share := policy.limits.get("budget_share_percent")) is not None:
        if facts.week_gpu_ms is None:
            over = f"It may use {share:g} % of the week's GPU hours, of which no hard limit is set, so nobody can say how many those are."
            return Decided(Outcome.LIMITED, over, checks, candidates, gpu_ms)
        limits["budget_share_percent"] = int(facts.week_gpu_ms * share / 100)
    for name, allowed in limits.items():
        spent, span = (facts.spent_gpu_ms, "in all") if name == "gpu_hours" else (facts.spent_week_gpu_ms, "this week")
        if gpu_ms is None or spent + gpu_ms > allowed:
            asked = gpu_time(gpu_ms) if gpu_ms is not None else "an amount nobody can foresee"
            over = f"It may use {gpu_time(allowed)} {span}, has used {gpu_time(spent)}, and would ask for {asked}."
            return Decided(Outcome.LIMITED, over, checks, candidates, gpu_ms, stops=name == "gpu_hours")
    return Decided(Outcome.ACTS, words, checks, candidates, gpu_ms)


def _limited(policy: Policy, facts: Facts) -> tuple[str, bool] | None:
    """The first of its own limits that is reached, in words, and whether that lasts."""
    limits = policy.limits
    if "decisions" in limits and facts.acted >= limits["decisions"]:
        return f"It may act {plural(limits['decisions'], 'time', 'times')} and has; a new version can allow more.", True
    if "failures" in limits and facts.failures >= limits["failures"]:
        return f"What it launched failed {plural(facts.failures, 'time', 'times')} in a row; look at the failures, then let it go on.", True
    if "cooldown_minutes" in limits and facts.last_acted_at is not None:
        until = datetime.fromisoformat(facts.last_acted_at) + timedelta(minutes=limits["cooldown_minutes"])
        if datetime.fromisoformat(facts.at) < until:
            acted, again = (instant[:16].replace("T", " ") for instant in (facts.last_acted_at, until.isoformat()))
            return f"It acted {acted} UTC and acts again from {again} UTC.", False
    return None
