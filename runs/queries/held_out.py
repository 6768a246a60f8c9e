"""What is held out, asked by content: files of holdout versions, and per-sample results of evaluations on one, which tell its truth.

A copy of a holdout has another name, or lies beside other files, or was written by a run; it leaves no edge to walk along, but content has one
address. Every file of a holdout counts, in whatever form, but for papers (`runs/overlap/kinds.py`): a LICENSE may lie beside both.
"""

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Case, DateTimeField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet, Subquery, TextField, Value, When
from django.db.models.functions import Cast, Coalesce, Concat

from runs.admission import EVALUATE
from runs.models import Artifact, Evaluation
from runs.overlap.kinds import PAPERS
from workspaces import kept_query
from workspaces.models import DatasetFile, DatasetVersion

MOST_FILES = 100  # of versions, that are named
# A row bears the instant at which its transaction began, which may have waited for others: what is this much older may have come later all the same.
MARGIN = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What content is: the file `path` of a holdout, or without one per-sample results on it."""

    holdout: str
    path: str

    @property
    def words(self) -> str:
        """As it goes on after `which`."""
        return f"is {self.path} of the holdout {self.holdout}" if self.path else f"tells the truth of {self.holdout}"


def held_out_content(blobs: Collection[uuid.UUID]) -> dict[uuid.UUID, HeldOut]:
    """Those of the stored files that are held out, whoever keeps them under whatever name."""
    return held_out_among(kept_query.ask_together(questions(blobs=blobs))) if blobs else {}


def questions(*, blobs: Collection[uuid.UUID] = (), versions: Collection[uuid.UUID] = ()) -> list[kept_query.Question]:
    """What `held_out_content` asks of stored files, and of those of dataset versions, for one who asks for more in the same round trip;
    `held_out_among` reads the answers. Of versions not more than MOST_FILES are found."""
    asked = [(name, keys) for name, keys in (("blobs", blobs), ("versions", versions)) if keys]
    return [kept_query.Question(build, (), {name: sorted(keys)}) for name, keys in asked for build in (_files, _results)]


def held_out_among(answers: Iterable[Sequence[tuple[uuid.UUID, str, int, str]]]) -> dict[uuid.UUID, HeldOut]:
    found: dict[uuid.UUID, HeldOut] = {}
    for rows in answers:
        for blob, slug, number, path in rows:
            found.setdefault(blob, HeldOut(f"{slug}@{number}", path))
    return found


def where_in(versions: Collection[uuid.UUID], found: Collection[uuid.UUID]) -> dict[uuid.UUID, tuple[str, uuid.UUID]]:
    """Of each version that has some of these stored files the first, by its path there."""
    rows = DatasetFile.objects.filter(version__in=versions, blob__in=found).order_by("version", "path").distinct("version")
    return {version: (path, blob) for version, path, blob in rows.values_list("version", "path", "blob")}


def _held_out() -> "QuerySet[DatasetFile]":
    return DatasetFile.objects.filter(version__role=DatasetVersion.Role.HOLDOUT).exclude(path__iregex=PAPERS)


def _files(blobs: Any = None, versions: Any = None) -> "QuerySet[Any, Any]":
    rows = _held_out().filter(blob=blobs) if versions is None else _held_out().filter(blob__in=_blobs_of(versions))
    found = rows.order_by("blob", "version__created_at", "path").distinct("blob")
    return found.values_list("blob", "version__dataset__slug", "version__number", "path")[: None if versions is None else MOST_FILES]


def _results(blobs: Any = None, versions: Any = None) -> "QuerySet[Any, Any]":
    rows = Evaluation.objects.filter(contract__holdout__isnull=False, samples_artifact__isnull=False)
    rows = rows.filter(samples_artifact__blob=blobs) if versions is None else rows.filter(samples_artifact__blob__in=_blobs_of(versions))
    found = rows.order_by("samples_artifact__blob", "created_at", "pk").distinct("samples_artifact__blob")
    named = ("samples_artifact__blob", "contract__holdout__dataset__slug", "contract__holdout__number", Value(""))
    return found.values_list(*named)[: None if versions is None else MOST_FILES]


def _blobs_of(versions: Any) -> "QuerySet[Any, Any]":
    return DatasetFile.objects.filter(version=versions).values("blob")


# --- Since a run was asked for --------------------------------------------------------------------------------------------------------------


def held_out_since(run: str) -> Case:
    """Of rows that name a run as `run` (a prefix of names, or empty): which file that it reads is held out since it was asked for; empty for an
    evaluator. One subquery for the newest holdout says of nearly all runs that there is nothing to look for."""
    holdouts = DatasetVersion.objects.filter(role=DatasetVersion.Role.HOLDOUT).order_by("-created_at")
    newest = holdouts.annotate(known=_known("created_at")).values("known")[:1]
    read = DatasetFile.objects.filter(blob=OuterRef("blob"), version__run_inputs__run=OuterRef(OuterRef(f"{run}pk")))
    made = Artifact.objects.filter(blob=OuterRef("blob"), run_inputs__run=OuterRef(OuterRef(f"{run}pk")))
    files = _held_out().annotate(known=_known("version__created_at")).filter(known__gt=OuterRef(f"{run}created_at"))
    files = files.filter(Exists(read) | Exists(made)).order_by("version__created_at", "path")
    of_holdout = (Value(" of the holdout "), F("version__dataset__slug"), Value("@"), Cast("version__number", TextField()))
    named = files.values(words=Concat("path", *of_holdout, output_field=TextField()))[:1]
    is_asked = ~Q(**{f"{run}kind": EVALUATE}) & Q(**{f"{run}created_at__lt": Subquery(newest)})
    return Case(
        When(is_asked, then=Coalesce(Subquery(named), Value(""), output_field=TextField())), default=Value(""), output_field=TextField()
    )


def _known(created_at: str) -> "ExpressionWrapper[Any]":
    """The instant until which somebody may not have seen a holdout."""
    return ExpressionWrapper(F(created_at) + Value(MARGIN), output_field=DateTimeField())
