"""May a dataset version be trusted beside the holdouts of its workspace? What the checks found, and what a person says against it.

Promotion asks `verdict_of`: a version that is not checked against every holdout yet, or could not be, is never promotable. What was found last
stays until it is found anew: a version that is about to be compared again is unchecked, and still as contaminated as it was.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from django.contrib.postgres.aggregates import StringAgg
from django.db.models import Count, F, Q, QuerySet, Sum, TextField, Value
from django.db.models.functions import MD5, Cast, Coalesce, Concat

from runs.models import OverlapCheck, RecordIndex, Ruling
from runs.overlap.method import METHOD
from workspaces import kept_query
from workspaces.models import DatasetVersion
from workspaces.units import plural

HOLDOUT = DatasetVersion.Role.HOLDOUT
DIGITS = 16  # of a digest
LAST = "last_"


class State(StrEnum):
    """The verdict on a version."""

    UNCHECKED = "unchecked"
    CONTAMINATED = "contaminated"
    SUSPICIOUS = "suspicious"
    CLEAN = "clean"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`state` is what holds: a person's word while `ruling` is there, else what the checks say, which is `checked`. `reason` says why, in a
    sentence; `said` what a ruling is held against, `said_words` the same for people. `is_reusable` is None until somebody has said so, with
    `reuse.reason`."""

    state: State
    reason: str
    checked: State
    checked_reason: str
    said: str
    said_words: str
    ruling: Ruling | None = None
    reuse: Ruling | None = None
    lapsed: Ruling | None = None  # a person's word of what the checks said before
    waiting: Ruling | None = None  # a person's word that may hold again once all is compared
    contaminated: str = ""  # why it is so by the last word on it, of checks or a person; empty where it is not

    @property
    def is_reusable(self) -> bool | None:
        return self.reuse.is_reusable if self.reuse else None

    @property
    def is_promotable(self) -> bool:
        """Suspicious records want a person's word first."""
        return self.state == State.CLEAN

    @property
    def is_contaminated(self) -> bool:
        """By the last word, also while it is compared anew."""
        return bool(self.contaminated)

    @property
    def was_contaminated(self) -> bool:
        """And is compared anew just now."""
        return self.is_contaminated and self.state != State.CONTAMINATED

    @property
    def takes_a_word(self) -> bool:
        """Is there something that a person could overrule, or a word to take back?"""
        return self.checked != State.UNCHECKED or self.waiting is not None


@dataclass(frozen=True, slots=True)
class Found:
    """What the checks of one version have found together."""

    checks: int = 0
    contaminated: int = 0
    suspicious: int = 0
    unknown: int = 0
    exact: int = 0
    near: int = 0
    digest: str = ""  # of the checks that are not clean: the other side, verdict, exact and near of each

    @property
    def words(self) -> str:
        return (
            f"{self.contaminated} contaminated, {self.suspicious} suspicious, {self.unknown} unknown; {self.exact} exact, {self.near} near"
        )

    @property
    def said(self) -> str:
        """The words, and of what they are said: the same counts of another holdout are another finding. A ruling from before there was a digest
        names none, and so holds no longer than everything is clean."""
        return f"{self.words}; {self.digest}" if self.digest else self.words


@dataclass(slots=True)
class _Facts:
    """Of the versions that are asked about, everything the verdicts rest on."""

    holdouts: int = 0
    others: int = 0
    found: dict[uuid.UUID, Found] = field(default_factory=dict)
    last: dict[uuid.UUID, Found] = field(default_factory=dict)  # with what is to be found anew
    indexes: dict[uuid.UUID, RecordIndex] = field(default_factory=dict)
    rulings: dict[tuple[uuid.UUID, str], Ruling] = field(default_factory=dict)


def verdict_of(version: DatasetVersion) -> Verdict:
    return verdicts_of([version])[version.pk]


def verdicts_of(versions: Iterable[DatasetVersion]) -> dict[uuid.UUID, Verdict]:
    """Verdicts by key, in a fixed number of statements. A training version is held against every holdout version of the workspace, a holdout
    against everything that is none."""
    rows = list(versions)
    if not rows:
        return {}
    facts = _facts(rows)
    return {version.pk: _verdict(version, facts) for version in rows}


def said_to_be(*states: State) -> set[uuid.UUID]:
    """Keys of the versions, holdouts aside, of which a check says one of these, also one that is to be made anew, or a person ever has: only of
    these can it be the verdict. One query."""
    return {key for (key,) in kept_query.ask(_said_to_be, states)}


def _said_to_be(states: tuple[State, ...]) -> "QuerySet[Any, Any]":
    checks = OverlapCheck.objects.filter(verdict__in=states).order_by()
    rulings = Ruling.objects.filter(about=Ruling.About.VERDICT, verdict__in=states).order_by()
    said = Q(pk__in=checks.values("version")) | Q(pk__in=rulings.values("version"))
    return DatasetVersion.objects.filter(said).exclude(role=HOLDOUT).order_by().values_list("pk")


def _facts(versions: list[DatasetVersion]) -> _Facts:
    keys = [version.pk for version in versions]
    facts, roles = _Facts(), dict(kept_query.ask(_roles))
    facts.holdouts = roles.pop(HOLDOUT, 0)
    facts.others = sum(roles.values())
    for side, asked in (("version", keys), ("holdout", [version.pk for version in versions if version.role == HOLDOUT])):
        for row in kept_query.ask(_sums, side, versions=asked) if asked else ():
            facts.found[row[side]], facts.last[row[side]] = _found(row, ""), _found(row, LAST)
    facts.indexes = {row.version_id: row for row in kept_query.rows(RecordIndex, version__in=keys, method=METHOD)}
    facts.rulings = {(row.version_id, row.about): row for row in kept_query.ask(_rulings, versions=keys)}
    return facts


def _roles() -> "QuerySet[Any, Any]":
    return DatasetVersion.objects.order_by().values_list("role").annotate(Count("pk"))


def _rulings(versions: Any) -> "QuerySet[Ruling]":
    rulings = Ruling.objects.filter(version=versions).select_related("ruled_by")
    return rulings.order_by("version", "about", "-number").distinct("version", "about")


def _sums(side: str, versions: Any) -> "QuerySet[Any, dict[str, Any]]":
    """What was found, and under names with LAST the same with what is to be found anew."""
    kinds = OverlapCheck.Verdict
    other = "holdout" if side == "version" else "version"
    parts = [
        part for name in (other, "verdict", "exact", "near") for part in (Cast(name, TextField()), Value(" ", output_field=TextField()))
    ]
    sums: dict[str, Any] = {}
    for name, which in (("", Q(method=METHOD)), (LAST, Q())):
        told = StringAgg(Concat(*parts, output_field=TextField()), ";", filter=which & ~Q(verdict=kinds.CLEAN), order_by=F(other))
        sums |= {
            f"{name}checks": Count("pk", filter=which),
            f"{name}contaminated": Count("pk", filter=which & Q(verdict=kinds.CONTAMINATED)),
            f"{name}suspicious": Count("pk", filter=which & Q(verdict=kinds.SUSPICIOUS)),
            f"{name}unknown": Count("pk", filter=which & Q(verdict=kinds.UNKNOWN)),
            f"{name}exact_sum": Sum("exact", filter=which, default=0),
            f"{name}near_sum": Sum("near", filter=which, default=0),
            f"{name}digest": Coalesce(MD5(told), Value(""), output_field=TextField()),
        }
    found: QuerySet[Any, dict[str, Any]] = OverlapCheck.objects.filter(**{side: versions}).order_by().values(side).annotate(**sums)
    return found


def _found(row: dict[str, Any], name: str) -> Found:
    checks, contaminated, suspicious, unknown, exact, near, digest = (
        row[f"{name}{part}"] for part in ("checks", "contaminated", "suspicious", "unknown", "exact_sum", "near_sum", "digest")
    )
    return Found(checks, contaminated, suspicious, unknown, int(exact), int(near), digest[:DIGITS])


def _verdict(version: DatasetVersion, facts: _Facts) -> Verdict:
    found = facts.found.get(version.pk, Found())
    index = facts.indexes.get(version.pk)
    checked, reason = _checked(version, found, index, facts)
    ruling = facts.rulings.get((version.pk, Ruling.About.VERDICT))
    reuse = facts.rulings.get((version.pk, Ruling.About.REUSE))
    last = _last_contaminated(version, facts.last.get(version.pk, Found()), ruling)
    known = Verdict(checked, reason, checked, reason, found.said, found.words, reuse=reuse, contaminated=last)
    if ruling is None or not ruling.verdict:
        return known
    if checked == State.UNCHECKED:
        return replace(known, waiting=ruling)
    if ruling.said != found.said:
        return replace(known, lapsed=ruling)
    missing = _missing(version, found, index, facts)
    if missing and ruling.verdict == State.CLEAN:  # said of what was found so far, and that is not all
        return replace(known, state=State.UNCHECKED, reason=missing, waiting=ruling)
    return replace(known, state=State(ruling.verdict), reason=ruling.reason, ruling=ruling)


def _last_contaminated(version: DatasetVersion, last: Found, ruling: Ruling | None) -> str:
    """Why it is contaminated by a person's word on what was found last, else by that."""
    if ruling is not None and ruling.verdict and ruling.said == last.said:
        return ruling.reason if ruling.verdict == State.CONTAMINATED else ""
    return _contaminated(last, version.role == HOLDOUT) if last.contaminated else ""


def _checked(version: DatasetVersion, found: Found, index: RecordIndex | None, facts: _Facts) -> tuple[State, str]:
    """The worst that the checks say. One that is missing is worse than what is only suspicious: it may find more."""
    is_held_out = version.role == HOLDOUT
    wanted, met = _met(version, facts)
    if found.contaminated:
        return State.CONTAMINATED, _contaminated(found, is_held_out)
    missing = _missing(version, found, index, facts)
    if index is None or missing:
        return State.UNCHECKED, missing
    if found.unknown:
        return State.UNKNOWN, f"It could not be compared with {found.unknown} of {met}."
    if found.suspicious:
        return State.SUSPICIOUS, _stands(found.near, is_held_out, "nearly ", plural(found.suspicious, "version", "versions"))
    if not wanted:
        return State.CLEAN, "There is nothing here that it could meet." if is_held_out else "There is no holdout here that it could meet."
    records = plural(index.records, "record", "records")
    return State.CLEAN, f"None of its {records} stands in {'the ' if wanted > 1 else ''}{met}."


def _met(version: DatasetVersion, facts: _Facts) -> tuple[int, str]:
    """How many versions it is held against, in a number and in words."""
    if version.role == HOLDOUT:
        return facts.others, plural(facts.others, "other version", "other versions")
    return facts.holdouts, plural(facts.holdouts, "holdout version", "holdout versions")


def _missing(version: DatasetVersion, found: Found, index: RecordIndex | None, facts: _Facts) -> str:
    """What keeps it from being checked, in a sentence; empty where it is."""
    wanted, met = _met(version, facts)
    if index is None:
        return "Its records have not been read yet."
    return f"It has been compared with {found.checks} of {met} so far." if found.checks < wanted else ""


def _contaminated(found: Found, is_held_out: bool) -> str:
    return _stands(found.exact, is_held_out, "", plural(found.contaminated, "version", "versions"))


def _stands(records: int, is_held_out: bool, nearly: str, versions: str) -> str:
    """What was found, in a sentence; of a holdout the records of the others are counted."""
    if is_held_out:
        return f"{plural(records, 'record', 'records')} of {versions} to train on {'stands' if records == 1 else 'stand'} {nearly}in it."
    return f"{plural(records, 'record', 'records')} of it {'stands' if records == 1 else 'stand'} {nearly}in {versions} held out."
