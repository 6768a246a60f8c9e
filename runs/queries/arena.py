"""Who beats whom on a benchmark: ratings of artifacts from the games that evaluations have played between them, in Elo with 95 % intervals.

A match counts where its run has a score that stands under the contract that holds now, evaluates, ended well, and was given both files by labsite,
which checked their hashes: who played is not the run's word. Games of what was withdrawn do not count.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db.models import QuerySet

from runs.admission import EVALUATE
from runs.bradley_terry import Met, Rating, connected, rate
from runs.lifecycle import RunStatus
from runs.models import Artifact, Run, RunInput
from runs.queries.contract_facts import evaluator_hash
from runs.queries.pairs import PAIRS_KIND, matches_in, pairs_of
from runs.queries.standing import standing
from workspaces.models import Benchmark, Contract
from workspaces.queries.registry import current_contract
from workspaces.queries.withdrawal import marked

MOST_FILES = 200  # the newest that are read
MOST_PLAYERS = 200  # those with the most games
GAMES_OF_PAIR = 2


@dataclass(frozen=True, slots=True)
class Player:
    """`rank`: equal ratings share it. `points` (a draw is a half) of `games`, against `opponents` others, whose hashes are `met`."""

    rank: int
    artifact: Artifact
    rating: Rating
    points: float
    games: int
    met: frozenset[str]
    is_reference: bool

    @property
    def opponents(self) -> int:
        return len(self.met)


@dataclass(frozen=True, slots=True)
class Apart:
    """An artifact that met nobody of those who are rated, directly or through others: how many games it played, and whom it met."""

    artifact: Artifact
    games: int
    met: tuple[Artifact, ...]


@dataclass(frozen=True, slots=True)
class Arena:
    """`players` best first; the reference, whose rating is 0, is the earliest made of those who met each other, directly or through others.
    `apart` are those who met none of these, with the most games first; `unread` files could not be read, or are not as they should be."""

    contract: Contract | None
    players: list[Player] = field(default_factory=list)
    games: int = 0
    runs: int = 0
    apart: list[Apart] = field(default_factory=list)
    unread: int = 0
    has_prior: bool = False
    unrated: list[Artifact] = field(default_factory=list)  # those who have played, where results are too far apart for ratings
    is_cut: bool = False  # there are more files, or players, than were read

    @property
    def reference(self) -> Player | None:
        return next((player for player in self.players if player.is_reference), None)

    @property
    def entrants(self) -> list[Artifact]:
        """All who have played, those who are rated first."""
        return [*(each.artifact for each in self.players), *(each.artifact for each in self.apart), *self.unrated]

    @property
    def is_unrated(self) -> bool:
        return bool(self.unrated)


def arena(benchmark: Benchmark) -> Arena:
    """Reads up to MOST_FILES files from the store."""
    contract = current_contract(benchmark.pk)
    if contract is None:
        return Arena(None)
    files = list(files_of(contract).order_by("-created_at", "-pk")[: MOST_FILES + 1])
    played, artifacts, unread = _played(files[:MOST_FILES])
    games = _games_of(played)
    kept = {sha for sha, _ in games.most_common(MOST_PLAYERS)}
    met = [each for each in played if each.first in kept and each.second in kept]
    read = len(files[:MOST_FILES]) - unread
    is_cut = len(files) > MOST_FILES or len(games) > MOST_PLAYERS
    if not met:
        return Arena(contract, runs=read, unread=unread, is_cut=is_cut)
    reference = _reference(met, artifacts)
    try:
        found = rate(met, reference)
    except ValueError:  # what was played counts, and nobody can say by how much
        count, unrated = sum(int(each.games) for each in met), [artifacts[sha] for sha, _ in _games_of(met).most_common()]
        return Arena(contract, games=count, runs=read, unread=unread, is_cut=is_cut, unrated=unrated)
    inside = [each for each in met if each.first in found.of]
    return Arena(
        contract,
        _players(inside, found.of, artifacts, reference),
        sum(int(each.games) for each in inside),
        apart=_apart([each for each in met if each.first not in found.of], artifacts),
        has_prior=found.has_prior,
        is_cut=is_cut,
        runs=read,
        unread=unread,
    )


def files_of(contract: Contract, *given: str) -> "QuerySet[Artifact]":
    """Files of games that count, the newest of each run; of runs that were given all artifacts of these hashes."""
    scored = standing().filter(benchmark=contract.benchmark_id, contract=contract).values("run")
    runs = Run.objects.filter(pk__in=scored, kind=EVALUATE, status=RunStatus.SUCCEEDED)
    if key := evaluator_hash(contract):
        runs = runs.filter(agent_version__content_hash=key)
    for sha in given:
        runs = runs.filter(pk__in=_given().filter(sha256=sha).values("run"))
    rows = Artifact.objects.filter(run__in=runs, kind=PAIRS_KIND, deleted_at=None).exclude(pk__in=marked("artifact"))
    newest = rows.order_by("run", "-created_at", "-pk").distinct("run").values("pk")
    return Artifact.objects.filter(pk__in=newest).select_related("blob", "run")


@dataclass(frozen=True, slots=True)
class Batch:
    """`pairs`: how often the first had 0, 1/2, 1, 3/2 and 2 points of a pair in the run that left this file."""

    file: Artifact
    pairs: tuple[int, ...]


def games_between(contract: Contract, first: Artifact, second: Artifact, *, but: Run | None = None) -> tuple[list[Batch], bool]:
    """Games of two that the arena counts, in the order in which their runs ended, and whether there are more: of a sequential test the first bound
    that is passed decides, so that the last are cut. None of one content with itself, nor those of the run `but`. Reads up to MOST_FILES files."""
    mine, other = first.blob.sha256, second.blob.sha256
    counted = files_of(contract, mine, other) if mine != other else Artifact.objects.none()
    if but is not None:
        counted = counted.exclude(run=but)
    files = list(counted.order_by("run__ended_at", "run")[: MOST_FILES + 1])
    read = ((file, pairs_of(file, mine, other)) for file in files[:MOST_FILES])
    return [Batch(file, tuple(pairs)) for file, pairs in read if pairs is not None], len(files) > MOST_FILES


def _given() -> "QuerySet[RunInput]":
    return RunInput.objects.filter(artifact__isnull=False).exclude(artifact__in=marked("artifact"))


def _played(files: list[Artifact]) -> tuple[list[Met[str]], dict[str, Artifact], int]:
    """What came of each two, by the hashes of what played; the artifacts by these; and how many files told nothing."""
    given = _given().filter(run__in=[file.run_id for file in files]).select_related("artifact__run__agent", "artifact__blob")
    artifacts: dict[str, Artifact] = {}
    by_run: dict[object, set[str]] = {}
    for entry in given.order_by("artifact__created_at", "artifact_id"):
        artifacts.setdefault(entry.sha256, entry.artifact)
        by_run.setdefault(entry.run_id, set()).add(entry.sha256)
    points: dict[tuple[str, str], list[float]] = {}
    unread = 0
    for file in files:
        matches = matches_in(file)
        unread += matches is None
        for first, second, pairs in matches or ():
            if first == second or not {first, second} <= by_run.get(file.run_id, set()) or not sum(pairs):
                continue
            one = sum(place * count for place, count in enumerate(pairs)) / 2
            games = GAMES_OF_PAIR * sum(pairs)
            key = (first, second) if first < second else (second, first)
            sums = points.setdefault(key, [0.0, 0.0])
            sums[0] += one if key[0] == first else games - one
            sums[1] += games
    return [Met(*key, *sums) for key, sums in sorted(points.items())], artifacts, unread


def _games_of(met: list[Met[str]]) -> Counter[str]:
    games: Counter[str] = Counter()
    for each in met:
        games.update({each.first: int(each.games), each.second: int(each.games)})
    return games


def _others(met: list[Met[str]]) -> dict[str, set[str]]:
    """Whom each has met."""
    others: dict[str, set[str]] = {}
    for each in met:
        others.setdefault(each.first, set()).add(each.second)
        others.setdefault(each.second, set()).add(each.first)
    return others


def _apart(met: list[Met[str]], artifacts: Mapping[str, Artifact]) -> list[Apart]:
    others = _others(met)
    return [
        Apart(
            artifacts[sha], games, tuple(sorted((artifacts[other] for other in others[sha]), key=lambda made: (made.created_at, made.pk)))
        )
        for sha, games in _games_of(met).most_common()
    ]


def _reference(met: list[Met[str]], artifacts: Mapping[str, Artifact]) -> str:
    """The earliest made of those who are connected by the most games."""
    waiting = sorted(_games_of(met), key=lambda sha: (artifacts[sha].created_at, artifacts[sha].pk))
    games, best, most = _games_of(met), waiting[0], 0
    while waiting:
        group = set(connected(met, waiting[0]))
        count = sum(games[sha] for sha in group)
        if count > most:
            best, most = waiting[0], count
        waiting = [sha for sha in waiting if sha not in group]
    return best


def _players(met: list[Met[str]], ratings: Mapping[str, Rating], artifacts: Mapping[str, Artifact], reference: str) -> list[Player]:
    points: dict[str, float] = dict.fromkeys(ratings, 0.0)
    others = _others(met)
    for each in met:
        points[each.first] += each.points
        points[each.second] += each.games - each.points
    games = _games_of(met)
    ordered = sorted(ratings, key=lambda sha: (-ratings[sha].elo, artifacts[sha].created_at, sha))
    return [
        Player(
            rank=1 + sum(other.elo > ratings[sha].elo for other in ratings.values()), artifact=artifacts[sha], rating=ratings[sha],
            points=points[sha], games=games[sha], met=frozenset(others[sha]), is_reference=sha == reference,
        )
        for sha in ordered
    ]  # fmt: skip
