"""May this run start? Every rule and every limit at once, with its arithmetic and the way out (M5).

Pure: facts in, verdict out, the same for the same facts. A certificate keeps the facts as `Facts.as_json()`; `decide(facts_from(kept))` gives
its verdict again, word for word.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from runs.admission_contract import judge_contract
from runs.admission_facts import Facts, LimitFacts, PriorityFacts, QuotaFacts, SecretFacts
from runs.admission_inputs import judge
from workspaces import units

EVALUATE = "evaluate"  # the kind of an agent version that gives scores to what others made: it alone reads a holdout


class Answer(StrEnum):
    """What one rule or limit says."""

    PASS = "pass"  # noqa: S105  # an answer
    WARN = "warn"
    WAIT = "wait"
    APPROVAL = "approval"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the certificate."""

    name: str
    answer: Answer
    words: str
    way_out: str = ""
    unit: str = ""
    window: str = ""
    mode: str = ""
    allowed: int | None = None
    used: int | None = None
    reserved: int | None = None
    asked: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    answer: Answer  # PASS, APPROVAL or REFUSE
    lines: tuple[Line, ...]

    @property
    def reasons(self) -> list[str]:
        """Sentences of the lines that stand in the way."""
        return [f"{line.words} {line.way_out}".strip() for line in self.lines if line.answer in (Answer.REFUSE, Answer.APPROVAL)]

    def as_json(self) -> list[dict[str, Any]]:
        return [asdict(line) for line in self.lines]


def decide(facts: Facts) -> Verdict:
    """One decision over all rules and limits."""
    lines = [rule(facts) for rule in RULES]
    agent = f"{facts.agent.name} version {facts.agent.version}"
    lines += [_rule("Inputs", *judge(agent, facts.inputs))] if facts.inputs is not None else []
    judged = judge_contract(facts.contract, agent=agent, kind=facts.agent.kind) if facts.contract is not None else []
    lines += [Line(name, Answer(answer), words, way_out) for name, answer, words, way_out in judged]
    lines += [_standing(facts.withdrawn)] if facts.withdrawn else []
    lines += _site(facts) if facts.site is not None else []
    lines += [_secrets(facts.secrets)] if facts.secrets else []
    lines += [_priority(facts.priority, is_approved=facts.is_approved)] if facts.priority is not None else []
    lines += [_quota(facts.quota)] if facts.quota is not None else []
    lines += [_limit(limit, is_approved=facts.is_approved) for limit in facts.limits]
    answers = {line.answer for line in lines}
    answer = Answer.REFUSE if Answer.REFUSE in answers else Answer.APPROVAL if Answer.APPROVAL in answers else Answer.PASS
    return Verdict(answer=answer, lines=tuple(lines))


# --- Rules: yes or no -----------------------------------------------------------------------------------------------------------------------


def _open(facts: Facts) -> Line:
    words = {"configuring": "still being set up", "active": "open for launches", "archived": "archived"}
    way_out = {
        "configuring": " ".join(facts.workspace.missing) or "Open it for launches on its set-up page.",
        "archived": "Unarchive it before launching.",
    }
    status = facts.workspace.status
    return _rule("Workspace", status == "active", f"{facts.workspace.name} is {words[status]}.", way_out.get(status, ""))


def _allowed(facts: Facts) -> Line:
    agent, pool = facts.agent, facts.pool.slug
    return _rule(
        "Agent may use the pool",
        not agent.pools or pool in agent.pools,
        f"{agent.name} version {agent.version} may run on {', '.join(agent.pools) or 'every pool'}.",
        f"Choose {' or '.join(agent.pools)}, or publish a version that may run on {pool}.",
    )


def _accepting(facts: Facts) -> Line:
    pool = facts.pool
    words = f"{pool.slug} takes {'new work' if pool.is_accepting else 'no new work'}."
    return _rule("Pool takes work", pool.is_accepting, words, "Choose another pool, or ask an operator to open it.")


def _apart(facts: Facts) -> Line:
    pool, holdout = facts.pool, facts.holdout
    is_guarded = holdout.in_contract or bool(holdout.inputs)
    is_bare = is_guarded and pool.isolation == "none"
    accepted = f"; an owner accepted that: {holdout.accepted}" if is_bare and holdout.accepted else ""
    return _rule(
        "Holdout stays apart",
        not is_bare or bool(holdout.accepted),
        f"{pool.slug} gives {pool.isolation_words}{accepted}{'; this benchmark has a holdout.' if is_guarded else '.'}",
        "Choose a pool with isolation, or let an owner accept it in the contract with a reason.",
    )


def _untrained(facts: Facts) -> Line:
    holdout, kind = facts.holdout, facts.agent.kind
    may_read = kind == EVALUATE if holdout.for_evaluators else kind != "train"
    return _rule(
        "Holdout is not trained on",
        not holdout.inputs or may_read,
        f"An agent of kind {kind} reads {', '.join(holdout.inputs) or 'no holdout'}.",
        f"Leave the holdout out, or score with an agent of kind {EVALUATE}.",
    )


def _slots(facts: Facts) -> Line:
    wanted, there = facts.agent.slots, facts.pool.slots
    return _rule("Slots", wanted <= there, f"The agent wants {wanted} of {there} slots.", "Choose a larger pool.")


RULES: tuple[Callable[[Facts], Line], ...] = (_open, _allowed, _accepting, _apart, _untrained, _slots)


def _site(facts: Facts) -> list[Line]:
    """Demands of the installation. No approver of a workspace lifts them."""
    site, pool, found = facts.site, facts.pool, []
    assert site is not None
    if site.max_wall_seconds is not None:
        asked, most = site.asked_wall_seconds, site.max_wall_seconds
        over = asked - most
        found.append(
            Line(
                name="Wall time, site policy",
                answer=Answer.REFUSE if over > 0 else Answer.PASS,
                words=f"{asked:,} of at most {most:,} seconds that this installation allows a run.",
                way_out=f"Ask for {over:,} seconds less, or ask the site's operators." if over > 0 else "",
                unit="wall_seconds",
                window="run",
                mode="stop",
                allowed=most,
                used=0,
                reserved=0,
                asked=asked,
            )  # fmt: skip
        )
    if site.forbids_no_isolation:
        words = f"{pool.slug} gives {pool.isolation_words}; this installation wants isolation."
        found.append(_rule("Isolation, site policy", pool.isolation != "none", words, "Choose a pool with isolation."))
    return found


def _standing(withdrawn: tuple[str, ...]) -> Line:
    words = f"{', '.join(withdrawn)} {'was' if len(withdrawn) == 1 else 'were'} withdrawn, or made of what was."
    return _rule("Rests on nothing withdrawn", False, words, "Choose another version, or let the withdrawal be undone.")


def _secrets(secrets: tuple[SecretFacts, ...]) -> Line:
    faults = [fault for secret in secrets if (fault := secret_fault(secret)) is not None]
    words = " ".join(what for what, _ in faults) or f"It reads {', '.join(secret.name for secret in secrets)}."
    return _rule("Secrets", not faults, words, " ".join(dict.fromkeys(way_out for _, way_out in faults)))


def secret_fault(secret: SecretFacts) -> tuple[str, str] | None:
    """Why a run may not read a secret, and the way out; None where it may."""
    if secret.standing == "missing":
        return f"There is no secret {secret.name} here.", "Make it, or publish a version of the agent that does not name it."
    if secret.standing == "revoked":
        return (
            f"The secret {secret.name} was revoked.",
            "Make a new one of that name, or publish a version of the agent that does not name it.",
        )
    if secret.refuses:
        *before, last = secret.refuses
        whom = f"{', '.join(before)} and {last}" if before else last
        return f"The secret {secret.name} is not allowed to {whom}.", "Whoever manages secrets allows it on the secret's page."
    return None


def _rule(name: str, holds: bool, words: str, way_out: str) -> Line:
    return Line(name, Answer.PASS, words) if holds else Line(name, Answer.REFUSE, words, way_out)


# --- Limits: arithmetic ---------------------------------------------------------------------------------------------------------------------


def _limit(limit: LimitFacts, *, is_approved: bool) -> Line:
    total = limit.used + limit.reserved + limit.asked
    over = total - limit.amount
    answer, way_out = (Answer.PASS, "") if over <= 0 else _excess(limit, over, is_approved=is_approved)
    return Line(
        name=limit.name, answer=answer, words=_words(limit, total), way_out=way_out, unit=limit.unit, window=limit.window, mode=limit.mode,
        allowed=limit.amount, used=limit.used, reserved=limit.reserved, asked=limit.asked,
    )  # fmt: skip


def _excess(limit: LimitFacts, over: int, *, is_approved: bool) -> tuple[Answer, str]:
    """What it means that a limit would be exceeded, by its mode; a hard stop of runs at once makes them wait."""
    if limit.mode == "warn":
        return Answer.WARN, "This limit only warns."
    if limit.unit == "runs":
        return Answer.WAIT, "It waits until another run ends."
    free = f"Free up {amount(over, limit.unit)}" if limit.window != "run" else f"Ask for {amount(over, limit.unit)} less"
    wait = f", wait until {limit.until}" if limit.until else ""
    if limit.mode == "stop":
        return Answer.REFUSE, f"{free}{wait}, or ask for an increase."
    if is_approved:
        return Answer.PASS, "An approver has agreed to it."
    return Answer.APPROVAL, f"{free}{wait}, or let an approver decide."


def _words(limit: LimitFacts, total: int) -> str:
    """The arithmetic in a sentence; the unit is said once."""
    asked, allowed = amount(limit.asked, limit.unit), amount(limit.amount, limit.unit)
    if limit.window == "run":
        return f"{asked} of at most {allowed} a run."
    span = {"week": "this week", "month": "this month", "now": "stored" if limit.unit == "storage_bytes" else "at once"}[limit.window]
    of = f"{units.figure(total, limit.unit)} of {units.figure(limit.amount, limit.unit)} {span}"
    return f"{of}; it asks for none." if limit.asked == 0 else f"{asked} more would make {of}."


def _priority(priority: PriorityFacts, *, is_approved: bool) -> Line:
    words = f"Priority {priority.asked} is above {priority.limit}, up to which a run goes without an approver."
    if is_approved:
        return Line("Priority", Answer.PASS, words, "An approver has agreed to it.")
    return Line("Priority", Answer.APPROVAL, words, f"Ask for {priority.limit}, or let an approver decide.")


SPANS = {"day": "today", "week": "this week", "month": "this month"}


def _quota(quota: QuotaFacts) -> Line:
    """Runs that one person may ask for in a period. It refuses, whatever an approver says: more looks at a holdout make it no holdout."""
    total = quota.used + quota.asked
    is_over = total > quota.allowed
    return Line(
        name=f"Runs per person and {quota.period}",
        answer=Answer.REFUSE if is_over else Answer.PASS,
        words=f"{amount(quota.asked, 'runs')} more would make {total:,} of {quota.allowed:,} that one person may ask for on {quota.benchmark}"
        f" {SPANS[quota.period]}.",
        way_out=wait_words(quota) if is_over else "",
        unit="runs", window=quota.period, mode="stop", allowed=quota.allowed, used=quota.used, reserved=0, asked=quota.asked,
    )  # fmt: skip


def wait_words(quota: QuotaFacts) -> str:
    """From when the next is allowed, and what may allow it earlier."""
    match quota.under_way:
        case 0:
            earlier = ""
        case 1:
            earlier = ", or earlier if the one under way ends without a score"
        case many:
            earlier = f", or earlier if one of the {many:,} under way ends without a score"
    return f"The next is allowed from {quota.until}{earlier}."


def amount(value: int, unit: str) -> str:
    """An amount in words with its unit; money says what it is for, since a sentence of a certificate stands alone."""
    return f"{units.amount(value, unit)} of API spend" if unit == "api_micros" else units.amount(value, unit)
