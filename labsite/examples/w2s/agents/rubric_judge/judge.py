"""Judge weak labels by a stated rubric, and sort them by the stated rule for trusted examples; see rubric.py and trust.py.

Inputs: one table of weak labels, the rubric, the rule, and every holdout, so that nothing of one is trusted. Writes a verdict for each record, the
trusted ones as a piece of a dataset, and those that wait for a person. A person's review is a run with the ids that they accept in `reviewed`.
"""

import csv
from collections import Counter

import numpy as np
from rubric import OPEN, Rubric, read_rubric
from run_folder import Job, JobError, run
from tables import RECORD_ID, Table, holdouts, read_table, write_rows
from trust import HELD_OUT, TRUSTED, WAITS, Rule, decide, read_rule

PARAMETERS = ("reviewed", "dataset", "target")
COLUMNS = (RECORD_ID, "weak_label", "confidence", "signs", "verdict", "decision", "reason")


def main(job: Job) -> None:
    job.allow(*PARAMETERS)
    target = job.text("target", "malignant")
    reviewed, dataset = set(job.texts("reviewed")), job.text("dataset", "reviewed_promotions")
    rubric, rule = read_rubric(job), read_rule(job)
    weak = find_weak_labels(job, target)
    assert weak.confidence is not None
    held_out = {record for table in holdouts(job, target) for record in table.record_ids}
    if unknown := sorted(reviewed - set(weak.record_ids)):
        raise JobError(f"reviewed names {len(unknown)} records that {weak.source.slug} does not hold, first {unknown[0]}")
    shown = rubric.signs_of(weak)
    verdicts = rubric.verdicts_of(shown)
    decided = decide(
        weak.record_ids, weak.labels, weak.confidence, verdicts, at_least=rule.min_confidence, held_out=held_out, reviewed=reviewed
    )  # fmt: skip
    write_verdicts(job, weak, rubric, shown, verdicts, decided)
    report(job, weak, decided, verdicts, rubric, rule, dataset, target)


def find_weak_labels(job: Job, target: str) -> Table:
    others = [entry for entry in job.inputs if entry.kind == "dataset" and not entry.slug.endswith("holdout")]
    found = [(entry, path) for entry in others for path in entry.files(".csv")]
    if len(found) != 1:
        raise JobError(f"{len(found) or 'no'} tables of weak labels among the inputs; give one, and the holdouts beside it")
    table = read_table(*found[0], target)
    if table.confidence is None:
        raise JobError(f"{table.source.slug} has no column confidence; its labels are no teacher's")
    return table


def write_verdicts(
    job: Job, weak: Table, rubric: Rubric, shown: np.ndarray, verdicts: np.ndarray, decided: list[tuple[str, str]]
) -> None:  # fmt: skip
    assert weak.confidence is not None
    with job.output("verdicts.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        records = zip(weak.record_ids, weak.labels, weak.confidence, shown, verdicts, decided, strict=True)
        for record, label, sure, signs, verdict, (decision, reason) in records:
            says = "open" if verdict == OPEN else int(verdict)
            rows.writerow([record, int(label), f"{sure:.6f}", rubric.words_of(signs), says, decision, reason])


def report(
    job: Job,
    weak: Table,
    decided: list[tuple[str, str]],
    verdicts: np.ndarray,
    rubric: Rubric,
    rule: Rule,
    dataset: str,
    target: str,
) -> None:
    decisions = np.array([decision for decision, _ in decided])
    count = Counter(decisions.tolist())
    followed = {"rubric_sha256": rubric.source.sha256, "rule_sha256": rule.source.sha256, "min_confidence": rule.min_confidence}
    counted = {name: count[name] for name in (TRUSTED, WAITS, HELD_OUT)}
    about = {"records": len(decided), **counted, **followed}
    job.event("artifact", path="outputs/verdicts.csv", name="verdicts", kind="verdicts", metadata=about)
    if count[TRUSTED]:
        write_rows(job.output("trusted.csv"), weak, decisions == TRUSTED, target)
        job.event("dataset", path="outputs/trusted.csv", name=dataset, records=count[TRUSTED])
    if count[WAITS]:
        write_rows(job.output("waiting.csv"), weak, decisions == WAITS, target)
        waiting = {"records": count[WAITS], **followed}
        job.event("artifact", path="outputs/waiting.csv", name="waiting-for-a-person", kind="review", metadata=waiting)
    for name, found in counted.items():
        job.metric(f"records_{name}", found, 0)
    job.metric("judge_agrees", float(np.mean(verdicts == weak.labels)), 0)
    job.metric("judge_open", float(np.mean(verdicts == OPEN)), 0)
    words = f"Of {len(decided)} weak labels {count[TRUSTED]} are trusted, {count[WAITS]} wait for a person, {count[HELD_OUT]} are held out."
    evidence = [{"input": weak.source.slug, "sha256": weak.source.sha256, **followed, "signs": rubric.said}]
    job.event("memory_write", collection="rubric-memory", kind="finding", body=words, evidence=evidence)
    job.event("progress", done=len(decided), total=len(decided), text=f"{count[TRUSTED]} trusted, {count[WAITS]} wait for a person")
    print(words, flush=True)


run(main)
