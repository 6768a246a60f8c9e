"""The weak teacher. Trained: logistic regression by stochastic gradient descent on a few features of the training table. Given its model
among the inputs instead: it labels a table.

It is weak on purpose: it sees only the columns named in the parameter `features`. The same job gives the same model, byte for byte.
Inputs to train: a training table; a validation table and a holdout table where given. The holdout is scored once, after training.
Inputs to label: a teacher's model and one table of records that it was not trained on.
"""

import time

import numpy as np
from label import LABELS, label
from measures import accuracy, binomial_error, log_loss
from models import TEACHER, Model, find_models, source_of
from run_folder import Job, JobError, run
from tables import Table, find_table, need_table, refuse_overlap
from teacher import PARAMETERS, TeacherSettings, epochs_of, read_teacher


def main(job: Job) -> None:
    job.allow(*PARAMETERS, "seconds_per_epoch", "target", "benchmark", "dataset")
    job.text("dataset", LABELS)
    if find_models(job):
        label(job)
    else:
        train(job)


def train(job: Job) -> None:
    target = job.text("target", "malignant")
    table = need_table(job, "train", target)
    validation, holdout = find_table(job, "validation", target), find_table(job, "holdout", target)
    for unseen in (validation, holdout):
        if unseen is not None:
            refuse_overlap(table.record_ids, unseen)
    if table.labels.min() == table.labels.max():
        raise JobError(f"{table.source.slug} holds only {target} = {table.labels[0]:g}; there is nothing to tell apart")

    model = fit(job, read_teacher(job), table, validation, target)
    model.write(job.output("model.json"))
    job.event("artifact", path="outputs/model.json", name="weak-teacher", kind="model", metadata={"features": len(model.features)})
    if holdout is not None:
        share = accuracy(model.probabilities(holdout.select(model.features)), holdout.labels)
        samples = len(holdout.labels)
        score = {"value": share, "stderr": binomial_error(share, samples), "samples": samples}
        job.event("score", benchmark=job.text("benchmark", "medqa-holdout-accuracy"), metric="accuracy", **score)
        print(f"holdout accuracy {share:.4f} ± {score['stderr']:.4f} on {samples} records", flush=True)


def fit(job: Job, settings: TeacherSettings, table: Table, validation: Table | None, target: str) -> Model:
    """Train for all epochs, each reported. Raises JobError where training diverges."""
    pace, rows = job.number("seconds_per_epoch", 0, 0, 60), table.select(settings.features)
    print(
        f"training on {len(rows)} records, {len(settings.features)} of {len(table.columns)} features, {settings.epochs} epochs", flush=True
    )
    model, began = None, time.monotonic()
    for epoch, classifier in enumerate(epochs_of(settings, rows, table.labels, job.seed)):
        if not np.isfinite([*classifier.weights, classifier.bias]).all():
            job.metric("train_loss", float("nan"), epoch)
            raise JobError(
                f"training diverged in epoch {epoch}: learning_rate {settings.learning_rate:g} with l2 {settings.l2:g} is too large"
            )
        source = source_of(table.source)
        model = Model(TEACHER, target, settings.features, classifier, job.seed, job.params, source, table.record_ids)
        text = report(job, epoch, model, table, validation)
        if epoch:
            job.event("progress", done=epoch, total=settings.epochs, text=text)
            # Pacing is asked for by a parameter, so that the curves of a first run can be watched; by default there is none.
            time.sleep(max(0.0, pace - (time.monotonic() - began)))
        began = time.monotonic()
    assert model is not None
    return model


def report(job: Job, epoch: int, model: Model, train: Table, validation: Table | None) -> str:
    text = f"epoch {epoch}"
    for name, table in (("train", train), ("validation", validation)):
        if table is not None:
            probabilities = model.probabilities(table.select(model.features))
            loss, share = log_loss(probabilities, table.labels), accuracy(probabilities, table.labels)
            job.metric(f"{name}_loss", loss, epoch)
            job.metric(f"{name}_accuracy", share, epoch)
            text += f", {name} loss {loss:.4f}, accuracy {share:.4f}"
    print(text, flush=True)
    return text


run(main)
