"""May this run start? Every limit at once, with its arithmetic and the way out (M5). Pure: facts in, verdict out, the same for the same facts."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from workspaces import units


class Answer(StrEnum):
    """What one limit says."""

    PASS = "pass"  # noqa: S105  # an answer
    WARN = "warn"
    WAIT = "wait"
    APPROVAL = "approval"
    REFUSE = "refuse"


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
class Rule:
    """A yes-or-no condition: workspace set up, not archived, pool accepts, agent may run there, isolation good enough, …"""

    name: str
    holds: bool
    words: str
    way_out: str = ""
    waits: bool = False  # not now, but it resolves by itself: the run may be admitted and wait


@dataclass(frozen=True, slots=True)
class Facts:
    rules: tuple[Rule, ...]
    limits: tuple[LimitFacts, ...]


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


def decide(facts: Facts, *, approved: bool = False) -> Verdict:
    """One decision over all rules and limits. `approved`: a person has said yes to what is above a limit that asks for approval."""
    lines = [_rule_line(rule) for rule in facts.rules] + [_limit_line(limit, approved=approved) for limit in facts.limits]
    answers = {line.answer for line in lines}
    answer = Answer.REFUSE if Answer.REFUSE in answers else Answer.APPROVAL if Answer.APPROVAL in answers else Answer.PASS
    return Verdict(answer=answer, lines=tuple(lines))


def _rule_line(rule: Rule) -> Line:
    answer = Answer.PASS if rule.holds else Answer.WAIT if rule.waits else Answer.REFUSE
    return Line(name=rule.name, answer=answer, words=rule.words, way_out="" if rule.holds else rule.way_out)


def _limit_line(limit: LimitFacts, *, approved: bool) -> Line:
    total = limit.used + limit.reserved + limit.asked
    over = total - limit.amount
    words = _words(limit, total)
    way_out = ""
    if over <= 0:
        answer = Answer.PASS
    elif limit.window == "now" and limit.unit == "runs":
        answer, way_out = Answer.WAIT, "It waits until another run ends."
    else:
        answer = {"stop": Answer.REFUSE, "approval": Answer.PASS if approved else Answer.APPROVAL, "warn": Answer.WARN}[limit.mode]
        free = f"Free up {amount(over, limit.unit)}" if limit.window != "run" else f"Ask for {amount(over, limit.unit)} less"
        wait = f", wait until {limit.until}" if limit.until else ""
        way_out = {
            "stop": f"{free}{wait}, or ask for an increase.",
            "approval": "An approver has agreed to it." if approved else f"{free}{wait}, or let an approver decide.",
            "warn": "This limit only warns.",
        }[limit.mode]
    return Line(
        name=limit.name, answer=answer, words=words, way_out=way_out, unit=limit.unit, window=limit.window, mode=limit.mode,
        allowed=limit.amount, used=limit.used, reserved=limit.reserved, asked=limit.asked,
    )  # fmt: skip


def _words(limit: LimitFacts, total: int) -> str:
    """The arithmetic in a sentence; the unit is said once."""
    asked, allowed = amount(limit.asked, limit.unit), amount(limit.amount, limit.unit)
    if limit.window == "run":
        return f"{asked} of at most {allowed} a run."
    span = {"week": "this week", "month": "this month", "now": "stored" if limit.unit == "storage_bytes" else "at once"}[limit.window]
    if limit.asked == 0:
        return f"{_bare(total, limit.unit)} of {_bare(limit.amount, limit.unit)} {span}; it asks for none."
    return f"{asked} more would make {_bare(total, limit.unit)} of {_bare(limit.amount, limit.unit)} {span}."


def _bare(value: int, unit: str) -> str:
    match unit:
        case "gpu_ms":
            return units.gpu_hours(value)
        case "api_micros":
            return units.money(value)
        case "storage_bytes":
            return units.size(value)
        case _:
            return f"{value:,}"


def amount(value: int, unit: str) -> str:
    """An amount in words with its unit: `24 GPU-hours`, `1,211 runs`, `12.50` of API spend, `3.2 GB`."""
    match unit:
        case "gpu_ms":
            return units.gpu_time(value)
        case "api_micros":
            return f"{units.money(value)} of API spend"
        case "storage_bytes":
            return units.size(value)
        case _:
            return units.plural(value, "run", "runs")
