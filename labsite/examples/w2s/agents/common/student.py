"""A strong student's program: trains on the labels that it is given, which may be weak, true (the ceiling) or shuffled (the control).

Input: one table. The same job gives the same model, byte for byte.
"""

import numpy as np
from measures import accuracy, classes, log_loss
from models import Model, source_of
from run_folder import Job
from students import PARAMETERS, read_settings, rounds_of, with_truth
from tables import only_table

COMMON = ("shuffle_labels", "frozen_set", "target")


def train_student(job: Job, family: str, name: str) -> None:
    job.allow(*PARAMETERS[family], *COMMON)
    target, settings = job.text("target", "malignant"), read_settings(job, family)
    job.text("frozen_set", "none")  # kept in the model with the other parameters
    table, labels_are = only_table(job, target), "weak"
    labels = table.labels
    if table.confidence is None:
        settings, labels_are = with_truth(settings), "true"
    if job.yes("shuffle_labels", False):
        labels, labels_are = np.random.default_rng(job.seed).permutation(labels), f"{labels_are}, shuffled"
    print(f"{family} student on {len(labels)} records of {table.source.slug}; labels are {labels_are}", flush=True)
    before, classifier = labels, None
    for number, classifier in enumerate(rounds_of(settings, table.features, labels)):
        found = classifier.probabilities(table.features)
        changed = float(np.mean(classes(found) != before))
        before = classes(found)
        job.metric("train_loss", log_loss(found, labels), number)
        job.metric("agreement_with_labels", accuracy(found, labels), number)
        job.metric("changed_since_round_before", changed, number)
        text = f"round {number}: agrees with {accuracy(found, labels):.3f} of its labels"
        job.event("progress", done=number + 1, total=settings.rounds + 1, text=text)
        print(text, flush=True)
    assert classifier is not None
    model = Model(family, target, table.columns, classifier, job.seed, job.params, source_of(table.source), table.record_ids)
    model.write(job.output("model.json"))
    # A control's model is of a kind of its own: nobody is to start from it.
    kind = "control" if job.yes("shuffle_labels", False) else "model"
    job.event("artifact", path="outputs/model.json", name=name, kind=kind, metadata={"labels": labels_are, "records": len(labels)})
