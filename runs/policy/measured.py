"""Gates of what was measured, sample by sample and game by game, against what stands. Pure over what `runs.checks.gate_samples` has found out.

`no_holdout_regression`: the lower 95 % bound of a paired bootstrap of (candidate - champion) over the samples of the holdout is not below -epsilon.
`calibrated_disagreement_gain`: on a set that was frozen before the training, the lower 95 % bound of the gain is above 0, and the expected
calibration error within its limit (Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks", 2017).
`elo_sequential`: a sequential test over pairs of games accepts that the candidate is stronger (`runs.policy.sequential`).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from runs.eligibility import Link
from runs.policy.check import NAME, Check, Seen, SeenWith
from runs.policy.facts import Facts
from runs.policy.sequential import LEAST_RATE, MOST_ELO, MOST_RATE, answer
from workspaces.units import number, plural

BINS = (10, 15)
SHARE = {"type": "number", "minimum": 0, "maximum": 1}
RATE = {"type": "number", "minimum": LEAST_RATE, "maximum": MOST_RATE}
ELO = {"type": "number", "minimum": -MOST_ELO, "maximum": MOST_ELO}


def key_of(given: Mapping[str, Any]) -> str:
    """Which comparison a check looks at: the benchmark, and whom it is held against where that is not what stands."""
    return " over ".join(part for part in (given.get("benchmark", ""), given.get("over", "")) if part)


def _no_holdout_regression(given: dict[str, Any], facts: Facts) -> Seen | SeenWith:
    epsilon = float(given.get("epsilon", 0.0))
    required = f"at least {number(-epsilon) if epsilon else '0'}, with 95 % confidence"
    found = facts.gates.get("no_holdout_regression", {}).get(key_of(given))
    if found is None:
        return None, "not looked at", required, "What was measured on the holdout is not among the facts."
    if found.get("is_first"):
        return True, "nothing stands", required, "Nothing stands under the name yet, so there is nothing to fall behind."
    fault = _not_compared(found)
    if fault:
        return None, "not comparable", required, fault, _evidence(found)
    words = (
        f"On {plural(found['pairs'], 'sample', 'samples')} of {found['set'] or found['benchmark']} under contract {found['contract']} it differs by "
        f"{number(found['gain'])} from {found['against']}; 95 % of the paired bootstrap lie above {number(found['lower'])}."
    )
    return found["lower"] >= -epsilon, number(found["lower"]), required, words, _evidence(found)


def _calibrated_disagreement_gain(given: dict[str, Any], facts: Facts) -> Seen | SeenWith:
    bins, most = int(given.get("bins", 15)), float(given["ece_at_most"])
    required = f"above 0, with 95 % confidence, and a calibration error of at most {number(most)}"
    found = facts.gates.get("calibrated_disagreement_gain", {}).get(key_of(given))
    if found is None:
        return None, "not looked at", required, "What was measured where weak and strong differ is not among the facts."
    if found.get("is_first"):
        words = "Nothing stands under the name yet; say by `over` which agent's work it is to be better than."
        return None, "nothing stands", required, words
    fault = _not_compared(found) or _not_frozen_before(found)
    if fault:
        return None, "not comparable", required, fault, _evidence(found)
    if datetime.fromisoformat(found["frozen_at"]) >= datetime.fromisoformat(found["trained_at"]):
        words = f"{found['set']} was frozen {_day(found['frozen_at'])}, the run that made it was asked for {_day(found['trained_at'])}."
        return False, "frozen too late", required, f"{words} It may have been chosen by what it shows.", _evidence(found)
    gain = f"{number(found['gain'])} over {found['against']} on {plural(found['pairs'], 'sample', 'samples')}"
    words = f"It gains {gain} of {found['set']}; 95 % of the paired bootstrap lie above {number(found['lower'])}."
    if found["lower"] <= 0:
        return False, number(found["lower"]), required, words, _evidence(found)
    error = (found.get("calibration") or {}).get(str(bins))
    if error is None:
        silent = plural(found.get("unsure", 0), "answer says", "answers say")
        words += f" How sure it was nobody can tell: {silent} no confidence." if found.get("unsure") else " It says no confidence."
        return None, "calibration not known", required, words, _evidence(found)
    words += f" Its expected calibration error over {bins} bins is {number(error, places=3)}."
    observed = f"{number(found['lower'])}, calibration error {number(error, places=3)}"
    return error <= most, observed, required, words, _evidence(found)


def _elo_sequential(given: dict[str, Any], facts: Facts) -> Seen | SeenWith:
    elo0, elo1 = float(given.get("elo0", 0.0)), float(given["elo1"])
    alpha, beta = float(given.get("alpha", 0.05)), float(given.get("beta", 0.05))
    rates = f"error rates {alpha:g} and {beta:g}"
    required = f"{elo1:+g} Elo accepted against {elo0:+g}, {rates}"
    found = facts.gates.get("elo_sequential")
    if found is None:
        return None, "not looked at", required, "Games against what stands are not among the facts."
    if found.get("is_first"):
        return True, "nothing stands", required, "Nothing stands under the name yet, so there is nobody to beat."
    evidence = tuple(Link("run", entry["run"], entry["label"]) for entry in found["batches"][-5:])
    if not any(sum(entry["pairs"]) for entry in found["batches"]):
        words = f"No run that is scored under the contract has played pairs of games between it and {found['against']}."
        return None, "no games", required, found.get("refusal") or words
    said = answer((entry["pairs"] for entry in found["batches"]), elo0, elo1, alpha, beta)
    observed = f"log-likelihood ratio {said.ratio:.2f} of ({said.low:.2f}, {said.high:.2f})"
    score = f"After {plural(said.pairs, 'pair', 'pairs')} of games with {number(said.points)} points of {2 * said.pairs} against {found['against']}"
    if not said.accepted:
        more = "these are all that are read" if found.get("is_cut") else "more games will tell"
        return None, observed, required, f"{score} neither is accepted; {more}.", evidence
    if said.accepted == "H0":
        return False, observed, required, f"{score} no more than {elo0:+g} Elo is accepted.", evidence
    return True, observed, required, f"{score} at least {elo1:+g} Elo is accepted.", evidence


def _elo_faults(given: dict[str, Any]) -> list[str]:
    elo0, elo1 = given.get("elo0", 0), given["elo1"]
    return [] if elo0 < elo1 else [f"elo0 is {elo0:g} and elo1 {elo1:g}; elo1 must be the larger."]


def _not_compared(found: Mapping[str, Any]) -> str:
    """Why the two cannot be held against each other, in a sentence; empty where they can."""
    if found.get("refusal"):
        return str(found["refusal"])
    mine, others = found["only"]
    if mine or others:
        return f"They were not measured on the same samples: {mine:,} has it alone, {others:,} {found['against']} alone."
    return ""


def _not_frozen_before(found: Mapping[str, Any]) -> str:
    return (
        ""
        if found.get("frozen_at") and found.get("trained_at")
        else "The contract names no set that was frozen, so nobody knows since when."
    )


def _evidence(found: Mapping[str, Any]) -> tuple[Link, ...]:
    return tuple(Link("evaluation", entry["id"], entry["label"]) for entry in found.get("evaluations", ()))


def _day(instant: str) -> str:
    return instant[:16].replace("T", " ")


MEASURED = (
    Check(
        "no_holdout_regression",
        "No step back on the holdout",
        _no_holdout_regression,
        {"benchmark": NAME, "epsilon": {"type": "number", "minimum": 0}},
        is_of_candidate=True,
    ),
    Check(
        "calibrated_disagreement_gain",
        "Calibrated gain where weak and strong differ",
        _calibrated_disagreement_gain,
        {"benchmark": NAME, "over": NAME, "ece_at_most": SHARE, "bins": {"enum": list(BINS)}},
        ("benchmark", "ece_at_most"),
        is_of_candidate=True,
    ),
    Check(
        "elo_sequential",
        "Stronger than what stands",
        _elo_sequential,
        {"elo0": ELO, "elo1": ELO, "alpha": RATE, "beta": RATE},
        ("elo1",),
        _elo_faults,
        is_of_candidate=True,
    ),
)
