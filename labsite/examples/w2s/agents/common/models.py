"""A model as plain JSON: what it computes, what it was trained on and with which parameters."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from classifiers import Classifier, Linear, Mixture
from run_folder import Input, Job, JobError

SCHEMA = "w2s.model.v1"
FAMILIES: dict[str, type[Linear] | type[Mixture]] = {"teacher": Linear, "logistic": Linear, "mixture": Mixture}
TEACHER = "teacher"


@dataclass(frozen=True)
class Model:
    """`params` are the parameters of the run that trained it, `trained_on` its training table, `record_ids` what it has seen."""

    family: str
    target: str
    features: list[str]
    classifier: Classifier
    seed: int
    params: dict[str, Any]
    trained_on: dict[str, str]
    record_ids: list[str]

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        return self.classifier.probabilities(features)

    def write(self, path: Path) -> None:
        text = json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, allow_nan=False, default=lambda array: array.tolist())
        path.write_text(text + "\n", encoding="utf-8")


def source_of(entry: Input) -> dict[str, str]:
    return {"input": entry.slug, "version": entry.version, "sha256": entry.sha256}


def find_models(job: Job) -> list[Model]:
    """The models among the inputs, in their order: files named model.json, else the JSON files of artifacts. Raises JobError."""
    found = [(entry, path) for entry in job.inputs for path in entry.files("model.json") if path.name == "model.json"]
    if not found:
        found = [(entry, path) for entry in job.inputs if entry.kind in ("artifact", "model") for path in entry.files(".json")]
    return [read_model(path, f"{entry.slug}/{path.name}") for entry, path in found]


def one_model(job: Job) -> Model:
    found = find_models(job)
    if len(found) != 1:
        raise JobError(f"{len(found) or 'no'} models among the inputs; give exactly one artifact of kind model")
    return found[0]


def teacher_and_student(job: Job) -> tuple[Model, Model]:
    """Exactly one model of a weak teacher and one of a strong family, in whatever order they are given. Raises JobError."""
    found = find_models(job)
    teachers, students = [one for one in found if one.family == TEACHER], [one for one in found if one.family != TEACHER]
    if len(teachers) != 1 or len(students) != 1:
        raise JobError(f"{len(teachers) or 'no'} models of teachers and {len(students) or 'none'} of strong candidates; give one of each")
    if teachers[0].target != students[0].target:
        raise JobError(f"the teacher predicts {teachers[0].target}, the strong model {students[0].target}")
    return teachers[0], students[0]


def read_model(path: Path, name: str) -> Model:
    """The model at `path`, called `name` in messages. Raises JobError where it is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.pop("schema", None) != SCHEMA or content.get("family") not in FAMILIES:
            raise JobError(f"{name} is no model of schema {SCHEMA}")
        numbers = {key: np.array(value, dtype=float) for key, value in content.pop("classifier").items()}
        if "bias" in numbers:
            numbers["bias"] = float(numbers["bias"])
        model = Model(classifier=FAMILIES[content["family"]](**numbers), **content)
        texts = (model.target, *_texts(model.features), *_texts(model.record_ids))
        if not all(isinstance(entry, str) for entry in texts) or not isinstance(model.params, dict):
            raise JobError(f"{name}: features and record_ids must be lists of text, params a mapping")
        model.classifier.refuse(len(model.features))
    except OSError as exc:
        raise JobError(f"{name}: {exc.strerror}") from exc
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, np.linalg.LinAlgError) as exc:
        raise JobError(f"{name} is no model: {exc}") from exc
    return model


def _texts(value: object) -> list[object]:
    return value if isinstance(value, list) else [None]
