"""Looking for a text among the nouns of the ground floor, in the open workspace and within what the reader may list there.

A noun is one query, whatever the number of rows: matches are counted, ranked and cut in PostgreSQL.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Case, CharField, Count, IntegerField, Model, Q, QuerySet, Value, When, Window
from django.db.models.functions import Cast
from django.urls import reverse

from workspaces import ids
from workspaces.access import Kind
from workspaces.models import Agent, Approval, Benchmark, Dataset, DatasetVersion, Membership, Pool, User
from workspaces.search_text import Wanted

MOST = 8  # hits of a noun
EXACT, BEGINS, HOLDS = range(3)


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing that was found: its name, what tells it from others of that name, and the page that shows it."""

    name: str
    detail: str
    id: str
    uuid: UUID
    url: str
    rank: int
    created_at: datetime
    status: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """The best hits of a noun, and how many there are in all."""

    hits: list[Hit]
    total: int


@dataclass(frozen=True, slots=True)
class Noun:
    """What can be looked for: its plural, the kind that one must be allowed to view, and the page that lists it where that page takes a `q`."""

    name: str
    kind: Kind
    find: Callable[[Wanted, str], Found]
    list_name: str = ""


def ranked(
    rows: "QuerySet[Any]",
    wanted: Wanted,
    *,
    names: Iterable[str],
    columns: Iterable[str],
    also: Q | None = None,
    newest: str = "created_at",
) -> tuple[list[dict[str, Any]], int]:
    """The best rows whose `names` hold the text, or that are meant by `also`, as dictionaries of `columns` with `rank`; and how many there are.

    Exact names come first, then those that begin so, then the others, each newest first. Django escapes what LIKE would take as a pattern.
    """
    exact, begins, holds = Q(), Q(), Q()
    for name in names:
        exact |= Q(**{f"{name}__iexact": wanted.text})
        begins |= Q(**{f"{name}__istartswith": wanted.text})
        holds |= Q(**{f"{name}__icontains": wanted.text})
    if also:
        exact, holds = exact | also, holds | also
    whens = [When(condition, then=Value(place)) for condition, place in ((exact, EXACT), (begins, BEGINS)) if condition]
    rank = Case(*whens, default=Value(HOLDS), output_field=IntegerField())
    found = (
        rows.filter(holds)
        .annotate(rank=rank, total=Window(Count("*")))
        .order_by("rank", f"-{newest}", "-pk")
        .values("pk", "rank", "total", newest, *columns)[:MOST]
    )
    listed = list(found)
    return listed, listed[0]["total"] if listed else 0


def by_id(rows: "QuerySet[Any]", wanted: Wanted, *, number: bool = False) -> "tuple[QuerySet[Any], Q | None]":
    """Rows, and what the text means as an id of such rows, whole or as its last digits, or as their number; None where it means none."""
    meant = Q()
    if wanted.key is not None:
        meant |= Q(pk=wanted.key)
    if wanted.tail:
        rows = rows.alias(spelled=Cast("pk", CharField()))
        meant |= Q(spelled__endswith=wanted.tail)
    if number and wanted.number is not None:
        meant |= Q(number=wanted.number)
    return rows, meant or None


def find_registered(model: type[Model], page: str, wanted: Wanted, slug: str) -> Found:
    """Benchmarks, datasets, agents: by name, slug and id."""
    prefix = str(getattr(model, "prefix"))
    rows, also = by_id(getattr(model, "objects").all(), wanted)
    listed, total = ranked(rows, wanted, names=("name", "slug"), columns=("name", "slug"), also=also)
    hits = []
    for row in listed:
        public_id = ids.canonical(prefix, row["slug"], row["pk"])
        hits.append(
            Hit(row["name"] or row["slug"], row["slug"], public_id, row["pk"], reverse(page, args=[slug, public_id]), row["rank"],
                row["created_at"])
        )  # fmt: skip
    return Found(hits, total)


def find_benchmarks(wanted: Wanted, slug: str) -> Found:
    return find_registered(Benchmark, "benchmark", wanted, slug)


def find_datasets(wanted: Wanted, slug: str) -> Found:
    return find_registered(Dataset, "dataset", wanted, slug)


def find_agents(wanted: Wanted, slug: str) -> Found:
    return find_registered(Agent, "agent", wanted, slug)


def find_dataset_versions(wanted: Wanted, slug: str) -> Found:
    """By id, and by the first digits of what they hold."""
    if wanted.key is None and not wanted.tail and not wanted.sha256:
        return Found([], 0)
    rows, also = by_id(DatasetVersion.objects.all(), wanted)
    columns = ("number", "content_hash", "dataset__name", "dataset__slug", "dataset_id")
    listed, total = ranked(rows, wanted, names=(), columns=columns, also=begins_with("content_hash", wanted, also))
    hits = []
    for row in listed:
        dataset = ids.canonical(Dataset.prefix, row["dataset__slug"], row["dataset_id"])
        hits.append(
            Hit(f"{row['dataset__name']}, version {row['number']}", row["content_hash"],
                ids.canonical(DatasetVersion.prefix, None, row["pk"]), row["pk"],
                f"{reverse('dataset', args=[slug, dataset])}?version={row['number']}", row["rank"], row["created_at"])
        )  # fmt: skip
    return Found(hits, total)


def find_pools(wanted: Wanted, slug: str) -> Found:
    rows, also = by_id(Pool.objects.all(), wanted)
    listed, total = ranked(rows, wanted, names=("slug",), columns=("slug", "engine__slug", "is_accepting"), also=also)
    hits = []
    for row in listed:
        public_id = ids.canonical(Pool.prefix, row["slug"], row["pk"])
        hits.append(
            Hit(row["slug"], f"on {row['engine__slug']}", public_id, row["pk"], reverse("pool", args=[slug, public_id]), row["rank"],
                row["created_at"], status="active" if row["is_accepting"] else "paused")
        )  # fmt: skip
    return Found(hits, total)


def find_people(wanted: Wanted, slug: str) -> Found:
    """Whom some membership lets in, by the name that is shown and the name that they sign in with; each leads to their line among the members."""
    members = Membership.objects.filter(user__isnull=False).values("user")
    through = User.objects.filter(groups__in=Membership.objects.filter(group__isnull=False).values("group")).values("pk")
    rows = User.objects.filter(Q(pk__in=members) | Q(pk__in=through))
    listed, total = ranked(
        rows, wanted, names=("display_name", "username"), columns=("display_name", "username", "kind"), newest="date_joined"
    )
    hits = [
        Hit(row["display_name"] or row["username"], row["username"], row["username"], row["pk"],
            reverse("member-list", args=[slug], query={"q": row["username"]}), row["rank"], row["date_joined"])
        for row in listed
    ]  # fmt: skip
    return Found(hits, total)


def find_approvals(wanted: Wanted, slug: str) -> Found:
    """By what is asked for, and why."""
    rows, also = by_id(Approval.objects.all(), wanted)
    columns = ("subject_label", "reason", "status", "requested_by__display_name", "requested_by__username")
    listed, total = ranked(rows, wanted, names=("subject_label", "reason"), columns=columns, also=also)
    hits = []
    for row in listed:
        public_id = ids.canonical(Approval.prefix, None, row["pk"])
        asked = f"asked by {row['requested_by__display_name'] or row['requested_by__username']}"
        hits.append(
            Hit(row["subject_label"], f"{asked}: {row['reason']}" if row["reason"] else asked, public_id, row["pk"],
                reverse("approval", args=[slug, public_id]), row["rank"], row["created_at"], status=row["status"])
        )  # fmt: skip
    return Found(hits, total)


def begins_with(column: str, wanted: Wanted, also: Q | None) -> Q | None:
    """`also`, or a hash that begins with the text."""
    if not wanted.sha256:
        return also
    begins = Q(**{f"{column}__startswith": wanted.sha256})
    return begins | also if also else begins


REGISTERED = (
    Noun("benchmarks", Kind.BENCHMARK, find_benchmarks, "benchmark-list"),
    Noun("datasets", Kind.DATASET, find_datasets, "dataset-list"),
    Noun("dataset versions", Kind.DATASET, find_dataset_versions),
    Noun("agents", Kind.AGENT, find_agents, "agent-list"),
)
SHARED = (
    Noun("pools", Kind.POOL, find_pools),
    Noun("people", Kind.MEMBER, find_people, "member-list"),
    Noun("approvals", Kind.APPROVAL, find_approvals),
)
