"""The audit page: what happened, by whom, and is the record whole?"""

import json
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from workspaces.audit import Refusal
from workspaces.models import EventSubject
from workspaces.pages import PageRequest
from workspaces.queries.chain import LONG, badge, check_events, verify_chain
from workspaces.queries.change_words import changes_of
from workspaces.queries.event import FILTERS, NOUNS, Told, filters_of, one_event, page_of_events
from workspaces.queries.paging import BadCursor, Page
from workspaces.views.csv_file import Piece, csv_file

ROWS = 50
# Kinds of objects whose page has the name of the kind, and those that stand in a list.
PAGES = ("run", "sweep", "artifact", "benchmark", "dataset", "agent", "pool", "approval", "secret")
LISTS = {"ledgerentry": "ledger", "ledgeraccount": "budget", "limit": "budget", "membership": "member-list", "objective": "objective"}
DAY = (0, 10)  # lengths of what a date field can hold; moments are asked for by address
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
    fault = check_events([told.event for told in page.items])
    stands = badge()
    asked = {name: request.GET.get(name, "")[:300] for name in FILTERS}
    query = "&".join(part for part in request.GET.urlencode().split("&") if part and not part.startswith("after="))
    context = {
        "rows": [row_of(request, told) for told in page.items],
        "next_cursor": page.next or "",
        "is_lost": is_lost,
        "refusal": refusal,
        "asked": {"since": asked["from"], "until": asked["to"], **asked},
        "asks_days": len(asked["from"]) in DAY and len(asked["to"]) in DAY,
        "is_filtered": any(asked.values()),
        "nouns": NOUNS,
        "badge": stands,
        "fault": fault or stands.fault,
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
    is_long = stands.events > LONG
    result = None if is_long else verify_chain()
    return render(request, "workspaces/event_verify.html", {"badge": stands, "is_long": is_long, "result": result})


def event(request: PageRequest, event: str) -> HttpResponse:
    told, subjects, beside = one_event(event)
    row = told.event
    fault = check_events([one for one in (beside.before, row, beside.after) if one])
    context = {
        "told": told,
        "event": row,
        "before": beside.before,
        "after": beside.after,
        "facts": _facts(request, told),
        "changes": changes_of(row, told.details.get("changed"), request.workspace.zone),
        "subjects": [(subject, _page_of(request, subject)) for subject in subjects],
        "details": json.dumps(told.details, indent=2, ensure_ascii=False, sort_keys=True) if told.details else "",
        "fault": fault,
    }
    return render(request, "workspaces/event.html", context)


def _page_of(request: PageRequest, subject: EventSubject) -> str:
    """Where the object itself is shown; empty where it has no page, or is gone."""
    if not subject.after_hash:
        return ""
    if subject.type in PAGES:
        return reverse(subject.type, args=[request.workspace.slug, subject.object_id])
    return reverse(LISTS[subject.type], args=[request.workspace.slug]) if subject.type in LISTS else ""


def row_of(request: PageRequest, told: Told) -> dict[str, Any]:
    return {
        "sentence": told.sentence,
        "reason": told.reason,
        "moment": told.event.recorded_at,
        "sequence": told.event.sequence,
        "verb": told.event.verb,
        "url": reverse("event", args=[request.workspace.slug, told.event.public_id]),
    }


def _facts(request: PageRequest, told: Told) -> list[dict[str, Any]]:
    """Who, why and what; names lead to everything that is on record about them."""
    row, record = told.event, reverse("event-list", args=[request.workspace.slug])
    facts = [
        ("Who", f"{row.actor_label} ({row.get_actor_kind_display().lower()})", f"?{urlencode({'actor': row.actor_label})}"),
        ("On behalf of", row.behalf_label, f"?{urlencode({'actor': row.behalf_label})}"),
        ("Why", told.reason, ""),
        ("What", f"{row.subject_type.replace('_', ' ')} {row.subject_label}".strip(), ""),
        ("Verb", row.verb, f"?{urlencode({'verb': row.verb})}"),
        ("Token", str(row.token_id or ""), ""),
        ("Request", row.request_id, f"?{urlencode({'request': row.request_id})}"),
        ("Job", row.job_id, ""),
        ("Command", str(row.command_id), ""),
    ]
    return [
        {"label": label, "value": value, "url": f"{record}{query}" if query else "", "tone": ""} for label, value, query in facts if value
    ]


def _cells(told: Told) -> list[str | int | None]:
    row = told.event
    return [
        row.sequence, row.public_id, row.recorded_at.isoformat(), row.verb, told.sentence, told.reason, row.actor_kind, row.actor_label,
        row.behalf_label, row.subject_type, row.subject_label, str(row.subject_id or ""), str(row.command_id), row.request_id, row.job_id,
        str(row.token_id or ""), row.hash, row.previous_hash,
    ]  # fmt: skip
