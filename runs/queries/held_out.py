"""What is held out, asked by content: files of holdout versions, per-sample results of evaluations on one, which tell its truth, and whatever
else an evaluation left that had read one, however it ended.

A copy of a holdout has another name, or lies beside other files, or was written by a run; it leaves no edge to walk along, but content has one
address. Every file of a holdout counts, in whatever form, but for papers (`runs/overlap/kinds.py`): a LICENSE may lie beside both.

What an evaluation left is handed on as a model, as a piece of a live dataset, or frozen as a version, which overlap compares; and what was here
before the run was asked for (a copy of one of its inputs) tells nothing new.
"""

import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Case, DateTimeField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet, Subquery, TextField, Value, When
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast, Coalesce, Concat, Left

from runs.admission import EVALUATE
from runs.models import Artifact, Evaluation
from runs.overlap.kinds import PAPERS
from runs.overlap.reading import KINDS
from runs.queries.launch_score import MODELS
from workspaces import kept_query
from workspaces.models import DatasetFile, DatasetPiece, DatasetVersion

MOST_FILES = 100  # of versions, that are named
# A row bears the instant at which its transaction began, which may have waited for others: what is this much older may have come later all the same.
MARGIN = timedelta(hours=1)
TABLES = frozenset({"table", "json", "games"})  # forms of records, whatever kind a run gave the file
RECORDS = rf"\.({'|'.join(ending for ending, form in KINDS.items() if form in TABLES)})$"
MOST_WORDS = 200  # of what an evaluation has read


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What content is: the file `path` of a holdout, what the evaluation `by` left that had read it, or without either per-sample results on it."""

    holdout: str
    path: str
    by: str = ""

    @property
    def words(self) -> str:
        """As it goes on after `which`."""
        if self.by:
            return f"was left by {self.by}, an evaluation that read {self.holdout}"
        return f"is {self.path} of the holdout {self.holdout}" if self.path else f"tells the truth of {self.holdout}"


def held_out_content(blobs: Collection[uuid.UUID]) -> dict[uuid.UUID, HeldOut]:
    """Those of the stored files that are part of a holdout or tell its truth, whoever keeps them under whatever name."""
    return held_out_among(kept_query.ask_together(_asked((_files, _results), blobs=blobs))) if blobs else {}


def left_by_evaluation(blob: uuid.UUID) -> HeldOut | None:
    """Of an evaluation that read a holdout: the stored file is its work, and nobody has handed it on."""
    return held_out_among(kept_query.ask_together(_asked((_left,), blobs=[blob]))).get(blob)


def questions(*, blobs: Collection[uuid.UUID] = (), versions: Collection[uuid.UUID] = ()) -> list[kept_query.Question]:
    """What reaches evaluators alone among stored files, and those of dataset versions, for one who asks for more in the same round trip;
    `held_out_among` reads the answers. Of versions not more than MOST_FILES are found."""
    return _asked((_files, _results, _left), blobs=blobs, versions=versions)


def held_out_among(answers: Iterable[Sequence[tuple[uuid.UUID, str, str, str]]]) -> dict[uuid.UUID, HeldOut]:
    found: dict[uuid.UUID, HeldOut] = {}
    for rows in answers:
        for blob, holdout, path, by in rows:
            found.setdefault(blob, HeldOut(holdout, path, by))
    return found


def where_in(versions: Collection[uuid.UUID], found: Collection[uuid.UUID]) -> dict[uuid.UUID, tuple[str, uuid.UUID]]:
    """Of each version that has some of these stored files the first, by its path there."""
    rows = DatasetFile.objects.filter(version__in=versions, blob__in=found).order_by("version", "path").distinct("version")
    return {version: (path, blob) for version, path, blob in rows.values_list("version", "path", "blob")}


def _asked(
    builds: Sequence[Callable[..., "QuerySet[Any, Any]"]], *, blobs: Collection[uuid.UUID] = (), versions: Collection[uuid.UUID] = ()
) -> list[kept_query.Question]:
    asked = [(name, keys) for name, keys in (("blobs", blobs), ("versions", versions)) if keys]
    return [kept_query.Question(build, (), {name: sorted(keys)}) for name, keys in asked for build in builds]


def _held_out() -> "QuerySet[DatasetFile]":
    return DatasetFile.objects.filter(version__role=DatasetVersion.Role.HOLDOUT).exclude(path__iregex=PAPERS)


def _files(blobs: Any = None, versions: Any = None) -> "QuerySet[Any, Any]":
    rows = _held_out().filter(blob=blobs) if versions is None else _held_out().filter(blob__in=_blobs_of(versions))
    found = rows.order_by("blob", "version__created_at", "path").distinct("blob")
    return found.values_list("blob", _label("version"), "path", Value(""))[: None if versions is None else MOST_FILES]


def _results(blobs: Any = None, versions: Any = None) -> "QuerySet[Any, Any]":
    rows = _named_results()
    rows = rows.filter(samples_artifact__blob=blobs) if versions is None else rows.filter(samples_artifact__blob__in=_blobs_of(versions))
    found = rows.order_by("samples_artifact__blob", "created_at", "pk").distinct("samples_artifact__blob")
    named = ("samples_artifact__blob", _label("contract__holdout"), Value(""), Value(""))
    return found.values_list(*named)[: None if versions is None else MOST_FILES]


def _left(blobs: Any = None, versions: Any = None) -> "QuerySet[Any, Any]":
    rows = _left_by_evaluations()
    rows = rows.filter(blob=blobs) if versions is None else rows.filter(blob__in=_blobs_of(versions))
    found = rows.order_by("blob", "created_at", "pk").distinct("blob")
    return found.values_list("blob", "read", Value(""), "run__name")[: None if versions is None else MOST_FILES]


def _named_results() -> "QuerySet[Evaluation]":
    return Evaluation.objects.filter(contract__holdout__isnull=False, samples_artifact__isnull=False)


def _left_by_evaluations() -> "QuerySet[Artifact]":
    """What came into the workspace by evaluations that read something held out, with the first of that as `read`: so as their certificates say,
    which know what evaluations hand on to each other; or as it turned out since."""
    admitted = KeyTextTransform(0, KeyTransform("inputs", KeyTransform("holdout", "run__certificate__facts")))
    since = _held_out().filter(_read_by("run")).order_by("version__created_at").values(named=_label("version"))[:1]
    rows = Artifact.objects.filter(run__kind=EVALUATE, blob__created_at__gt=F("run__created_at"), blob__bytes__gt=0)
    rows = rows.exclude(path__iregex=PAPERS).exclude(Q(kind__in=MODELS) & ~Q(path__iregex=RECORDS))
    frozen = DatasetVersion.objects.filter(source_artifact_id__in=Artifact.objects.filter(blob=OuterRef(OuterRef("blob"))).values("pk"))
    rows = rows.exclude(Exists(DatasetPiece.objects.filter(blob=OuterRef("blob")))).exclude(Exists(frozen))
    return rows.annotate(read=Coalesce(Left(admitted, MOST_WORDS), Subquery(since), output_field=TextField())).filter(read__isnull=False)


def _read_by(run: str) -> Q:
    """Of rows with a `blob`: whether it is read by the run whose key has the name `run` in the query around. PostgreSQL asks once for each run what
    it reads, and not once for each row."""
    files = DatasetFile.objects.filter(version__run_inputs__run=OuterRef(OuterRef(run))).values("blob")
    made = Artifact.objects.filter(run_inputs__run=OuterRef(OuterRef(run))).values("blob")
    return Q(blob__in=files) | Q(blob__in=made)


def _label(version: str) -> Concat:
    return Concat(f"{version}__dataset__slug", Value("@"), Cast(f"{version}__number", TextField()), output_field=TextField())


def _blobs_of(versions: Any) -> "QuerySet[Any, Any]":
    return DatasetFile.objects.filter(version=versions).values("blob")


# --- Since a run was asked for --------------------------------------------------------------------------------------------------------------


def held_out_since(run: str) -> Case:
    """Of rows that name a run as `run` (a prefix of names, or empty): which file that it reads is held out since it was asked for; empty for an
    evaluator. One subquery for the newest holdout says of nearly all runs that there is nothing to look for, but for results that a score has
    named since."""
    holdouts = DatasetVersion.objects.filter(role=DatasetVersion.Role.HOLDOUT).order_by("-created_at")
    newest = holdouts.annotate(known=_known("created_at")).values("known")[:1]
    files = _held_out().annotate(known=_known("version__created_at")).filter(known__gt=OuterRef(f"{run}created_at"))
    files = files.filter(_read_by(f"{run}pk")).order_by("version__created_at", "path")
    of_file = files.values(words=Concat("path", Value(" of the holdout "), _label("version"), output_field=TextField()))[:1]
    left = _left_by_evaluations().filter(_read_by(f"{run}pk")).order_by("created_at", "path")
    of_left = left.values(words=_made("", "read"))[:1]
    read = Artifact.objects.filter(run_inputs__run=OuterRef(OuterRef(f"{run}pk"))).values("blob")
    results = _named_results().filter(samples_artifact__blob__in=read).order_by("created_at", "pk")
    of_results = Coalesce(Subquery(results.values(words=_made("samples_artifact__", _label("contract__holdout")))[:1]), Value(""))
    is_older = Q(**{f"{run}created_at__lt": Subquery(newest)})
    return Case(
        When(Q(**{f"{run}kind": EVALUATE}), then=Value("")),
        When(is_older, then=Coalesce(Subquery(of_file), Subquery(of_left), of_results, output_field=TextField())),
        default=of_results,
        output_field=TextField(),
    )


def _made(artifact: str, holdout: Any) -> Concat:
    return Concat(f"{artifact}path", Value(" that "), f"{artifact}run__name", Value(" left of "), holdout, output_field=TextField())


def _known(created_at: str) -> "ExpressionWrapper[Any]":
    """The instant until which somebody may not have seen a holdout."""
    return ExpressionWrapper(F(created_at) + Value(MARGIN), output_field=DateTimeField())
