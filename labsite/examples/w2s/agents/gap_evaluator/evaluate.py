"""Repeat a weak-to-strong round over many splits and measure the performance gap recovered, with a bootstrap interval.

For each split seed the training records are halved by class: on one half a teacher is trained, on the other it labels and a student learns from
its labels; the ceiling is the same student on the true labels of that half. All are measured on the same holdout, which no split touches.
Inputs: a student's model and its teacher's (both for their settings alone), the two training tables, the holdout. With `shuffle_labels` the
student gets the weak labels in another order: the control. What it scores is how far it is above chance, which should be 0; a gap recovered of
something that knows nothing is a large negative number that says how far chance is below the teacher.
"""

import csv
import json
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
from gap import Estimate, above_chance, gap_recovered, recovered
from measures import classes
from models import Model, teacher_and_student
from run_folder import Job, JobError, run
from sample_results import SampleResult, write_samples
from students import last_of, read_settings, with_truth
from tables import Table, need_table, refuse_overlap
from teacher import epochs_of, read_teacher

PARAMETERS = ("splits", "resamples", "shuffle_labels", "min_gap", "benchmark")
PARTS = ("weak", "student", "ceiling")


def main(job: Job) -> None:
    job.allow(*PARAMETERS)
    splits, resamples = job.whole("splits", 24, 20, 1000), job.whole("resamples", 2000, 100, 100_000)
    min_gap, benchmark = job.number("min_gap", 0.1, 0, 1), job.text("benchmark", "gap-recovered")
    teacher, student = teacher_and_student(job)
    tables = [need_table(job, role, student.target) for role in ("train", "student_train")]
    holdout = need_table(job, "holdout", student.target)
    refuse_overlap(tables[0].record_ids, tables[1])
    for table in tables:
        refuse_overlap(table.record_ids, holdout)
    rights = repeat(job, teacher, student, tables, holdout, splits)
    weak, learnt, ceiling = (rights[:, index] for index in range(3))
    gap = float(ceiling.mean() - weak.mean())
    if gap < min_gap:
        raise JobError(
            f"the ceiling is {100 * gap:.1f} points above the teacher; {100 * min_gap:g} are wanted, or there is nothing to recover"
        )
    estimate = gap_recovered(weak, learnt, ceiling, resamples=resamples, random=np.random.default_rng([job.seed, 1]))
    chance = above_chance(learnt, holdout.labels, resamples=resamples, random=np.random.default_rng([job.seed, 2]))
    write_splits(job, rights)
    report(job, estimate, chance, gap, rights, student, benchmark)


def repeat(job: Job, teacher: Model, student: Model, tables: list[Table], holdout: Table, splits: int) -> np.ndarray:
    """Who told which held-out record apart rightly: splits by teacher, student and ceiling by records."""
    teaching, settings = read_teacher(job, teacher.params), read_settings(job, student.family, student.params)
    shuffled = job.yes("shuffle_labels", False)
    columns = student.features
    rows, labels = np.concatenate([table.select(columns) for table in tables]), np.concatenate([table.labels for table in tables])
    seen = np.concatenate([table.select(teaching.features) for table in tables])
    found = np.empty((splits, 3, len(holdout.labels)), bool)
    for split in range(splits):
        random = np.random.default_rng([job.seed, 0, split])
        first, second = halves(labels, random)
        *_, weak = epochs_of(teaching, seen[first], labels[first], [job.seed, 3, split])
        given = classes(weak.probabilities(seen[second]))
        given = random.permutation(given) if shuffled else given
        learnt = last_of(settings, rows[second], given)
        ceiling = last_of(with_truth(settings), rows[second], labels[second])
        asked = holdout.select(teaching.features), holdout.select(columns), holdout.select(columns)
        for index, (classifier, features) in enumerate(zip((weak, learnt, ceiling), asked, strict=True)):
            found[split, index] = classes(classifier.probabilities(features)) == holdout.labels
        shares = found[split].mean(axis=1)
        for name, share in zip(PARTS, shares, strict=True):
            job.metric(f"{name}_accuracy", share, split + 1)
        job.metric("split_gap_recovered", recovered(*shares), split + 1)
        job.event("progress", done=split + 1, total=splits, text=f"split {split + 1}: " + ", ".join(f"{share:.3f}" for share in shares))
    return found


def halves(labels: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of the records, both with the same share of each class."""
    shuffled = [random.permutation(np.flatnonzero(labels == label)) for label in (0, 1)]
    parts = [(rows[: len(rows) // 2], rows[len(rows) // 2 :]) for rows in shuffled]
    first, second = (np.sort(np.concatenate(part)) for part in zip(*parts, strict=True))
    return first, second


def write_splits(job: Job, rights: np.ndarray) -> None:
    with job.output("splits.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["split", *(f"{name}_accuracy" for name in PARTS), "gap_recovered"])
        for number, shares in enumerate(rights.mean(axis=2), start=1):
            rows.writerow([number, *(repr(float(share)) for share in shares), repr(float(recovered(*shares)))])
    job.event("artifact", path="outputs/splits.csv", name="splits", kind="table", metadata={"splits": len(rights)})


def split_results(rights: np.ndarray, control: bool) -> Iterator[SampleResult]:
    """A split is a sample: the teacher's and the ceiling's accuracy are what is true of it, the student's is its output."""
    for number, (weak, student, ceiling) in enumerate(rights.mean(axis=2), start=1):
        truth = {"weak": float(weak), "ceiling": float(ceiling)}
        score = float(student) if control else float(recovered(weak, student, ceiling))
        yield SampleResult(f"split-{number}", truth, float(student), score)


def report(job: Job, estimate: Estimate, chance: Estimate, gap: float, rights: np.ndarray, student: Model, benchmark: str) -> None:
    means = dict(zip(PARTS, (float(mean) for mean in rights.mean(axis=(0, 2))), strict=True))
    control = job.yes("shuffle_labels", False)
    job.metric("gap_recovered_low", estimate.low, 0)
    job.metric("gap_recovered_high", estimate.high, 0)
    job.metric("ceiling_minus_teacher", gap, 0)
    for name, value in (("above_chance", chance.value), ("above_chance_low", chance.low), ("above_chance_high", chance.high)):
        job.metric(name, value, 0)
    document = {
        "schema": "w2s.gap.v1", "family": student.family, "shuffled_labels": control, "splits": len(rights), "records": rights.shape[2],
        "mean_accuracy": means, "ceiling_minus_teacher": gap, "gap_recovered": asdict(estimate), "above_chance": asdict(chance),
    }  # fmt: skip
    job.output("gap.json").write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    job.event("artifact", path="outputs/gap.json", name="gap", kind="report", metadata={"splits": len(rights)})
    metric, measured = ("above_chance", chance) if control else ("gap_recovered", estimate)
    file = write_samples(job, split_results(rights, control))
    job.event(
        "score", benchmark=benchmark, metric=metric, value=measured.value, stderr=measured.error, samples=len(rights), samples_file=file
    )
    if control:
        words = f"Control: the {student.family} student of shuffled labels is {chance} above chance over {len(rights)} splits; 0 is to be expected."
    else:
        gap_words = f"the gap from {means['weak']:.3f} to {means['ceiling']:.3f} over {len(rights)} splits"
        words = f"The {student.family} student recovers {estimate} of {gap_words}."
    evidence = [{"benchmark": benchmark, "metric": metric, "value": measured.value, "low": measured.low, "high": measured.high}]
    job.event("memory_write", collection="gap-findings", kind="finding", body=words, evidence=evidence)
    print(f"{words} Above chance: {chance}.", flush=True)


run(main)
