"""Looking for a text over both floors: in one workspace, in all that the reader is a member of, and straight to the thing that an id names.

Workspaces are opened one after the other, each with the rights that the reader has there: what they may not list, they do not find.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from runs.models import Artifact, Attempt, Evaluation, Run, Sweep
from runs.queries.artifact import RECORDS
from workspaces import ids, scope
from workspaces.access import Actor, Kind, Permission, Rights, rights_of
from workspaces.models import (
    Agent,
    AgentVersion,
    Approval,
    AuditEvent,
    Benchmark,
    Contract,
    Dataset,
    DatasetVersion,
    NotFound,
    Pool,
    Row,
    Workspace,
)
from workspaces.queries.search import MOST, REGISTERED, SHARED, Found, Hit, Noun, begins_with, by_id, ranked
from workspaces.search_text import Wanted

MOST_WORKSPACES = 20


def find_runs(wanted: Wanted, slug: str) -> Found:
    """By name, number and id."""
    rows, also = by_id(Run.objects.all(), wanted, number=True)
    columns = ("name", "number", "status", "benchmark__slug", "agent__slug")
    listed, total = ranked(rows, wanted, names=("name",), columns=columns, also=also)
    hits = []
    for row in listed:
        public_id = ids.canonical(Run.prefix, None, row["pk"])
        hits.append(
            Hit(row["name"], f"#{row['number']} · {row['agent__slug']} on {row['benchmark__slug']}", public_id, row["pk"],
                reverse("run", args=[slug, public_id]), row["rank"], row["created_at"], status=row["status"])
        )  # fmt: skip
    return Found(hits, total)


def find_sweeps(wanted: Wanted, slug: str) -> Found:
    rows, also = by_id(Sweep.objects.all(), wanted, number=True)
    columns = ("name", "number", "status", "members", "benchmark__slug", "agent__slug")
    listed, total = ranked(rows, wanted, names=("name",), columns=columns, also=also)
    hits = []
    for row in listed:
        public_id = ids.canonical(Sweep.prefix, None, row["pk"])
        detail = f"#{row['number']} · {row['members']:,} of {row['agent__slug']} on {row['benchmark__slug']}"
        hits.append(
            Hit(row["name"], detail, public_id, row["pk"], reverse("sweep", args=[slug, public_id]), row["rank"], row["created_at"],
                status=row["status"])
        )  # fmt: skip
    return Found(hits, total)


def find_artifacts(wanted: Wanted, slug: str) -> Found:
    """Results of runs, by name, id and the first digits of their SHA-256. What every run writes of itself is left out, as on the list."""
    rows, also = by_id(Artifact.objects.filter(deleted_at=None).exclude(kind__in=RECORDS), wanted)
    columns = ("name", "path", "kind", "run__name", "blob__sha256")
    listed, total = ranked(rows, wanted, names=("name",), columns=columns, also=begins_with("blob__sha256", wanted, also))
    hits = []
    for row in listed:
        detail = f"{row['kind']} of {row['run__name']} · {row['blob__sha256'][: max(12, len(wanted.sha256))]}"
        public_id = ids.canonical(Artifact.prefix, None, row["pk"])
        url = reverse("artifact", args=[slug, public_id])
        hits.append(Hit(row["name"] or row["path"], detail, public_id, row["pk"], url, row["rank"], row["created_at"]))
    return Found(hits, total)


NOUNS = (
    Noun("runs", Kind.RUN, find_runs, "run-list"),
    Noun("sweeps", Kind.RUN, find_sweeps),
    *REGISTERED,
    Noun("artifacts", Kind.ARTIFACT, find_artifacts, "artifact-list"),
    *SHARED,
)


def search_here(wanted: Wanted, rights: Rights, slug: str) -> list[tuple[Noun, Found]]:
    """What there is of each noun in the open workspace, whose slug is `slug`, within the reader's rights; nouns without any are left out."""
    found = [(noun, noun.find(wanted, slug)) for noun in NOUNS if rights.allows(Permission.VIEW, noun.kind)]
    return [(noun, some) for noun, some in found if some.total]


@dataclass(frozen=True, slots=True)
class Place:
    """A workspace that was looked through, and what of it is in a group: how many hits in all, and the list that shows them."""

    workspace: Workspace
    total: int
    url: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """The hits of one noun over all workspaces, the reader's own first and the best of each before the others."""

    name: str
    hits: list[tuple[Hit, Workspace]]
    total: int
    places: list[Place]


def search_all(
    wanted: Wanted, actor: Actor, workspaces: Sequence[Workspace], extra: Callable[[Rights, Workspace], Found] | None = None
) -> list[Group]:
    """Look through workspaces in their order; no scope may be open. The first stands before the others, whose hits are ranked together.

    `extra` finds what only the caller knows of, such as pages.
    """
    hits: dict[str, list[tuple[int, Hit, Workspace]]] = {}
    places: dict[str, list[Place]] = {}
    for order, workspace in enumerate(workspaces[:MOST_WORKSPACES]):
        with scope.open_workspace(workspace.pk):
            rights = rights_of(actor, workspace.pk)
            if not rights.may_enter:
                continue
            found = [(noun.name, noun.list_name, some) for noun, some in search_here(wanted, rights, workspace.slug)]
            if extra is not None:
                found.append(("pages", "", extra(rights, workspace)))
        for name, list_name, some in found:
            if some.total:
                url = f"{reverse(list_name, args=[workspace.slug])}?{urlencode({'q': wanted.text})}" if list_name else ""
                places.setdefault(name, []).append(Place(workspace, some.total, url))
                hits.setdefault(name, []).extend((min(order, 1), hit, workspace) for hit in some.hits)
    names = [*(noun.name for noun in NOUNS), "pages"]
    return [_group(name, hits[name], places[name]) for name in names if name in hits]


def _group(name: str, hits: list[tuple[int, Hit, Workspace]], places: list[Place]) -> Group:
    newest_first = sorted(hits, key=lambda entry: entry[1].created_at, reverse=True)
    best = sorted(newest_first, key=lambda entry: (entry[0], entry[1].rank))[:MOST]
    return Group(name, [(hit, workspace) for _, hit, workspace in best], sum(place.total for place in places), places)


# --- Straight to what an id names ---------------------------------------------------------------------------------------------------------


def _own(name: str) -> Callable[[Any, str], str]:
    return lambda row, slug: reverse(name, args=[slug, row.public_id])


def _of_run(row: Any, slug: str) -> str:
    return reverse("run", args=[slug, ids.canonical(Run.prefix, None, row.run_id)])


def _version(name: str, parent: str) -> Callable[[Any, str], str]:
    def url(row: Any, slug: str) -> str:
        return f"{reverse(name, args=[slug, getattr(row, parent).public_id])}?{urlencode({'version': row.number})}"

    return url


def _contract(row: Contract, slug: str) -> str:
    return reverse("benchmark", args=[slug, row.benchmark.public_id])


_VIEW, _AUDIT = Permission.VIEW, Permission.VIEW_AUDIT
PAGES: tuple[tuple[type[Row], Permission, Kind, Callable[[Any, str], str]], ...] = (
    (Run, _VIEW, Kind.RUN, _own("run")),
    (Sweep, _VIEW, Kind.RUN, _own("sweep")),
    (Artifact, _VIEW, Kind.ARTIFACT, _own("artifact")),
    (Attempt, _VIEW, Kind.RUN, _of_run),
    (Evaluation, _VIEW, Kind.EVALUATION, _own("evaluation")),
    (Benchmark, _VIEW, Kind.BENCHMARK, _own("benchmark")),
    (Contract, _VIEW, Kind.BENCHMARK, _contract),
    (Dataset, _VIEW, Kind.DATASET, _own("dataset")),
    (DatasetVersion, _VIEW, Kind.DATASET, _version("dataset", "dataset")),
    (Agent, _VIEW, Kind.AGENT, _own("agent")),
    (AgentVersion, _VIEW, Kind.AGENT, _version("agent", "agent")),
    (Pool, _VIEW, Kind.POOL, _own("pool")),
    (Approval, _VIEW, Kind.APPROVAL, _own("approval")),
    (AuditEvent, _AUDIT, Kind.AUDIT, _own("event")),
)


def page_of_id(text: str, actor: Actor, workspaces: Sequence[Workspace]) -> str:
    """Address of the one thing that `text` names as a whole id (`run_…`, `bench_go`, `ws_…`, a UUID), where the reader may see it; else empty.

    The same slug may stand in several workspaces: the first is meant, and where it is not in the first, nothing is, unless only one has it.
    No scope may be open.
    """
    for workspace in workspaces:
        if ids.same_name(text) == ids.same_name(workspace.public_id) or ids.as_uuid(text.removeprefix("ws_")) == workspace.pk:
            return reverse("home", args=[workspace.slug])
    meant = [page for page in PAGES if text.startswith(f"{page[0].prefix}_")] if ids.as_uuid(text) is None else list(PAGES)
    if not meant:
        return ""
    found = []
    for order, workspace in enumerate(workspaces[:MOST_WORKSPACES]):
        with scope.open_workspace(workspace.pk):
            url = _page_here(text, rights_of(actor, workspace.pk), workspace.slug, meant)
        if url and order == 0:
            return url
        if url:
            found.append(url)
    return found[0] if len(found) == 1 else ""


def _page_here(text: str, rights: Rights, slug: str, pages: Sequence[tuple[type[Row], Permission, Kind, Callable[[Any, str], str]]]) -> str:
    for model, permission, kind, url in pages:
        if rights.may_enter and rights.allows(permission, kind):
            try:
                return url(model.objects.find(text), slug)
            except NotFound:
                continue
    return ""
