"""What rests on artifacts, so that they stay: scores, ratings, runs that are to read them, promotions, exports."""

import uuid
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q

from runs.admission import EVALUATE
from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Artifact, Evaluation, Export, Promotion, RunInput, Sweep
from runs.queries.lineage import MOST_NODES, MOST_WALKED, Node, Way, reach, reached_ends
from runs.queries.lineage_edges import CONTENT, EDGES, NodeKind
from runs.queries.pairs import PAIRS_KIND
from workspaces import ids
from workspaces.units import number

SHOWN = 20


@dataclass(frozen=True, slots=True)
class Resting:
    """One thing that rests on an artifact; `page` and `argument` name where it is told in full."""

    artifact_id: uuid.UUID
    words: str
    page: str
    argument: str


def what_rests_on(artifacts: Collection[Artifact]) -> list[Resting]:
    """Everything that rests on any of them: one query for each kind of thing, however many artifacts there are, and two more for each of which
    something promoted was made, and for each that something has read."""
    keys = {artifact.pk for artifact in artifacts}
    return [found for told in (*(source.told for source in SOURCES), scores_below) for found in told(artifacts, keys)] if artifacts else []


def held() -> Q:
    """The same as a condition on artifacts, for whoever looks for those on which nothing rests; all but `scores_below`, which is walked for each, and
    finds none for what is not `has_been_read`."""
    found = Q()
    for source in SOURCES:
        found |= source.holds()
    return found


def words_of(resting: Collection[Resting]) -> list[str]:
    """Sentences of a refusal, cut."""
    said = list(dict.fromkeys(one.words for one in resting))
    more = len(said) - SHOWN
    return said[:SHOWN] + ([f"And {more} more."] if more > 0 else [])


def _scores(artifacts: Collection[Artifact], keys: set[uuid.UUID]) -> Iterator[Resting]:
    """What was measured of it, and what has its samples in it."""
    rows = Evaluation.objects.filter(Q(subject_artifact__in=keys) | Q(samples_artifact__in=keys)).select_related("run", "benchmark")
    for row in rows.order_by("-created_at", "-pk"):
        score = f"{row.metric} {number(row.value, row.standard_error)} on {row.benchmark.name}, measured by {row.run.name}."
        if row.subject_artifact_id in keys:
            yield Resting(_key(row.subject_artifact_id), f"A score is of it: {score}", "run", row.run.public_id)
        if row.samples_artifact_id in keys:
            yield Resting(_key(row.samples_artifact_id), f"It holds the samples of a score: {score}", "run", row.run.public_id)


def _is_scored() -> Q:
    """Two conditions, so that each goes by its index."""
    return Q(Exists(Evaluation.objects.filter(subject_artifact=OuterRef("pk")))) | Q(
        Exists(Evaluation.objects.filter(samples_artifact=OuterRef("pk")))
    )


def _games(artifacts: Collection[Artifact], keys: set[uuid.UUID]) -> Iterator[Resting]:
    """The games that ratings and sequential tests are made of: every time one is asked for, the files are read again."""
    for row in Artifact.objects.filter(_has_games(), pk__in=keys).select_related("run__benchmark").order_by("-created_at", "-pk"):
        words = f"Ratings on {row.run.benchmark.name} rest on it: it holds games that {row.run.name} has played."
        yield Resting(row.pk, words, "run", row.run.public_id)


def _has_games() -> Q:
    scored = Exists(Evaluation.objects.filter(run=OuterRef("run")))
    return Q(scored, kind=PAIRS_KIND, run__kind=EVALUATE, run__status=RunStatus.SUCCEEDED)


def scores_below(artifacts: Collection[Artifact], keys: set[uuid.UUID]) -> Iterator[Resting]:
    """Scores in which it is without being what was measured: runs have read it, and a score was reported of one, or of what was made of it, however
    many steps below. The newest SHOWN of each. Of what more than MOST_NODES things were made of it is taken to hold that there is a score."""
    for key in sorted(Artifact.objects.filter(has_been_read(), pk__in=keys).values_list("pk", flat=True)):
        below = reach([Node(NodeKind.ARTIFACT, key)], Way.DOWN, along=CONTENT)
        rows = Evaluation.objects.filter(pk__in=below.of(NodeKind.EVALUATION)).select_related("run", "benchmark")
        rows = rows.exclude(subject_artifact=key).exclude(samples_artifact=key)
        for row in rows.order_by("-created_at", "-pk")[:SHOWN]:
            score = f"{row.metric} {number(row.value, row.standard_error)} on {row.benchmark.name}, measured by {row.run.name}."
            yield Resting(key, f"A score rests on it: {score}", "run", row.run.public_id)
        if not below.is_whole:
            artifact = next(artifact for artifact in artifacts if artifact.pk == key)
            yield Resting(key, f"More than {MOST_NODES:,} things were made of it.", "artifact-lineage", artifact.public_id)


def has_been_read() -> Q:
    """Something names it as what it came from, by an edge of the lineage along which content flows."""
    found = Q()
    for edge in EDGES:
        if edge.earlier_kind == NodeKind.ARTIFACT and edge.relation in CONTENT and not edge.is_told:
            found |= Q(Exists(edge.model._default_manager.filter(**{edge.earlier: OuterRef("pk")})))
    return found


def _live_runs(artifacts: Collection[Artifact], keys: set[uuid.UUID]) -> Iterator[Resting]:
    rows = RunInput.objects.filter(artifact__in=keys).exclude(run__status__in=sorted(TERMINAL))
    for row in rows.select_related("run").order_by("-created_at"):
        words = f"{row.run.name} reads it and is {row.run.get_status_display()}."
        yield Resting(_key(row.artifact_id), words, "run", row.run.public_id)


def _is_read() -> Q:
    return Q(Exists(RunInput.objects.filter(artifact=OuterRef("pk")).exclude(run__status__in=sorted(TERMINAL))))


def _sweeps(artifacts: Collection[Artifact], keys: set[uuid.UUID]) -> Iterator[Resting]:
    for sweep, named in _named_by_sweeps():
        for key in sorted(keys & named):
            yield Resting(key, f"Runs of the sweep {sweep.name} are to read it.", "sweep", sweep.public_id)


def _is_in_sweep() -> Q:
    return Q(pk__in=set().union(*(named for _, named in _named_by_sweeps())))


def _named_by_sweeps() -> Iterator[tuple[Sweep, set[uuid.UUID]]]:
    for sweep in Sweep.objects.filter(status=Sweep.Status.RUNNING):
        named = {ids.spellings(Artifact.prefix, str(text))[0] for text in sweep.request.get("artifacts") or ()}
        yield sweep, {key for key in named if key is not None}


def _promotions(artifacts: Collection[Artifact], keys: set[uuid.UUID]) -> Iterator[Resting]:
    for row in Promotion.objects.filter(artifact__in=keys, status__in=Promotion.HOLDING).order_by("number"):
        words = f"It {'stands' if row.status == Promotion.Status.PROMOTED else 'is put forward'} as {row.label}; withdraw that first."
        yield Resting(_key(row.artifact_id), words, "promotion", row.public_id)


def _is_promoted() -> Q:
    return Q(Exists(Promotion.objects.filter(artifact=OuterRef("pk"), status__in=Promotion.HOLDING)))


def _made_of_it(artifacts: Collection[Artifact], keys: set[uuid.UUID]) -> Iterator[Resting]:
    """What was promoted, or is put forward, and was made from it by runs, however many steps below."""
    for key in sorted(keys & _under_promotions()):
        made = _artifacts_of([key], Way.DOWN)
        for row in Promotion.objects.filter(artifact__in=made, status__in=Promotion.HOLDING).order_by("number"):
            words = f"What {'stands' if row.status == Promotion.Status.PROMOTED else 'is put forward'} as {row.label} was made of it."
            yield Resting(key, words, "promotion", row.public_id)


def _is_under_promotions() -> Q:
    return Q(pk__in=_under_promotions())


def _under_promotions() -> set[uuid.UUID]:
    """Artifacts that what is promoted was made of, itself left out."""
    promoted = set(Promotion.objects.filter(status__in=Promotion.HOLDING).values_list("artifact_id", flat=True))
    return _artifacts_of(promoted, Way.UP) - promoted


def _artifacts_of(keys: Collection[uuid.UUID], way: Way) -> set[uuid.UUID]:
    starts = [Node(NodeKind.ARTIFACT, key) for key in keys]
    ends = reached_ends(starts, way, along=CONTENT, most=MOST_WALKED)
    return {uuid.UUID(hex=key) for kind, key in ends if kind == NodeKind.ARTIFACT}


def _exports(artifacts: Collection[Artifact], keys: set[uuid.UUID]) -> Iterator[Resting]:
    """An export that carries content of artifacts, and is being made or kept for downloading, holds those that were there."""
    rows = Export.objects.filter(files=Export.Files.INTERNAL, status__in=(*Export.OPEN, Export.Status.READY)).order_by("number")
    for export in rows:
        for artifact in artifacts:
            if artifact.created_at <= export.created_at or export.status in Export.OPEN:
                words = f"Export {export.number} carries it; remove that first, or wait until it expires."
                yield Resting(artifact.pk, words, "export", export.public_id)


def _is_exported() -> Q:
    carrying = Q(status__in=Export.OPEN) | Q(status=Export.Status.READY, created_at__gte=OuterRef("created_at"))
    return Q(Exists(Export.objects.filter(carrying, files=Export.Files.INTERNAL)))


def _key(key: uuid.UUID | None) -> uuid.UUID:
    assert key is not None
    return key


@dataclass(frozen=True, slots=True)
class Source:
    """One kind of thing that rests on artifacts: told one by one, and as a condition that holds for just those artifacts."""

    told: Callable[[Collection[Artifact], set[uuid.UUID]], Iterator[Resting]]
    holds: Callable[[], Q]


SOURCES: tuple[Source, ...] = (
    Source(_scores, _is_scored),
    Source(_games, _has_games),
    Source(_live_runs, _is_read),
    Source(_sweeps, _is_in_sweep),
    Source(_promotions, _is_promoted),
    Source(_made_of_it, _is_under_promotions),
    Source(_exports, _is_exported),
)
