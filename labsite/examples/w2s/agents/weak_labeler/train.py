"""Train the weak teacher: logistic regression by stochastic gradient descent on a few features of the training table.

It is weak on purpose: it sees only the columns named in the parameter `features`. The same job gives the same model, byte for byte.
Inputs: a training table; a validation table and a holdout table where given. The holdout is scored once, after training.
"""

import time

import numpy as np
from linear import Model, accuracy, binomial_error, log_loss, sigmoid
from run_folder import Job, JobError, run
from tables import Table, find_table, need_table, refuse_overlap

PARAMETERS = ("features", "learning_rate", "epochs", "l2", "batch_size", "seconds_per_epoch", "target", "benchmark")


def main(job: Job) -> None:
    job.allow(*PARAMETERS)
    target = job.text("target", "malignant")
    train = need_table(job, "train", target)
    validation, holdout = find_table(job, "validation", target), find_table(job, "holdout", target)
    for unseen in (validation, holdout):
        if unseen is not None:
            refuse_overlap(train.record_ids, unseen)
    if train.labels.min() == train.labels.max():
        raise JobError(f"{train.source.slug} holds only {target} = {train.labels[0]:g}; there is nothing to tell apart")

    model = fit(job, train, validation, chosen_features(job, train), target)
    model.write(job.output("model.json"))
    job.event("artifact", path="outputs/model.json", name="weak-teacher", kind="model", metadata={"features": len(model.features)})
    if holdout is not None:
        share = accuracy(model.probabilities(holdout.select(model.features)), holdout.labels)
        samples = len(holdout.labels)
        score = {"value": share, "stderr": binomial_error(share, samples), "samples": samples}
        job.event("score", benchmark=job.text("benchmark", "medqa-holdout-accuracy"), metric="accuracy", **score)
        print(f"holdout accuracy {share:.4f} ± {score['stderr']:.4f} on {samples} records", flush=True)


def chosen_features(job: Job, train: Table) -> list[str]:
    names = job.params.get("features", ["mean_texture", "mean_smoothness"])
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise JobError("parameter features must be a list of different column names, at least one")
    train.select(names)
    return names


def fit(job: Job, train: Table, validation: Table | None, names: list[str], target: str) -> Model:
    """Minimise log loss plus l2/2 · |weights|², one pass over the shuffled records an epoch."""
    rate, l2 = job.number("learning_rate", 0.05, 1e-6, 10), job.number("l2", 0.001, 0, 1)
    epochs, batch = job.whole("epochs", 40, 1, 10_000), job.whole("batch_size", 16, 1, 100_000)
    pace = job.number("seconds_per_epoch", 0, 0, 60)
    rows = train.select(names)
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    standard = (rows - mean) / scale
    random = np.random.default_rng(job.seed)
    weights, bias = random.normal(0.0, 0.5, len(names)), 0.0

    def model() -> Model:
        source = {"input": train.source.slug, "version": train.source.version, "sha256": train.source.sha256}
        lists = mean.tolist(), scale.tolist(), weights.tolist()
        return Model(target, names, *lists, float(bias), job.seed, job.params, source, train.record_ids)

    print(f"training on {len(rows)} records, {len(names)} of {len(train.columns)} features, {epochs} epochs", flush=True)
    report(job, 0, model(), train, validation)
    for epoch in range(1, epochs + 1):
        began = time.monotonic()
        order = random.permutation(len(standard))
        for start in range(0, len(order), batch):
            part = order[start : start + batch]
            with np.errstate(all="ignore"):
                gap = sigmoid(standard[part] @ weights + bias) - train.labels[part]
                weights = weights - rate * (standard[part].T @ gap / len(part) + l2 * weights)
                bias = bias - rate * float(gap.mean())
        if not np.isfinite([*weights, bias]).all():
            job.metric("train_loss", float("nan"), epoch)
            raise JobError(f"training diverged in epoch {epoch}: learning_rate {rate:g} with l2 {l2:g} is too large")
        text = report(job, epoch, model(), train, validation)
        job.event("progress", done=epoch, total=epochs, text=text)
        # Pacing is asked for by a parameter, so that the curves of a first run can be watched; by default there is none.
        time.sleep(max(0.0, pace - (time.monotonic() - began)))
    return model()


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
