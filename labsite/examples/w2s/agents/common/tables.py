"""Tables of records among a run's inputs: CSV with a header, a `record_id`, numeric features and one target of 0 and 1.

A column `confidence` beside a target says that its labels are somebody's guess: it is no feature.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from run_folder import Input, Job, JobError

RECORD_ID = "record_id"
CONFIDENCE = "confidence"


@dataclass(frozen=True)
class Table:
    source: Input
    record_ids: list[str]
    columns: list[str]
    features: np.ndarray
    labels: np.ndarray
    confidence: np.ndarray | None = None

    def select(self, names: list[str]) -> np.ndarray:
        """The columns `names` as an array of records by features. Raises JobError where one is missing."""
        if missing := [name for name in names if name not in self.columns]:
            raise JobError(f"{self.source.slug} has no column {', '.join(missing)}")
        return self.features[:, [self.columns.index(name) for name in names]]


def find_table(job: Job, role: str, target: str) -> Table | None:
    """The table of a role (train, validation, holdout), or None.

    It is the file `<role>.csv` of any input, or the only CSV file of an input whose slug ends in the role. Raises JobError where
    several files fit, or where the one that fits is no table.
    """
    found = [(entry, path) for entry in job.inputs for path in entry.files(f"{role}.csv") if path.name == f"{role}.csv"]
    if not found:
        named = [entry for entry in job.inputs if entry.slug.endswith(role)]
        found = [(entry, path) for entry in named for path in entry.files(".csv")]
    if len(found) > 1:
        raise JobError(f"{len(found)} {role} tables among the inputs ({', '.join(entry.slug for entry, _ in found)}); give one")
    return read_table(*found[0], target) if found else None


def need_table(job: Job, role: str, target: str) -> Table:
    table = find_table(job, role, target)
    if table is None:
        given = ", ".join(entry.slug for entry in job.inputs) or "none"
        raise JobError(f"no {role} table among the inputs (given: {given}); add a dataset with a file {role}.csv")
    return table


def only_table(job: Job, target: str) -> Table:
    """The only CSV file among the datasets. Raises JobError where there is none, or several."""
    found = [(entry, path) for entry in job.inputs if entry.kind == "dataset" for path in entry.files(".csv")]
    if len(found) != 1:
        given = ", ".join(f"{entry.slug}/{path.name}" for entry, path in found) or "none"
        raise JobError(f"{len(found) or 'no'} tables among the inputs ({given}); give one dataset with one CSV file")
    return read_table(*found[0], target)


def holdouts(job: Job, target: str) -> list[Table]:
    """The tables of all inputs whose slugs end in holdout. Raises JobError where there is none."""
    found = [read_table(entry, path, target) for entry in job.inputs if entry.slug.endswith("holdout") for path in entry.files(".csv")]
    if not found:
        raise JobError("no holdout among the inputs; without it nobody can say what is not in one")
    return found


def write_rows(path: Path, table: Table, keep: np.ndarray, target: str) -> None:
    """The records where `keep` is true, as they are: values are written so that they read back exactly."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([RECORD_ID, target, *([] if table.confidence is None else [CONFIDENCE]), *table.columns])
        for index in np.flatnonzero(keep):
            values = [repr(float(value)) for value in table.features[index]]
            sure = [] if table.confidence is None else [repr(float(table.confidence[index]))]
            rows.writerow([table.record_ids[index], int(table.labels[index]), *sure, *values])


def read_table(source: Input, path: Path, target: str) -> Table:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file, strict=True)
            header = next(rows, [])
            if len(set(header)) != len(header) or not {RECORD_ID, target} < set(header):
                raise JobError(f"{source.slug}/{path.name}: the header must name {RECORD_ID}, {target} and features, each once")
            return _table(source, path.name, header, target, list(rows))
    except OSError as exc:
        raise JobError(f"{source.slug}/{path.name}: {exc.strerror}") from exc
    except (UnicodeDecodeError, csv.Error) as exc:
        raise JobError(f"{source.slug}/{path.name} is not CSV in UTF-8: {exc}") from exc


def _table(source: Input, name: str, header: list[str], target: str, rows: list[list[str]]) -> Table:
    where = f"{source.slug}/{name}"
    if not rows:
        raise JobError(f"{where} has no records")
    columns = [column for column in header if column not in (RECORD_ID, target, CONFIDENCE)]
    features, confidence = np.empty((len(rows), len(columns))), np.ones(len(rows))
    for index, row in enumerate(rows):
        if len(row) != len(header):
            raise JobError(f"{where}, record {index + 1}: {len(row)} fields where the header has {len(header)}")
        record = dict(zip(header, row, strict=True))
        if record[target] not in ("0", "1"):
            raise JobError(f"{where}, record {index + 1}: {target} is {record[target]!r}; it must be 0 or 1")
        try:
            features[index] = [float(record[column]) for column in columns]
            confidence[index] = float(record.get(CONFIDENCE, 1))
        except ValueError as exc:
            raise JobError(f"{where}, record {index + 1}: {exc}") from exc
        if not 0 <= confidence[index] <= 1:
            raise JobError(f"{where}, record {index + 1}: {CONFIDENCE} is {record[CONFIDENCE]}; it must be from 0 to 1")
    if not np.isfinite(features).all():
        raise JobError(f"{where}: a feature is not a finite number, first in record {int(np.argwhere(~np.isfinite(features))[0][0]) + 1}")
    record_ids = [row[header.index(RECORD_ID)] for row in rows]
    if len(set(record_ids)) != len(record_ids):
        raise JobError(f"{where}: a {RECORD_ID} stands twice")
    labels = np.array([float(row[header.index(target)]) for row in rows])
    return Table(source, record_ids, columns, features, labels, confidence if CONFIDENCE in header else None)


def refuse_overlap(trained_on: list[str], table: Table) -> None:
    """A score on records that were trained on says nothing. Raises JobError, naming how many there are."""
    if shared := set(trained_on) & set(table.record_ids):
        raise JobError(f"{len(shared)} records of {table.source.slug} were trained on, first {min(shared)}; a score would say nothing")
