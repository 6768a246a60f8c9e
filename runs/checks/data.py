"""Checks of what the making run has read: licences, what may leave, and that nothing was read unsaid."""

from runs.checks.candidate import Candidate
from runs.checks.gate_chain import MOST_DATASETS, MOST_RUNS, licence_of, runs_in, undeclared_by, versions_in
from runs.checks.held_out import doubts_of
from runs.eligibility import NAMED, Fact, Link, Verdict, linked
from runs.models import Run, RunInput
from runs.queries.egress import strictest_of
from runs.queries.lineage import Lineage
from runs.queries.lineage_edges import NodeKind
from runs.queries.trace_gaps import lost_inputs
from runs.queries.verdict import State, verdicts_of
from workspaces import licences
from workspaces.models import Dataset, DatasetVersion, Pool
from workspaces.queries.withdrawal import standing_on
from workspaces.units import plural

TOO_MUCH = "It rests on more than can be looked at."


def licences_known(candidate: Candidate) -> Fact:
    """Has every dataset version that it was made of, however far back, a licence that SPDX can name? The gate of a policy asks the same chain."""
    name, required = "Licence of its data", "an SPDX expression for each dataset"
    reached = candidate.made_of
    versions = versions_in(reached)
    if not reached.is_whole or len(versions) > MOST_DATASETS:
        return Fact("licence", name, Verdict.UNKNOWN, "too much", required, TOO_MUCH)
    if not versions:
        return Fact("licence", name, Verdict.PASS, "no dataset", required, "It was made of no dataset.")
    said_of = {f"{version.dataset.slug}@{version.number}": licence_of(version) for version in versions}
    unknown = {label: licence for label, licence in said_of.items() if not licences.is_known(licence)}
    evidence = linked([Link("dataset", label.partition("@")[0], label) for label in unknown or said_of])
    if unknown:
        said = ", ".join(f"{label} ({licence[:40] or 'none given'})" for label, licence in [*unknown.items()][:NAMED])
        words = (
            f"Of {said} the licence is not known. Write its SPDX expression, such as CC-BY-4.0 or LicenseRef-our-contract, on the dataset."
        )
        return Fact("licence", name, Verdict.UNKNOWN, f"{len(unknown)} of {len(versions)} not known", required, words, **evidence)
    found = sorted(set(said_of.values()))
    return Fact("licence", name, Verdict.PASS, ", ".join(found)[:200], required, "", **evidence)


def egress_known(candidate: Candidate) -> Fact:
    """Of what class is the strictest thing that it was made of, however far back? It says where the artifact may go; each class may be promoted."""
    reached = candidate.made_of
    found = Dataset.Egress(strictest_of(reached.of(NodeKind.DATASET_VERSION)) if reached.is_whole else Dataset.Egress.RESTRICTED)
    words = f"The strictest thing that it was made of, however far back, is {found.label}."
    if not reached.is_whole:
        words = f"{TOO_MUCH} So it counts as {found.label}."
    return Fact("egress", "What may leave with it", Verdict.PASS, found.value, "a class for all it was made of", words)


def nothing_unsaid(candidate: Candidate) -> Fact:
    """Could it, and each run behind it, read only what it named, and is each link on record down to the sources? Where nothing kept a run apart,
    nobody can tell, unless an owner answers for that; a chain that has lost a link leads nowhere. The gate of a policy asks the same chain."""
    name, required = "Inputs declared", "no run behind it could read anything else"
    reached = candidate.made_of
    lost = _lost(reached)
    if lost is not None:
        return lost
    behind = runs_in(reached)
    found = undeclared_by(behind)
    observed = plural(RunInput.objects.filter(run=candidate.run).count(), "input", "inputs") + " named"
    evidence = (Link("run", candidate.run.public_id, candidate.run.name),)
    if found["count"]:
        words = (
            f"Runs behind it have read what they had not declared: {', '.join(found['named'][:NAMED])}. Run them again with that declared."
        )
        return Fact("inputs", name, Verdict.FAIL, f"{found['count']} not declared", required, words, evidence)
    if not reached.is_whole or len(behind) > MOST_RUNS:
        return Fact("inputs", name, Verdict.UNKNOWN, "too much", required, TOO_MUCH, evidence)
    if found["open"]:
        apart = tuple(Link("run", entry["id"], entry["label"]) for entry in found["examples"])
        named = ", ".join(entry["label"] for entry in found["examples"])
        words = f"Without isolation ran {named}, so it could read what it did not name. Run it again on a pool that keeps runs apart."
        return Fact("inputs", name, Verdict.UNKNOWN, f"{found['open']} of {len(behind)} not apart", required, words, apart)
    words = _answered_for(candidate)[1] if candidate.run.isolation == Pool.Isolation.NONE else ""
    return Fact("inputs", name, Verdict.PASS, observed, required, words or "It was made by runs that name what they read.", evidence)


def _lost(reached: Lineage) -> Fact | None:
    """What stands in the way where a run behind it was frozen with an input of which no row is left."""
    lost = lost_inputs(reached.of(NodeKind.RUN))
    if not lost:
        return None
    runs = list(Run.objects.filter(pk__in=list(lost)).only("name", "number").order_by("number")[:NAMED])
    evidence = tuple(Link("run", run.public_id, run.name) for run in runs)
    named = "; ".join(f"{run.name} has lost {', '.join(lost[run.pk][:NAMED])}" for run in runs)
    words = f"What it was made of cannot be traced any more: {named}. Run that again with its inputs."
    count = sum(map(len, lost.values()))
    return Fact("inputs", "Inputs declared", Verdict.FAIL, plural(count, "link gone", "links gone"), "each link on record", words, evidence)


def nothing_held_out(candidate: Candidate) -> Fact:
    """Is all data that it was made of, however far back, checked against the holdouts here and clean, or called so by a person? What runs read as
    an artifact counts too, where it is a holdout's or was made of one."""
    name, required = "Trained on no holdout", "each version clean"
    reached = candidate.made_of
    versions = DatasetVersion.objects.filter(pk__in=reached.of(NodeKind.DATASET_VERSION)).exclude(role=DatasetVersion.Role.HOLDOUT)
    rows = list(versions.select_related("dataset").order_by("dataset__slug", "number"))
    if not reached.is_whole:
        return Fact("overlap", name, Verdict.UNKNOWN, "too much", required, TOO_MUCH)
    doubts = doubts_of(reached, itself=[candidate.artifact.pk])
    if not rows and not doubts:
        return Fact("overlap", name, Verdict.PASS, "no dataset", required, "It was made of no dataset.")
    verdicts = verdicts_of(rows)
    bad = [row for row in rows if not verdicts[row.pk].is_promotable]
    links = [Link("dataset", row.dataset.slug, f"{row.dataset.slug}@{row.number}") for row in (bad if bad or doubts else rows)]
    evidence = linked([*links, *(Link("artifact", doubt.id, doubt.label) for doubt in doubts)])
    if not bad and not doubts:
        return Fact("overlap", name, Verdict.PASS, plural(len(rows), "version clean", "versions clean"), required, "", **evidence)
    said = [(f"{row.dataset.slug}@{row.number}", verdicts[row.pk].state.value, verdicts[row.pk].reason) for row in bad]
    said += [(doubt.label, doubt.state, doubt.reason) for doubt in doubts]
    words = " ".join(f"{label} is {state}: {reason}" for label, state, reason in said[:NAMED])
    verdict = Verdict.FAIL if any(state in (State.CONTAMINATED, State.SUSPICIOUS) for _, state, _ in said) else Verdict.UNKNOWN
    return Fact("overlap", name, verdict, f"{len(said)} of {len(rows) + len(doubts)} not clean", required, words, **evidence)


def nothing_withdrawn(candidate: Candidate) -> Fact:
    """Does it, or its score, rest on something withdrawn?"""
    name, required = "Rests on nothing withdrawn", "no withdrawal that holds"
    things = [(NodeKind.ARTIFACT, candidate.artifact.pk)]
    if candidate.score is not None:
        things.append((NodeKind.EVALUATION, candidate.score.pk))
    marks = {mark.pk: mark for found in standing_on(things).values() for mark in found}
    if not marks:
        return Fact("withdrawn", name, Verdict.PASS, "none", required)
    evidence = linked([Link("withdrawal", mark.public_id, mark.subject_label) for mark in marks.values()])
    words = "; ".join(f"{mark.subject_label} is withdrawn: {mark.reason}" for mark in list(marks.values())[:NAMED])
    return Fact("withdrawn", name, Verdict.FAIL, plural(len(marks), "withdrawal", "withdrawals"), required, words, **evidence)


def ran_apart(candidate: Candidate) -> Fact:
    """Was the run kept apart from other files of the machine?"""
    isolation = candidate.run.isolation
    required, observed = "some isolation", str(Pool.Isolation(isolation).label)
    evidence = (Link("pool", candidate.run.frozen["pool"]["slug"], candidate.run.frozen["pool"]["slug"]),)
    if isolation != Pool.Isolation.NONE:
        return Fact("isolation", "Run kept apart", Verdict.PASS, observed, required, "", evidence)
    is_answered, words = _answered_for(candidate)
    return Fact("isolation", "Run kept apart", Verdict.PASS if is_answered else Verdict.FAIL, observed, required, words, evidence)


def _answered_for(candidate: Candidate) -> tuple[bool, str]:
    """Did an owner accept runs without isolation for the contract that it ran under? And what to say of it."""
    contract = candidate.run.contract
    if contract.accepts_no_isolation_reason:
        return (
            True,
            f"It ran without isolation; an owner accepted that for contract {contract.version}: {contract.accepts_no_isolation_reason}",
        )
    return False, "It ran without isolation, so it could read what it did not name. Run it again on a pool that keeps runs apart."
