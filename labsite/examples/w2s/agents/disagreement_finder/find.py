"""The disagreement set: the records of a holdout of which a weak teacher and a strong model of true labels say different things.

Found by their predictions alone, before any student is trained. Inputs: one model of a teacher, one of a strong candidate, one holdout table.
"""

import hashlib

import numpy as np
from measures import accuracy, classes
from models import teacher_and_student
from run_folder import Job, JobError, run
from tables import need_table, refuse_overlap, write_rows


def main(job: Job) -> None:
    job.allow()
    teacher, strong = teacher_and_student(job)
    holdout = need_table(job, "holdout", teacher.target)
    for model in (teacher, strong):
        refuse_overlap(model.record_ids, holdout)
    weak_says, strong_says = (model.probabilities(holdout.select(model.features)) for model in (teacher, strong))
    differ = classes(weak_says) != classes(strong_says)
    count, total = int(differ.sum()), len(differ)
    if not count:
        raise JobError(f"both say the same of all {total} records; there is no disagreement to freeze")
    path = job.output("disagreement.csv")
    write_rows(path, holdout, differ, teacher.target)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    strong_right = float(np.mean(classes(strong_says)[differ] == holdout.labels[differ]))
    job.metric("disagreements", count, 0)
    job.metric("strong_right_where_they_differ", strong_right, 0)
    job.metric("weak_accuracy", accuracy(weak_says, holdout.labels), 0)
    job.metric("strong_accuracy", accuracy(strong_says, holdout.labels), 0)
    about = {"records": count, "of": total, "sha256": digest}
    job.event("artifact", path="outputs/disagreement.csv", name="disagreement-set", kind="disagreement", metadata=about)
    words = f"Teacher and ceiling differ on {count} of {total} held-out records; there the ceiling is right in {strong_right:.0%}."
    job.event("memory_write", collection="rubric-memory", kind="finding", body=words, evidence=[about])
    job.event("progress", done=total, total=total, text=f"{count} of {total} records differ")
    print(f"{words} SHA-256 {digest}", flush=True)


run(main)
