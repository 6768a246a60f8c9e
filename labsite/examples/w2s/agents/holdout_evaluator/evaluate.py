"""Evaluate one model on one holdout table: a prediction for each record, accuracy with its binomial standard error, calibration.

Inputs: one model (`model.json`, or the only JSON file of an input of kind artifact or model) and one holdout table. Records that the
model was trained on are refused. Every record of the holdout counts in the denominator. With `frozen`, so is a model that does not name this
very table as the set that was frozen before its training. A model of shuffled labels is a control: what it scores is how far it is above chance.
"""

import csv

import numpy as np
from measures import above_chance, accuracy, binomial_error, calibration_error, log_loss
from models import one_model
from run_folder import Job, JobError, run
from sample_results import SampleResult, write_samples
from tables import RECORD_ID, Table, need_table, refuse_overlap

PARAMETERS = ("target", "benchmark", "frozen")


def main(job: Job) -> None:
    job.allow(*PARAMETERS)
    model = one_model(job)
    target = job.text("target", model.target)
    if target != model.target:
        raise JobError(f"the model predicts {model.target}, not {target}")
    holdout = need_table(job, "holdout", target)
    refuse_overlap(model.record_ids, holdout)
    if job.yes("frozen", False) and (named := model.params.get("frozen_set")) != holdout.source.sha256:
        raise JobError(f"the model names {named or 'nothing'} as frozen before its training, not {holdout.source.sha256}")
    probabilities = model.probabilities(holdout.select(model.features))
    write_predictions(job, holdout, probabilities, target)

    samples, share = len(holdout.labels), accuracy(probabilities, holdout.labels)
    error = binomial_error(share, samples)
    job.metric("accuracy", share, 0)
    job.metric("log_loss", log_loss(probabilities, holdout.labels), 0)
    job.metric("expected_calibration_error", calibration_error(probabilities, holdout.labels), 0)
    job.event("artifact", path="outputs/predictions.csv", name="predictions", kind="predictions", metadata={"records": samples})
    told = zip(holdout.record_ids, holdout.labels, probabilities, strict=True)
    results = (
        SampleResult(name, int(label), float(chance), float((chance >= 0.5) == label), float(max(chance, 1 - chance)))
        for name, label, chance in told
    )
    file = write_samples(job, results)
    benchmark = job.text("benchmark", "medqa-holdout-accuracy")
    if model.params.get("shuffle_labels"):
        value, spread = above_chance(probabilities, holdout.labels)
        job.event("score", benchmark=benchmark, metric="above_chance", value=value, stderr=spread, samples=samples, samples_file=file)
    else:
        job.event("score", benchmark=benchmark, metric="accuracy", value=share, stderr=error, samples=samples, samples_file=file)
    job.event("progress", done=samples, total=samples, text=f"{samples} records scored")
    print(f"accuracy {share:.4f} ± {error:.4f} on {samples} records", flush=True)


def write_predictions(job: Job, holdout: Table, probabilities: np.ndarray, target: str) -> None:
    with job.output("predictions.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([RECORD_ID, target, "probability", "predicted", "correct"])
        for record_id, label, probability in zip(holdout.record_ids, holdout.labels, probabilities, strict=True):
            predicted = int(probability >= 0.5)
            rows.writerow([record_id, int(label), repr(float(probability)), predicted, int(predicted == label)])


run(main)
