"""Is one artifact stronger than another: the sequential test over the games that the arena counts, in the order in which their runs ended.

The order is labsite's, and the first bound that is passed decides, so that nobody chooses afterwards where to stop. What was withdrawn is left out as
if it had never been played: what the test says then may be another thing.
"""

from dataclasses import dataclass

from runs.models import Artifact, Run
from runs.policy.sequential import Answer, course
from runs.queries.arena import games_between
from workspaces.audit import Refusal
from workspaces.models import Contract


@dataclass(frozen=True, slots=True)
class Question:
    """H0: the first is `elo0` stronger than the second; H1: it is `elo1` stronger. `alpha`: how often H1 is accepted where H0 is true, at most;
    `beta`: the other way round."""

    elo0: float
    elo1: float
    alpha: float
    beta: float


USUAL = Question(elo0=0.0, elo1=50.0, alpha=0.05, beta=0.05)


@dataclass(frozen=True, slots=True)
class Played:
    """`pairs`: how often the first had 0, 1/2, 1, 3/2 and 2 points of a pair in this run; `after`: what the test says then, None once it has
    answered."""

    run: Run
    pairs: tuple[int, ...]
    after: Answer | None


@dataclass(frozen=True, slots=True)
class HeadToHead:
    """`played` in the order in which it counts. `is_cut`: there are more runs than were read, and no answer among these."""

    first: Artifact
    second: Artifact
    question: Question
    played: list[Played]
    said: Answer
    is_cut: bool

    @property
    def counted(self) -> list[Played]:
        return [each for each in self.played if each.after is not None]


def head_to_head(contract: Contract, first: Artifact, second: Artifact, question: Question) -> HeadToHead:
    """Reads files from the store. Raises Refusal where it is no question."""
    if first.blob.sha256 == second.blob.sha256:
        raise Refusal("These two are the same content; nothing is stronger than itself.", field="second")
    if question.elo0 >= question.elo1:
        raise Refusal(f"H1 must be more Elo than H0, and {question.elo1:g} is not more than {question.elo0:g}.", field="elo1")
    found, is_cut = games_between(contract, first, second)
    before, *after = course((batch.pairs for batch in found), question.elo0, question.elo1, question.alpha, question.beta)
    said = after[-1] if after else before
    told = [*after, *([None] * (len(found) - len(after)))]
    played = [Played(batch.file.run, batch.pairs, answer) for batch, answer in zip(found, told, strict=True)]
    return HeadToHead(first, second, question, played, said, is_cut=is_cut and not said.accepted)
