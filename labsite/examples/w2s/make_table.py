"""Write the medical table of the weak-to-strong laboratory: train.csv, student_train.csv, validation.csv and holdout.csv.

    python make_table.py FOLDER [--seed N]

Run with the pool's Python, which has scikit-learn. The records are scikit-learn's copy of "Breast Cancer Wisconsin (Diagnostic)", 569
biopsies with 30 measured features each. A record's id is its place in that copy, so every row can be traced; values are written so that
they read back exactly. The teacher trains on train.csv and labels student_train.csv. The split is stratified by the target and depends on
the seed alone. One line of JSON on stdout says what was written. Exit code 2 with one line on stderr where the folder cannot be written to.
"""

import argparse
import csv
import hashlib
import io
import json
import sys
from pathlib import Path

import numpy as np
import sklearn
from sklearn.datasets import load_breast_cancer

SEED = 20260501
TARGET = "malignant"
SHARES = (("train", 0.3), ("student_train", 0.6), ("validation", 0.7))  # up to where, of each class; the rest is the holdout


def split(labels: np.ndarray, seed: int) -> dict[str, list[int]]:
    """Row numbers of each role, in order. RandomState, because NumPy keeps its stream the same in every version."""
    random = np.random.RandomState(seed)
    roles: dict[str, list[int]] = {**{role: [] for role, _ in SHARES}, "holdout": []}
    for label in (0, 1):
        rows = random.permutation(np.flatnonzero(labels == label)).tolist()
        start = 0
        for role, share in SHARES:
            end = round(share * len(rows))
            roles[role] += rows[start:end]
            start = end
        roles["holdout"] += rows[start:]
    return {role: sorted(rows) for role, rows in roles.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the medical table as train.csv, student_train.csv, validation.csv and holdout.csv.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    if not 0 <= options.seed < 2**32:
        parser.error("--seed must be from 0 to 4294967295")

    bunch = load_breast_cancer()
    # scikit-learn's target is 1 for benign; ours names what is looked for.
    labels = 1 - bunch.target
    columns = [str(name).replace(" ", "_") for name in bunch.feature_names]
    files = []
    for role, rows in split(labels, options.seed).items():
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["record_id", *columns, TARGET])
        for row in rows:
            writer.writerow([f"wdbc-{row:03d}", *(repr(float(value)) for value in bunch.data[row]), int(labels[row])])
        content = text.getvalue().encode()
        try:
            (options.folder / f"{role}.csv").write_bytes(content)
        except OSError as exc:
            print(f"cannot write {role}.csv: {exc.strerror}", file=sys.stderr)
            sys.exit(2)
        files.append({"role": role, "file": f"{role}.csv", "records": len(rows), "sha256": hashlib.sha256(content).hexdigest()})
    source = f"scikit-learn {sklearn.__version__}, load_breast_cancer"
    print(json.dumps({"source": source, "seed": options.seed, "target": TARGET, "files": files}))


if __name__ == "__main__":
    main()
