"""What gates look at that compare samples or games: read from the files that runs have left, counted once, and kept small with a decision.

Who is compared is chosen here and not by whoever puts something forward: of each side the newest measurement under the contract that holds, and the
games of the two that its arena counts.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from runs import paired
from runs.calibration import expected_calibration_error
from runs.checks.candidate import Candidate, beside_holdout, newest_score
from runs.models import Artifact, Evaluation
from runs.policy.measured import BINS, key_of
from runs.queries.arena import games_between
from runs.queries.lineage_edges import NodeKind
from runs.queries.pairs import LOST
from runs.queries.samples import compare, samples_of
from runs.sample_results import Sample, Status
from workspaces.models import Agent, Benchmark, Contract, NotFound
from workspaces.queries.registry import current_contract

COMPARING = ("no_holdout_regression", "calibrated_disagreement_gain")


def samples_for(checks: Iterable[Mapping[str, Any]], candidate: Candidate) -> dict[str, Any]:
    """What each comparing check of a document looks at, by its name and whom it compares."""
    found: dict[str, Any] = {}
    for given in checks:
        name = given["check"]
        if name in COMPARING and key_of(given) not in found.get(name, {}):
            found.setdefault(name, {})[key_of(given)] = _compared(given, candidate, is_calibrated=name == COMPARING[1])
        elif name == "elo_sequential" and name not in found:
            found[name] = _games(candidate)
    return found


# --- Samples ------------------------------------------------------------------------------------------------------------------------------


def _compared(given: Mapping[str, Any], candidate: Candidate, *, is_calibrated: bool) -> dict[str, Any]:
    try:
        benchmark = Benchmark.objects.find(given["benchmark"]) if "benchmark" in given else candidate.benchmark
        over = Agent.objects.find(given["over"]) if "over" in given else None
    except NotFound as error:
        return {"refusal": f"There is no such {error.noun} here."}
    contract = current_contract(benchmark.pk)
    if contract is None:
        return {"refusal": f"{benchmark.name} has no contract yet."}
    mine = newest_score(candidate.artifact, contract)
    if over is not None:
        other, against = _newest_of(over, candidate, contract), over.slug
    elif candidate.standing is not None:
        other, against = newest_score(candidate.standing.artifact, contract), _title(candidate.standing.artifact)
    else:
        return {"is_first": True}
    found: dict[str, Any] = {
        "benchmark": benchmark.slug,
        "contract": contract.version,
        "set": f"{contract.holdout.dataset.slug}@{contract.holdout.number}" if contract.holdout else "",
        "frozen_at": contract.holdout.created_at.isoformat() if contract.holdout else "",
        "trained_at": candidate.run.created_at.isoformat(),
        "against": against,
        "evaluations": [{"id": score.public_id, "label": score.run.name} for score in (mine, other) if score is not None],
    }
    refusal = _unfit(mine, "It", contract) or _unfit(other, against, contract)
    if refusal or mine is None or other is None:
        return found | {"refusal": refusal}
    try:
        return found | _difference(mine, other) | (_calibration(mine) if is_calibrated else {})
    except LOST:
        return found | {"refusal": "The results for each sample cannot be read from the store now."}


def _unfit(score: Evaluation | None, whose: str, contract: Contract) -> str:
    """Why a score says nothing sample by sample, in a sentence; empty where it does."""
    if score is None:
        return f"{whose} has no score under contract {contract.version} of {contract.benchmark.name}; have it measured."
    if score.subject_artifact_id is None:
        return f"{whose} was measured by nothing but the run that made it."
    if beside := beside_holdout(score, contract):
        return f"{whose} was not measured on the holdout. {beside}"
    if score.samples_artifact is None or score.samples_artifact.removed_at is not None:
        return f"{whose} was measured without results for each sample that are kept."
    return ""


def _difference(mine: Evaluation, other: Evaluation) -> dict[str, Any]:
    """The paired bootstrap, with what makes it the same whenever it is done again: the two files by hash, the seed, the count of resamples."""
    compared = compare(mine, other)
    if compared.found is None:
        return {"refusal": compared.refusal}
    return {
        "files": [score.samples_artifact.blob.sha256 for score in (mine, other)],
        "seed": paired.SEED,
        "resamples": paired.RESAMPLES,
        "pairs": compared.found.pairs,
        "gain": compared.gain,
        "lower": compared.least_gain,
        "only": [compared.only_candidate, compared.only_champion],
    }


def _calibration(score: Evaluation) -> dict[str, Any]:
    """None where an answer says no confidence, or is not simply right or wrong. What was abstained from or erred is no answer, and counts as wrong in
    the gain."""
    answers, unsure, is_binary = [], 0, True
    for row in samples_of(score):
        if not isinstance(row, Sample) or row.status != Status.OK:
            continue
        unsure += row.confidence is None
        is_binary = is_binary and row.score in (0.0, 1.0)
        answers.append((row.confidence or 0.0, row.score == 1.0))
    if unsure or not is_binary:
        return {"calibration": None, "unsure": unsure}
    return {"calibration": {str(bins): expected_calibration_error(answers, bins) for bins in BINS}, "unsure": 0}


def _newest_of(agent: Agent, candidate: Candidate, contract: Contract) -> Evaluation | None:
    """The newest score among what this agent made and the candidate was made of: its own teacher, not somebody's."""
    reached = candidate.made_of
    made = Artifact.objects.filter(pk__in=reached.of(NodeKind.ARTIFACT), run__agent=agent, deleted_at=None).exclude(
        pk=candidate.artifact.pk
    )
    scores = (newest_score(artifact, contract) for artifact in made.select_related("run").order_by("-created_at", "-pk")[:20])
    return max((score for score in scores if score is not None), key=lambda score: (score.created_at, score.pk), default=None)


# --- Games --------------------------------------------------------------------------------------------------------------------------------


def _games(candidate: Candidate) -> dict[str, Any]:
    """Pairs of games between the two, by the candidate's points. Labsite gave these runs both files: who played is not the run's word."""
    if candidate.standing is None:
        return {"is_first": True}
    against = _title(candidate.standing.artifact)
    if candidate.contract is None:
        return {
            "against": against,
            "batches": [],
            "refusal": f"{candidate.benchmark.name} has no contract yet, under which games would count.",
        }
    mine, other = candidate.artifact, candidate.standing.artifact
    games, is_cut = games_between(candidate.contract, mine, other, but=candidate.run)
    batches = [
        {"run": one.file.run.public_id, "label": one.file.run.name, "sha256": one.file.blob.sha256, "pairs": list(one.pairs)}
        for one in games
    ]
    hashes = {"candidate": mine.blob.sha256, "champion": other.blob.sha256}
    return {"against": against, **hashes, "batches": batches, "is_cut": is_cut}


def _title(artifact: Artifact) -> str:
    return f"{artifact.name or artifact.path} of {artifact.run.name}"[:300]
