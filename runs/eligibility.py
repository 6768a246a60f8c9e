"""What an artifact is promoted upon: checks that hold, do not hold, or that nobody can tell. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    PASS = "pass"  # noqa: S105  # the word of a verdict
    FAIL = "fail"
    UNKNOWN = "unknown"  # never passes


@dataclass(frozen=True, slots=True)
class Link:
    """Where a fact can be looked at: name and argument of a page of the workspace."""

    page: str
    argument: str
    label: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One check. `words` say why, with the arithmetic and the way out; `note` is what may change without the fact changing (a rank as others
    score), so it is shown and not part of what an approver agrees to. `more` is how many things there are beside those that `evidence` names."""

    key: str
    name: str
    verdict: Verdict
    observed: str
    required: str
    words: str = ""
    evidence: tuple[Link, ...] = ()
    note: str = ""
    more: int = 0

    @property
    def agreed(self) -> dict[str, Any]:
        """The part that an approval is bound to, as JSON."""
        return {
            "key": self.key,
            "name": self.name,
            "verdict": self.verdict.value,
            "observed": self.observed,
            "required": self.required,
            "words": self.words,
            "evidence": [{"page": link.page, "argument": link.argument, "label": link.label} for link in self.evidence],
            **({"more": self.more} if self.more else {}),
        }

    @property
    def stored(self) -> dict[str, Any]:
        return self.agreed | {"note": self.note}


NAMED = 5  # things named in one sentence
MOST_LINKED = 100  # beside it; pages fold what is more than a few


def linked(links: Sequence[Link]) -> dict[str, Any]:
    """`evidence` and `more` of a fact: the first of what it can be looked at by, and how many others there are."""
    return {"evidence": tuple(links[:MOST_LINKED]), "more": max(0, len(links) - MOST_LINKED)}


def facts_from(stored: Iterable[dict[str, Any]]) -> list[Fact]:
    """Facts as a row keeps them."""
    return [
        Fact(**{**entry, "verdict": Verdict(entry["verdict"]), "evidence": tuple(Link(**link) for link in entry["evidence"])})
        for entry in stored
    ]


def is_eligible(facts: Sequence[Fact]) -> bool:
    return bool(facts) and all(fact.verdict is Verdict.PASS for fact in facts)


# Told by itself in a while: data that is being read for comparing, a run that is about to end.
TOLD_SOON = frozenset({"overlap", "contamination", "site_contamination", "run"})
ASKED_FOR = frozenset({"reviewer_approval", "site_reviewer_approval"})  # by putting forward, once all else holds


def may_be_told_soon(facts: Iterable[Fact]) -> bool:
    """Is all that is in the way something that nobody can tell yet, and that is told without anybody's doing? What wants more games, or a score that
    nobody has asked for, is not. Reviewers' word is asked for after that."""
    lacking = [fact for fact in facts if fact.verdict is not Verdict.PASS]
    others = [fact for fact in lacking if not (fact.key in ASKED_FOR and fact.verdict is Verdict.UNKNOWN)]
    return bool(others) and all(fact.verdict is Verdict.UNKNOWN and fact.key in TOLD_SOON for fact in others)


def in_the_way(facts: Iterable[Fact]) -> list[str]:
    """A sentence for each check that does not pass, what fails first."""
    lacking = sorted((fact for fact in facts if fact.verdict is not Verdict.PASS), key=lambda fact: fact.verdict is Verdict.UNKNOWN)
    return [f"{fact.name}: {fact.observed}. {fact.words}".strip() for fact in lacking]


def summary(facts: Sequence[Fact]) -> str:
    """`9 of 9 checks hold`; `7 of 9 checks hold, 1 does not, 1 cannot be told`."""
    count = {verdict: sum(fact.verdict is verdict for fact in facts) for verdict in Verdict}
    parts = [f"{count[Verdict.PASS]} of {len(facts)} checks hold"]
    if count[Verdict.FAIL]:
        parts.append(f"{count[Verdict.FAIL]} {'does' if count[Verdict.FAIL] == 1 else 'do'} not")
    if count[Verdict.UNKNOWN]:
        parts.append(f"{count[Verdict.UNKNOWN]} cannot be told")
    return ", ".join(parts)
