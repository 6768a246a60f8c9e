"""A match that ends as soon as it has answered its question, by the sequential test of sequential.py, or when its games are used up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from game import Game
from run_folder import Job, JobError
from sequential import Question, Verdict, log_likelihood_ratio

BATCH = 16  # games between two looks; whole pairs with colours swapped


@dataclass(frozen=True)
class Answer:
    """What the test says after `games` games; `outcomes` counts pairs with swapped colours by their points: 0, 1/2, 1, 3/2, 2."""

    question: Question
    ratio: float
    verdict: Verdict
    outcomes: tuple[int, ...]
    games: int

    def __str__(self) -> str:
        low, high = self.question.bounds
        said = {
            Verdict.H1: f"at least {self.question.elo1:+g} Elo is accepted against {self.question.elo0:+g}",
            Verdict.H0: f"no more than {self.question.elo0:+g} Elo is accepted against {self.question.elo1:+g}",
            Verdict.OPEN: f"neither {self.question.elo0:+g} nor {self.question.elo1:+g} Elo is accepted",
        }[self.verdict]
        rates = f"error rates {self.question.alpha:g} and {self.question.beta:g}"
        return f"After {self.games} games {said}: log-likelihood ratio {self.ratio:.2f} of ({low:.2f}, {high:.2f}), {rates}."

    def as_json(self) -> dict[str, object]:
        asked = self.question
        return {
            "elo0": asked.elo0, "elo1": asked.elo1, "alpha": asked.alpha, "beta": asked.beta, "bounds": list(asked.bounds),
            "log_likelihood_ratio": self.ratio, "verdict": self.verdict.value, "pairs_by_points": list(self.outcomes), "games": self.games,
        }  # fmt: skip


def read_question(job: Job) -> Question:
    """The parameters elo0, elo1, alpha, beta. Raises JobError."""
    names = (("elo0", 0, -1000, 1000), ("elo1", 50, -1000, 1000), ("alpha", 0.05, 0.0001, 0.4), ("beta", 0.05, 0.0001, 0.4))
    try:
        return Question(*(job.number(*name) for name in names))
    except ValueError as exc:
        raise JobError(str(exc)) from exc


def play_until_answered(
    job: Job, question: Question, games: int, play: Callable[[int, int], Sequence[Game]]
) -> tuple[list[Game], Answer]:  # fmt: skip
    """`play(batch, games)` plays so many games, the first player having Black in those of even number. At most `games`, rounded down to pairs."""
    played: list[Game] = []
    most = games - games % 2
    for batch in range(-(-most // BATCH)):
        played += play(batch, min(BATCH, most - len(played)))
        answer = answer_of(question, played)
        job.metric("log_likelihood_ratio", answer.ratio, len(played))
        if answer.verdict != Verdict.OPEN:
            break
    return played, answer


def answer_of(question: Question, played: Sequence[Game]) -> Answer:
    outcomes = outcomes_of(played)
    ratio = log_likelihood_ratio(outcomes, question.elo0, question.elo1)
    return Answer(question, ratio, question.verdict(ratio), outcomes, len(played))


def outcomes_of(played: Sequence[Game]) -> tuple[int, ...]:
    """Of games in pairs: the first player has Black in the first of each, White in the second. How often it had 0, 1/2, 1, 3/2 and 2 points."""
    outcomes = [0] * 5
    for first, second in zip(played[::2], played[1::2], strict=True):
        outcomes[round(2 * (first.black_points + 1 - second.black_points))] += 1
    return tuple(outcomes)
