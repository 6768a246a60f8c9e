"""`/search`: looking for a text among everything in the workspace that the caller may list."""

from typing import Annotated, Any
from uuid import UUID

from ninja import Query, Schema
from pydantic import Field

from runs.queries.search import search_here
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Line
from workspaces.audit import Refusal
from workspaces.search_text import LONGEST, Unsearchable, read

routes = Routes("search")


class HitOut(Schema):
    noun: str = Field(description="runs, sweeps, benchmarks, …")
    id: str = Field(description="Canonical id; of a person, the name that they sign in with.")
    uuid: UUID
    name: str
    detail: str
    status: str = Field(description="Empty where the noun has none.")
    url: str


class SearchOut(Schema):
    items: list[HitOut] = Field(
        description="The best eight of each noun: exact names, then those that begin so, then the others, newest first."
    )
    totals: dict[str, int] = Field(description="How many there are of each noun.")
    next: str | None = Field(description="Always null: the rest is in the lists of the nouns.")


@routes.get("/search", needs=Permission.VIEW, kind=Kind.WORKSPACE, response=SearchOut)
def search(request: ApiRequest, q: Annotated[Line, Query(min_length=1, max_length=LONGEST)]) -> Any:
    """What is called so, in part: names, numbers (`#12`), ids and their last eight digits, first digits of a SHA-256. Upper and lower case are
    taken as one."""
    try:
        wanted = read(q)
    except Unsearchable as problem:
        raise Refusal(str(problem), field="q") from problem
    if not wanted.text:
        raise Refusal("Say what to look for.", field="q")
    found = search_here(wanted, request.rights, request.workspace.slug)
    copied = ("id", "uuid", "name", "detail", "status", "url")
    return {
        "items": [{"noun": noun.name, **{name: getattr(hit, name) for name in copied}} for noun, some in found for hit in some.hits],
        "totals": {noun.name: some.total for noun, some in found},
        "next": None,
    }
