"""The catalogue of checks that conditions and gates name. Each is a pure function of its parameters and the facts; a new one joins by its line.

What cannot be told is unknown, and unknown never passes.
"""

import math
from typing import Any

from runs.eligibility import Fact, Verdict
from runs.lifecycle import TERMINAL
from runs.policy.check import COUNT, HOURS, NUMBER, Check, Seen
from runs.policy.facts import Facts
from runs.policy.gates import GATES
from runs.policy.measured import MEASURED
from runs.policy.memory import MEMORY
from workspaces.units import MS_PER_HOUR, gpu_time, number, plural

WORDS = {"type": "string", "maxLength": 300}
ENDS = {"type": "array", "minItems": 1, "items": {"enum": [*sorted(TERMINAL), "promoted", "refused"]}}


def _nothing_under_way(given: dict[str, Any], facts: Facts) -> Seen:
    most = int(given.get("at_most", 0))
    observed = plural(facts.under_way, "launch", "launches") + " under way"
    return (
        facts.under_way <= most,
        observed,
        f"at most {most}",
        "What this policy launched before is still at work." if facts.under_way > most else "",
    )


def _budget_left(given: dict[str, Any], facts: Facts) -> Seen:
    needed = round(given["gpu_hours"] * MS_PER_HOUR)
    if facts.left_gpu_ms is None:
        return None, "no limit", f"at least {gpu_time(needed)}", "No hard limit of the week is set, so nobody can say what is left of it."
    words = f"{gpu_time(facts.left_gpu_ms)} of the week's budget are left."
    return facts.left_gpu_ms >= needed, gpu_time(facts.left_gpu_ms), f"at least {gpu_time(needed)}", words


def _results_at_least(given: dict[str, Any], facts: Facts) -> Seen:
    count = sum(result.value is not None for result in facts.results)
    return count >= given["count"], plural(count, "result", "results"), f"at least {given['count']}", ""


def _target_not_reached(given: dict[str, Any], facts: Facts) -> Seen:
    if facts.target is None:
        return None, "no target", "a target not reached yet", "The workspace has no objective with a target on this benchmark."
    if facts.best is None:
        return True, "no score", f"short of {number(facts.target)}", "Nothing has been measured yet."
    reached = facts.best >= facts.target if facts.direction == "maximize" else facts.best <= facts.target
    return not reached, number(facts.best), f"short of {number(facts.target)}", "The objective is reached." if reached else ""


def _best_score(given: dict[str, Any], facts: Facts) -> Seen:
    least, most = given.get("at_least"), given.get("at_most")
    bounds = [f"at least {number(least)}"] if least is not None else []
    bounds += [f"at most {number(most)}"] if most is not None else []
    required = " and ".join(bounds) or "a score"
    if facts.best is None:
        return None, "no score", required, "Nothing has been measured yet."
    holds = (least is None or facts.best >= least) and (most is None or facts.best <= most)
    return holds, number(facts.best), required, ""


def _queue_short(given: dict[str, Any], facts: Facts) -> Seen:
    if facts.waiting_runs is None:
        return None, "not known", f"at most {given['at_most']}", ""
    return facts.waiting_runs <= given["at_most"], plural(facts.waiting_runs, "run waits", "runs wait"), f"at most {given['at_most']}", ""


def _score_gain(given: dict[str, Any], facts: Facts) -> Seen:
    """How far the candidate is ahead of what stands, in the contract's direction; `sigmas` in standard errors of the difference, the two taken as
    independent."""
    least, sigmas = float(given.get("at_least", 0.0)), float(given.get("sigmas", 0.0))
    required = f"at least {number(least)}" + (f" and {sigmas:g} standard errors" if sigmas else "")
    candidate, standing = facts.candidate, facts.standing
    if candidate is None or candidate.value is None:
        return None, "no score", required, "Nothing was measured that could be put forward."
    if standing is None:
        return True, number(candidate.value, candidate.error), required, "Nothing stands under the name yet."
    if standing.artifact == candidate.artifact:
        return False, "the same artifact", required, "It stands there already."
    if standing.value is None:
        return None, "not comparable", required, f"{standing.label} has no score under the contract that holds; have it measured too."
    gain = candidate.value - standing.value if facts.direction == "maximize" else standing.value - candidate.value
    if not sigmas:
        return gain >= least, number(gain), required, ""
    if candidate.error is None or standing.error is None:
        return None, number(gain), required, "How sure the difference is nobody knows, since a standard error is missing."
    error = math.hypot(candidate.error, standing.error)
    return gain >= least and gain >= sigmas * error, number(gain, error), required, f"{gain / error:.1f} standard errors." if error else ""


def _cause_ended(given: dict[str, Any], facts: Facts) -> Seen:
    """Only a run or what was decided on a promotion ends in one of these ways; of anything else nobody can tell."""
    status, wanted = facts.cause.get("status", ""), " or ".join(given["as"]).replace("_", " ")
    if not status:
        return None, "neither a run nor a promotion", wanted, "What it is asked about is neither a run nor a promotion."
    return status in given["as"], status.replace("_", " "), wanted, ""


def _cel(given: dict[str, Any], facts: Facts) -> Seen:
    """The answer is among the facts: who evaluates, bounded and apart, is runs/expressions."""
    said = facts.said.get(given["expression"], {"holds": None, "fault": "It was not asked of these facts."})
    observed = {True: "true", False: "false", None: "no answer"}[said["holds"]]
    return said["holds"], observed, given["expression"], said["fault"] or ("" if said["holds"] else given.get("words", ""))


CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        Check("nothing_under_way", "Its earlier launches", _nothing_under_way, {"at_most": COUNT}),
        Check("budget_left", "Budget left", _budget_left, {"gpu_hours": HOURS}, ("gpu_hours",)),
        Check("results_at_least", "Enough results", _results_at_least, {"count": COUNT}, ("count",)),
        Check("target_not_reached", "Target not reached", _target_not_reached),
        Check("best_score", "Best score", _best_score, {"at_least": NUMBER, "at_most": NUMBER}),
        Check(
            "score_gain",
            "Better than what stands",
            _score_gain,
            {"at_least": NUMBER, "sigmas": {"type": "number", "minimum": 0, "maximum": 10}},
            is_of_candidate=True,
        ),
        Check("cause_ended", "How the run or the promotion ended", _cause_ended, {"as": ENDS}, ("as",)),
        Check(
            "cel",
            "Expression",
            _cel,
            {"expression": {"type": "string", "minLength": 1, "maxLength": 1024}, "words": WORDS},
            ("expression",),
        ),
        Check("queue_short", "Queue short", _queue_short, {"at_most": COUNT}, ("at_most",)),
        *MEMORY,
        *MEASURED,
        *GATES,
    )
}


def look(entry: dict[str, Any], facts: Facts) -> Fact:
    """One check of a document. A name that is not in the catalogue, as in a version of an older or newer labsite, is unknown."""
    check = CHECKS.get(entry["check"])
    if check is None:
        return Fact(
            entry["check"], entry["check"], Verdict.UNKNOWN, "no such check", "a check of the catalogue", "Nobody can say whether it holds."
        )
    return check(entry, facts)
