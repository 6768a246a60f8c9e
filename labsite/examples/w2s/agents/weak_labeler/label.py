"""Weak labels: what the teacher says of records that it has not seen, and how sure it is."""

from dataclasses import replace

import numpy as np
from measures import accuracy, classes
from models import one_model
from run_folder import Job
from tables import only_table, refuse_overlap, write_rows

LABELS = "weak_labels_2026_05"


def label(job: Job) -> None:
    """Write every record of the table with the teacher's label in the place of the true one, which goes no further than one metric."""
    model = one_model(job)
    table = only_table(job, model.target)
    refuse_overlap(model.record_ids, table)
    found = model.probabilities(table.select(model.features))
    weak = replace(table, labels=classes(found), confidence=np.maximum(found, 1 - found))
    write_rows(job.output("weak_labels.csv"), weak, np.full(len(found), True), model.target)
    job.metric("label_accuracy", accuracy(found, table.labels), 0)
    job.metric("mean_confidence", float(weak.confidence.mean()), 0)
    job.metric("share_labelled_1", float(weak.labels.mean()), 0)
    job.event("dataset", path="outputs/weak_labels.csv", name=job.text("dataset", LABELS), records=len(found))
    job.event("progress", done=len(found), total=len(found), text=f"{len(found)} records labelled")
    print(f"{len(found)} records labelled, {weak.labels.mean():.3f} of them as {model.target}", flush=True)
