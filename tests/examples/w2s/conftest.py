"""What these tests need besides labsite's own environment: the pool's Python, the tables, and the first steps of a round."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from labsite.examples.ground import AgentPlan
from labsite.examples.w2s import plan, rounds
from labsite.examples.w2s.bundles import MAKE_TABLE, OBJECTS
from tests.examples.w2s import bundle
from tests.examples.w2s.bundle import Ended

Launch = Callable[..., Ended]
STATED = {entry.slug: OBJECTS / entry.file for entry in plan.STATED}  # the rubric and the rule, as the judge is given them


@pytest.fixture(scope="session")
def pool_python() -> str:
    python = bundle.pool_python()
    try:
        subprocess.run([python, "-c", "import sklearn"], check=True, capture_output=True, timeout=110)
    except (OSError, subprocess.CalledProcessError):
        how = "needs a Python with scikit-learn: `make run` makes one, or set LABSITE_POOL_PYTHON to one with requirements-pool.lock"
        if os.environ.get("LABSITE_REQUIRE") == "all":
            pytest.fail(how)
        pytest.skip(how)
    return python


@pytest.fixture(scope="session")
def launch(pool_python: str, tmp_path_factory: pytest.TempPathFactory) -> Launch:
    """Run an agent in a folder of its own, as `bundle.start` does."""

    def start(
        agent: AgentPlan,
        inputs: dict[str, Path],
        params: dict[str, Any] | None = None,
        *,
        seed: int = 1,
        changed: dict[str, Any] | None = None,
    ) -> Ended:
        folder = tmp_path_factory.mktemp("run") / "folder"
        return bundle.start(pool_python, folder, agent, inputs, params, seed=seed, changed=changed)

    return start


@pytest.fixture(scope="session")
def tables(pool_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the tables that make_table.py writes."""
    folder = tmp_path_factory.mktemp("tables")
    subprocess.run([pool_python, str(MAKE_TABLE), str(folder)], check=True, env=bundle.ENVIRONMENT, timeout=110)
    return folder


@dataclass(frozen=True)
class Round:
    """The first round up to its judge, each step as the laboratory's plan asks for it."""

    tables: dict[str, Path]
    teacher: Ended
    labels: Ended
    ceiling: Ended
    disagreement: Ended
    judge: Ended

    @property
    def weak_labels(self) -> Path:
        return self.labels.output("weak_labels.csv")

    @property
    def frozen(self) -> Path:
        return self.disagreement.output("disagreement.csv")

    @property
    def holdout(self) -> dict[str, Path]:
        return {plan.HOLDOUT: self.tables[plan.HOLDOUT]}


@pytest.fixture(scope="session")
def first_round(launch: Launch, tables: Path) -> Round:
    table = {entry.slug: tables / entry.file for entry in plan.DATASETS}
    holdout, student_table = {plan.HOLDOUT: table[plan.HOLDOUT]}, {plan.STUDENT_TRAIN: table[plan.STUDENT_TRAIN]}
    asked = {**rounds.TEACHERS[0].params, "seconds_per_epoch": 0}
    teacher = launch(plan.WEAK_LABELER, {plan.TRAIN: table[plan.TRAIN]}, asked, seed=rounds.TEACHERS[0].seed)
    labels = launch(plan.WEAK_LABELER, {**student_table, "weak-teacher": teacher.model})
    ceiling = launch(plan.STRONG_A, student_table)
    disagreement = launch(plan.FINDER, {**holdout, "strong-a": ceiling.model, "weak-teacher": teacher.model})
    given = {
        plan.WEAK_LABELS.first_window: labels.output("weak_labels.csv"),
        plan.DISAGREEMENT.slug: disagreement.output("disagreement.csv"),
    }
    judge = launch(plan.JUDGE, {**given, **holdout, **STATED})
    for ended in (teacher, labels, ceiling, disagreement, judge):
        assert ended.code == 0, ended.stderr
    return Round(table, teacher, labels, ceiling, disagreement, judge)
