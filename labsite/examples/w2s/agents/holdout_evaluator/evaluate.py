"""Evaluate one model on one holdout table: a prediction for each record, accuracy with its binomial standard error, calibration.

Inputs: one model (`model.json`, or the only JSON file of an input of kind artifact or model) and one holdout table. Records that the
model was trained on are refused. Every record of the holdout counts in the denominator.
"""

import csv

import numpy as np
from linear import Model, accuracy, binomial_error, calibration_error, log_loss, read_model
from run_folder import Job, JobError, run
from tables import RECORD_ID, Table, need_table, refuse_overlap

PARAMETERS = ("target", "benchmark")


def main(job: Job) -> None:
    job.allow(*PARAMETERS)
    model = find_model(job)
    target = job.text("target", model.target)
    if target != model.target:
        raise JobError(f"the model predicts {model.target}, not {target}")
    holdout = need_table(job, "holdout", target)
    refuse_overlap(model.record_ids, holdout)
    probabilities = model.probabilities(holdout.select(model.features))
    write_predictions(job, holdout, probabilities, target)

    samples, share = len(holdout.labels), accuracy(probabilities, holdout.labels)
    error = binomial_error(share, samples)
    job.metric("accuracy", share, 0)
    job.metric("log_loss", log_loss(probabilities, holdout.labels), 0)
    job.metric("expected_calibration_error", calibration_error(probabilities, holdout.labels), 0)
    job.event("artifact", path="outputs/predictions.csv", name="predictions", kind="predictions", metadata={"records": samples})
    benchmark = job.text("benchmark", "medqa-holdout-accuracy")
    job.event("score", benchmark=benchmark, metric="accuracy", value=share, stderr=error, samples=samples)
    job.event("progress", done=samples, total=samples, text=f"{samples} records scored")
    print(f"accuracy {share:.4f} ± {error:.4f} on {samples} records", flush=True)


def find_model(job: Job) -> Model:
    found = [(entry, path) for entry in job.inputs for path in entry.files("model.json") if path.name == "model.json"]
    if not found:
        found = [(entry, path) for entry in job.inputs if entry.kind in ("artifact", "model") for path in entry.files(".json")]
    if len(found) != 1:
        raise JobError(f"{len(found) or 'no'} models among the inputs; give exactly one artifact of kind model")
    entry, path = found[0]
    return read_model(path, f"{entry.slug}/{path.name}")


def write_predictions(job: Job, holdout: Table, probabilities: np.ndarray, target: str) -> None:
    with job.output("predictions.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([RECORD_ID, target, "probability", "predicted", "correct"])
        for record_id, label, probability in zip(holdout.record_ids, holdout.labels, probabilities, strict=True):
            predicted = int(probability >= 0.5)
            rows.writerow([record_id, int(label), repr(float(probability)), predicted, int(predicted == label)])


run(main)
