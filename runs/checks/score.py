"""Checks of what was measured: a score under the contract that holds now, and no step back from what stands."""

import math
from dataclasses import replace

from runs.checks.candidate import Candidate, Place, beside_holdout
from runs.eligibility import Fact, Link, Verdict
from runs.models import Evaluation
from runs.queries.ranking import FINITE
from runs.queries.scoreboard import scores_under
from runs.queries.seed_board import place_of
from runs.queries.ties import ahead
from workspaces.models import Contract
from workspaces.units import number, plural


def has_score(candidate: Candidate) -> Fact:
    """Was it measured under the benchmark's current contract, with a number as result?"""
    contract, score = candidate.contract, candidate.score
    board = Link("benchmark", candidate.benchmark.slug, candidate.benchmark.name)
    required = f"a number under contract {contract.version} of {candidate.benchmark.name}" if contract else "a contract"
    if contract is None:
        words = f"{candidate.benchmark.name} has no contract yet; publish one, then have the artifact measured."
        return Fact("score", "Measured", Verdict.UNKNOWN, "no contract", required, words, (board,))
    if score is None:
        words = f"Nothing has measured it under contract {contract.version}, which holds now; launch an evaluation that reads it."
        return Fact("score", "Measured", Verdict.UNKNOWN, "no score", required, words, (board,))
    evidence = (Link("run", score.run.public_id, score.run.name), board)
    observed = f"{contract.metric} {number(score.value, score.standard_error)}"
    if not math.isfinite(score.value):
        words = f"{score.run.name} measured {score.value}, which is no number that ranks."
        return Fact("score", "Measured", Verdict.FAIL, observed, required, words, evidence)
    beside = beside_holdout(score, contract)
    if beside:
        return Fact("score", "Measured", Verdict.UNKNOWN, observed, f"{required}, on its holdout", beside, evidence)
    by = "reported by the run that made it" if score.run_id == candidate.artifact.run_id else f"measured by {score.run.name}"
    samples = f", {score.samples:,} samples" if score.samples else ""
    words = f"Under contract {contract.version} of {candidate.benchmark.name}, {by}{samples}."
    return Fact("score", "Measured", Verdict.PASS, observed, required, words, evidence, note=candidate.note)


def placed(candidate: Candidate) -> Candidate:
    """The candidate with the place of its score, for the note of `has_score`. It reads the whole board: not for one who holds a lock."""
    contract, score = candidate.contract, candidate.score
    if contract is None or score is None or not math.isfinite(score.value):
        return candidate
    return replace(candidate, place=Place(score.pk, _place(contract, score)))


def no_step_back(candidate: Candidate) -> Fact:
    """Is it at least as good as what stands under the name, by the whole value in the contract's direction?"""
    name, required = f"No worse than {candidate.name} now", "the difference is not below 0"
    standing, contract = candidate.standing, candidate.contract
    if standing is None:
        return Fact("comparison", name, Verdict.PASS, "nothing stands", required, f"Nothing is promoted as {candidate.name} yet.")
    evidence = (Link("promotion", standing.public_id, standing.label),)
    if standing.artifact_id == candidate.artifact.pk:
        return Fact("comparison", name, Verdict.FAIL, "the same artifact", required, "This artifact stands there already.", evidence)
    mine, other = candidate.score, candidate.standing_score
    if contract is None or mine is None or not math.isfinite(mine.value):
        return Fact("comparison", name, Verdict.UNKNOWN, "not measured", required, "Without a score there is nothing to compare.", evidence)
    if other is None or not math.isfinite(other.value):
        words = f"What stands has no score under contract {contract.version}; have it measured too, or withdraw it."
        return Fact("comparison", name, Verdict.UNKNOWN, "not comparable", required, words, evidence)
    for whose, measured in (("It", mine), ("What stands", other)):
        beside = beside_holdout(measured, contract)
        if beside:
            words = f"{whose} was not measured on the holdout. {beside}"
            return Fact("comparison", name, Verdict.UNKNOWN, "not comparable", required, words, evidence)
    return _compared(name, required, contract, mine, other, evidence)


def _compared(
    name: str, required: str, contract: Contract, mine: Evaluation, other: Evaluation, evidence: tuple[Link, ...]
) -> Fact:  # fmt: skip
    raw = mine.value - other.value
    ahead = raw if contract.direction == Contract.Direction.MAXIMIZE else -raw
    error = _error(mine, other)
    sign = "+" if ahead >= 0 else "\u2212"
    observed = f"{sign}{number(abs(ahead), error)}"
    scores = f"{number(mine.value, mine.standard_error)} against {number(other.value, other.standard_error)}"
    words = f"{scores}, {contract.get_direction_display()}: {observed}"
    if error:
        words += f", {abs(ahead) / error:.1f} standard errors" + ("; under 2 it may be chance" if abs(ahead) < 2 * error else "")
    else:
        words += "; how sure that is nobody knows, since a standard error is missing"
    verdict = Verdict.PASS if ahead >= 0 else Verdict.FAIL
    return Fact("comparison", name, verdict, observed, required, f"{words}.", (*evidence, Link("run", other.run.public_id, other.run.name)))


def _error(mine: Evaluation, other: Evaluation) -> float | None:
    """Standard error of the difference, the two taken as independent; None where one of them is not known."""
    errors = (mine.standard_error, other.standard_error)
    if any(error is None or not math.isfinite(error) for error in errors):
        return None
    return math.hypot(*(error for error in errors if error is not None)) or None


def _place(contract: Contract, score: Evaluation) -> str:
    """Where the score stands among all that have a rank, at this moment: by its row of seeds, where the contract ranks over them."""
    if contract.over_seeds:
        return _row_place(contract, score)
    rows = scores_under(contract).filter(FINITE)
    return f"rank {ahead(rows, contract, score).count() + 1} of {rows.count()} when it was looked at"


def _row_place(contract: Contract, score: Evaluation) -> str:
    place = place_of(scores_under(contract), contract, score)
    if place is None:
        return "in no row of the board when it was looked at"
    runs = plural(place.count, "run", "runs")
    if place.rank is None:
        return f"its row of {runs} had no rank when it was looked at, since one of the scores is no number that can be averaged"
    return f"by the {contract.over_seeds} of {runs}, {number(place.value)}, rank {place.rank} of {place.total} when it was looked at"
