"""An arena: every two players play a match with alternating colours; ratings of all of them by Bradley and Terry's model, in Elo.

Inputs: checkpoints. The first is the candidate that is scored; what it is scored against is the reference, whose rating is 0: the network
of random weights, or the second checkpoint where that is left out. More players on request: a random mover, GNU Go at given levels.
With `sequential` the match of these two ends as soon as it is decided with stated error rates whether the candidate is `elo0` or `elo1` stronger;
a rating from a match that ended so is larger in size than the truth on average, so what is claimed then is the answer, not the rating.
"""

import json
from collections.abc import Iterator
from itertools import combinations

from checkpoints import RANDOM_CHANNELS, find_checkpoints, random_checkpoint
from game import Game
from gtp_peer import PeerError, Refused
from matches import note_capped, points_of_first, read_match, share_error, write_games, yes
from play import Match
from players import Player, network_player, play_games, players_of_gnugo, random_mover
from ratings import NORMAL_95, NoRating, Pairing, Ratings, rate
from run_folder import Job, JobError, run
from sequential_match import Answer, outcomes_of, play_until_answered, read_question

PARAMETERS = (
    "size", "komi", "games", "simulations", "exploration", "random_moves", "move_cap", "play_on", "random_weights",
    "random_mover", "gnugo_levels", "seconds_per_answer", "prior_draws", "benchmark", "sequential", "elo0", "elo1", "alpha", "beta",
)  # fmt: skip
MOST_PLAYERS = 32
Pair = tuple[Player, Player]


def main(job: Job) -> None:
    job.allow(*PARAMETERS)
    match, games = read_match(job), job.whole("games", 24, 2, 10_000)
    prior = job.number("prior_draws", 1, 0.01, 100)
    benchmark = job.text("benchmark", "arena-elo-regression")
    players = find_players(job)
    candidate, reference = players[0], players[1]
    results: dict[Pair, list[Game]] = {}
    question, answer = read_question(job), None
    try:
        if yes(job, "sequential", False):
            results[candidate, reference], answer = play_until_answered(
                job, question, games, lambda batch, count: play_games(match, candidate, reference, count, [job.seed, 6, batch])
            )
        for pair, played in play_pairs(job, match, players, games, done=tuple(results)):
            results[pair] = played
    except (PeerError, Refused) as exc:
        raise JobError(str(exc)) from exc
    finally:
        for player in players:
            player.close()
    ratings = rate_all(results, reference.name, prior)
    write_results(job, results, ratings, reference.name, prior, answer)
    write_pairs(job, results)

    rating = ratings.players[candidate.name]
    met = len(results[candidate, reference])
    points, samples = points_of_first(results[candidate, reference]), met + games * (len(players) - 2)
    said = {"benchmark": benchmark, "subject": candidate.name}
    job.event("score", **said, metric="elo", value=rating.elo, stderr=rating.elo_error, samples=samples)
    job.event("score", **said, metric="win_rate", value=points / met, stderr=share_error(points, met), samples=met)
    if answer is not None:
        job.event("note", text=f"{candidate.name} against {reference.name}: {answer}")
    low, high = rating.elo_interval
    print(f"{candidate.name}: {rating.elo:+.0f} Elo against {reference.name}, 95 % from {low:+.0f} to {high:+.0f}", flush=True)


def find_players(job: Job) -> list[Player]:
    """The candidate, the reference, then all others. Raises JobError where there are not two."""
    checkpoints = find_checkpoints(job)
    players = [network_player(each.name, each.weights, each.sha256) for each in checkpoints]
    if not players:
        raise JobError("no checkpoint among the inputs; add an artifact of kind checkpoint")
    if yes(job, "random_weights", True):
        players.insert(1, network_player("random-weights", random_checkpoint(job, RANDOM_CHANNELS).weights))
    if yes(job, "random_mover", False):
        players.append(random_mover())
    players += players_of_gnugo(job, job.number("seconds_per_answer", 20, 0.1, 600))
    names = [player.name for player in players]
    if len(players) < 2:
        raise JobError("one checkpoint alone has nobody to play; add another, or let random_weights play")
    if len(set(names)) < len(names) or len(names) > MOST_PLAYERS:
        raise JobError(f"players need different names, {MOST_PLAYERS} at most: {', '.join(names)}")
    return players


def play_pairs(
    job: Job, match: Match, players: list[Player], games: int, done: tuple[Pair, ...] = ()
) -> Iterator[tuple[Pair, list[Game]]]:  # fmt: skip
    """All matches but those that were played already."""
    pairs = list(combinations(players, 2))
    for number, (first, second) in enumerate(pairs):
        if (first, second) in done:
            continue
        played = play_games(match, first, second, games, [job.seed, 5, number])
        points = points_of_first(played)
        text = f"{first.name} {points:g} : {games - points:g} {second.name}"
        print(text, flush=True)
        job.event("progress", done=number + 1, total=len(pairs), text=text)
        yield (first, second), played


def rate_all(results: dict[Pair, list[Game]], reference: str, prior: float) -> Ratings:
    """Ratings from all matches; colours alternate, so Black's advantage falls to both alike and is not fitted."""
    pairings = [Pairing(first.name, second.name, points_of_first(played), len(played)) for (first, second), played in results.items()]
    try:
        return rate(pairings, reference, prior_draws=prior)
    except NoRating as exc:
        raise JobError(f"no ratings: {exc}") from exc


def write_results(
    job: Job, results: dict[Pair, list[Game]], ratings: Ratings, reference: str, prior: float, answer: Answer | None
) -> None:  # fmt: skip
    everything = [played for games in results.values() for played in games]
    note_capped(job, everything)
    named = (
        (played, *((first.name, second.name) if number % 2 == 0 else (second.name, first.name)))
        for (first, second), games in results.items()
        for number, played in enumerate(games)
    )
    write_games(job.output("games.sgf"), named)
    job.event("artifact", path="outputs/games.sgf", name="arena-games", kind="games", metadata={"games": len(everything)})
    rated = {
        name: {"elo": rating.elo, "standard_error": rating.elo_error, "interval_95": list(rating.elo_interval)}
        for name, rating in ratings.players.items()
    }
    matches = [
        {"first": first.name, "second": second.name, "points_of_first": points_of_first(games), "games": len(games)}
        for (first, second), games in results.items()
    ]
    document = {
        "schema": "autogo.ratings.v1", "model": "Bradley-Terry", "reference": reference, "prior_draws": prior, "normal_quantile": NORMAL_95,
        "log_likelihood": ratings.log_likelihood, "ratings": rated, "matches": matches,
        "sequential_test": answer.as_json() if answer else None,
    }  # fmt: skip
    job.output("ratings.json").write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    job.event("artifact", path="outputs/ratings.json", name="ratings", kind="ratings", metadata={"players": len(rated)})
    for name, rating in ratings.players.items():
        job.metric(f"elo_{name}", rating.elo, 0)


def write_pairs(job: Job, results: dict[Pair, list[Game]]) -> None:
    """How pairs of games with colours swapped ended, for whoever has to tell which of two checkpoints is the stronger."""
    matches = [
        {"first": first.sha256, "second": second.sha256, "pairs": list(outcomes_of(games[: len(games) - len(games) % 2]))}
        for (first, second), games in results.items()
        if first.sha256 and second.sha256
    ]
    if matches:
        document = {"schema": "labsite.pairs.v1", "matches": matches}
        job.output("pairs.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        job.event("artifact", path="outputs/pairs.json", name="pairs", kind="pairs", metadata={"matches": len(matches)})


run(main)
