"""The audit page: what happened, by whom, and is the record whole?"""

import json
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from workspaces.audit import Refusal
from workspaces.pages import PageRequest
from workspaces.queries.chain import badge, verify_chain
from workspaces.queries.event import FILTERS, NOUNS, Told, filters_of, one_event, page_of_events
from workspaces.queries.paging import BadCursor, Page
from workspaces.views.csv_file import Piece, csv_file

ROWS = 50
VERIFIED_IN_A_REQUEST = 50_000  # events; about ten seconds. Longer chains are for `manage.py verify`
CSV_HEAD = (
    "sequence", "event", "time", "verb", "sentence", "reason", "actor kind", "actor", "on behalf of", "subject type", "subject",
    "subject id", "command", "request", "job", "token", "hash", "previous hash",
)  # fmt: skip


def event_list(request: PageRequest) -> HttpResponse:
    refusal: Refusal | None = None
    page: Page[Told] = Page(items=[])
    is_lost = False
    try:
        filters = filters_of(request.GET, zone=request.workspace.zone)
        try:
            page = page_of_events(filters, cursor=request.GET.get("after", ""), size=ROWS)
        except BadCursor:
            page, is_lost = page_of_events(filters, size=ROWS), True
    except Refusal as refused:
        refusal = refused
    asked = {name: request.GET.get(name, "")[:300] for name in FILTERS}
    query = "&".join(part for part in request.GET.urlencode().split("&") if part and not part.startswith("after="))
    context = {
        "rows": [_row(request, told) for told in page.items],
        "next_cursor": page.next or "",
        "is_lost": is_lost,
        "refusal": refusal,
        "asked": {"since": asked["from"], "until": asked["to"], **asked},
        "is_filtered": any(asked.values()),
        "nouns": NOUNS,
        "badge": badge(),
        "csv_url": f"{reverse('event-list-csv', args=[request.workspace.slug])}{f'?{query}' if query else ''}",
    }
    return render(request, "workspaces/event_list.html", context, status=422 if refusal else 200)


def event_list_csv(request: PageRequest) -> HttpResponseBase:
    """Exactly what is filtered, newest first, as a file; a filter that cannot be is refused before the file begins."""
    filters = filters_of(request.GET, zone=request.workspace.zone)
    page_of_events(filters, size=1)
    workspace = request.workspace

    def piece(cursor: str) -> Piece:
        page = page_of_events(filters, cursor=cursor, size=500)
        return [_cells(told) for told in page.items], page.next or ""

    return csv_file(f"{workspace.slug}-audit", CSV_HEAD, piece, workspace_id=workspace.pk)


def event_verify(request: PageRequest) -> HttpResponse:
    """Recompute the whole chain now. It only reads."""
    stands = badge()
    is_long = stands.events > VERIFIED_IN_A_REQUEST
    result = None if is_long else verify_chain()
    return render(request, "workspaces/event_verify.html", {"badge": stands, "is_long": is_long, "result": result})


def event(request: PageRequest, event: str) -> HttpResponse:
    told, subjects, beside = one_event(event)
    row = told.event
    context = {
        "told": told,
        "event": row,
        "before": beside.before,
        "after": beside.after,
        "facts": _facts(told),
        "changes": _changes(told.details.get("changed")),
        "subjects": subjects,
        "details": json.dumps(told.details, indent=2, ensure_ascii=False, sort_keys=True) if told.details else "",
        "is_follower": beside.before is None or beside.before.hash == row.previous_hash,
    }
    return render(request, "workspaces/event.html", context)


def _row(request: PageRequest, told: Told) -> dict[str, Any]:
    return {
        "sentence": told.sentence,
        "reason": told.reason,
        "moment": told.event.recorded_at,
        "sequence": told.event.sequence,
        "verb": told.event.verb,
        "url": reverse("event", args=[request.workspace.slug, told.event.public_id]),
    }


def _facts(told: Told) -> list[dict[str, Any]]:
    row = told.event
    facts = [
        ("Verb", row.verb),
        ("Actor", f"{row.actor_label} ({row.get_actor_kind_display().lower()})"),
        ("On behalf of", row.behalf_label),
        ("Subject", f"{row.subject_type.replace('_', ' ')} {row.subject_label}".strip()),
        ("Reason", told.reason),
        ("Command", str(row.command_id)),
        ("Request", row.request_id),
        ("Job", row.job_id),
        ("Token", str(row.token_id or "")),
    ]
    return [{"label": label, "value": value} for label, value in facts if value]


def _changes(changed: Any, prefix: str = "") -> list[dict[str, str]]:
    """Lines of before and after from an event's details: `{field: [before, after]}`, perhaps below the noun that changed."""
    lines: list[dict[str, str]] = []
    for name, value in changed.items() if isinstance(changed, dict) else ():
        label = f"{prefix}{name.replace('_', ' ')}"
        if isinstance(value, dict):
            lines.extend(_changes(value, f"{label}: "))
        elif isinstance(value, list) and len(value) == 2:
            lines.append({"label": label, "before": _words(value[0]), "after": _words(value[1])})
    return lines


def _words(value: Any) -> str:
    if value is None or value == "":
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cells(told: Told) -> list[str | int | None]:
    row = told.event
    return [
        row.sequence, row.public_id, row.recorded_at.isoformat(), row.verb, told.sentence, told.reason, row.actor_kind, row.actor_label,
        row.behalf_label, row.subject_type, row.subject_label, str(row.subject_id or ""), str(row.command_id), row.request_id, row.job_id,
        str(row.token_id or ""), row.hash, row.previous_hash,
    ]  # fmt: skip
