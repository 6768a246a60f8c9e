"""`/overrides`: what people decided against the usual course of the queue, the pools and the budget; the same answer as the page's."""

from typing import Annotated, Any

from ninja import Query

from runs.queries.override import KINDS, overrides
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.event import EventPage, shape_of_event
from workspaces.api.registry_shapes import Size
from workspaces.audit import Refusal
from workspaces.queries.event import filters_of

routes = Routes("overrides")


@routes.get("/overrides", needs=Permission.VIEW_AUDIT, kind=Kind.AUDIT, response=EventPage)
def list_overrides(
    request: ApiRequest,
    cursor: Annotated[str, Query(max_length=20)] = "",
    limit: Size = 50,
    kind: Annotated[str, Query(max_length=20)] = "",
    actor: Annotated[str, Query(max_length=200)] = "",
    since: Annotated[str, Query(max_length=40, alias="from")] = "",
    until: Annotated[str, Query(max_length=40, alias="to")] = "",
) -> dict[str, Any]:
    """Events that are overrides, newest first, each with its reason. `kind` is one of priority, moved, cancelled, lost, retried, queue, pool,
    corrected, limit; `from` and `to` are days of the workspace's zone or moments with an offset."""
    if kind and kind not in KINDS:
        raise Refusal(f"There is no kind of override {kind}; there are {', '.join(KINDS)}.", field="kind")
    filters = filters_of({"actor": actor, "from": since, "to": until}, zone=request.workspace.zone)
    page = overrides(filters, kind=kind, cursor=cursor, size=limit)
    return {"items": [shape_of_event(request, told) for told in page.items], "next": page.next}
