"""Memory: the list by trust, one entry, writing, vouching, withdrawing; and who lives on what is stale."""

import json
from typing import Any

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from runs.commands.memory import (
    check_configuration,
    date_memory,
    review_memory,
    revise_memory,
    undo_memory_withdrawal,
    withdraw_memory,
    write_memory,
)
from runs.forms.memory import DatesForm, EntryForm, ReviewForm, entry_initial
from runs.models import MemoryEntry, Trust
from runs.queries.memory import Group, collections, entry_page, grouped, page_of_trust, searched, similar
from runs.queries.memory_stale import living_on_stale, touched_by
from workspaces.audit import Refusal
from workspaces.forms.resource import ReasonForm
from workspaces.pages import PageRequest, redirect
from workspaces.queries.paging import BadCursor
from workspaces.search_text import Unsearchable
from workspaces.views.form_page import form_page


def memory_list(request: PageRequest) -> HttpResponseBase:
    """`q` searches, `like` compares configurations, `trust` shows all of one trust, page by page; else the newest of each trust."""
    asked = {name: request.GET.get(name, "").replace("\x00", "")[:2000] for name in ("q", "like", "collection", "kind", "trust", "after")}
    narrowed = {"collection": asked["collection"][:64], "kind": asked["kind"][:14]}
    fault, next_cursor, groups = "", "", list[Group]()
    try:
        if asked["q"].strip():
            groups = searched(asked["q"], **narrowed)
        elif asked["like"].strip():
            groups = similar(_configuration(asked["like"]), collection=narrowed["collection"])
        elif asked["trust"] in Trust.values:
            page = page_of_trust(asked["trust"], collection=narrowed["collection"], kind=narrowed["kind"], cursor=asked["after"][:300])
            groups, next_cursor = [Group(Trust(asked["trust"]), page.items, len(page.items))] if page.items else [], page.next or ""
        else:
            groups = grouped(**narrowed)
    except (Unsearchable, Refusal, BadCursor) as error:
        fault = str(error)
    context = {
        "groups": groups,
        "asked": asked,
        "fault": fault,
        "next_cursor": next_cursor,
        "collections": collections(),
        "kinds": MemoryEntry.EntryKind.choices,
        "is_narrowed": any(asked.values()),
    }
    return render(request, "runs/memory_list.html", context, status=422 if fault else 200)


def memory(request: PageRequest, memoryentry: str) -> HttpResponseBase:
    found = _found(memoryentry)
    context = {"entry": found, "page": entry_page(found), "touched": touched_by(found), "is_own": request.actor.is_user(found.author_id)}
    return render(request, "runs/memory.html", context)


def memory_stale(request: PageRequest) -> HttpResponseBase:
    living, is_whole = living_on_stale()
    policies, runs = [one for one in living if one.policy], [one for one in living if one.run]
    return render(
        request, "runs/memory_stale.html", {"policies": policies[:100], "runs": runs[:100], "count": len(living), "is_whole": is_whole}
    )


def memory_new(request: PageRequest) -> HttpResponseBase:
    form = EntryForm(request.POST or None, initial={"collection": request.GET.get("collection", "")[:64]})

    def save(form: EntryForm) -> HttpResponseBase:
        return redirect("memory", request.workspace.slug, write_memory(actor=request.actor, said=form.said()).public_id)

    lead = "It begins unreviewed. Another person says how far it may be trusted."
    return _form(request, form, save, title="Write memory", submit="Write entry", lead=lead)


def memory_revise(request: PageRequest, memoryentry: str) -> HttpResponseBase:
    found = _found(memoryentry)
    form = EntryForm(request.POST or None, initial=entry_initial(found, entry_page(found).evidence))

    def save(form: EntryForm) -> HttpResponseBase:
        return redirect("memory", request.workspace.slug, revise_memory(actor=request.actor, entry=found, said=form.said()).public_id)

    lead = f"Revision {found.revision + 1} begins unreviewed and takes the place of this one, which stays in the history."
    return _form(request, form, save, entry=found, title="Revise memory", submit="Write revision", lead=lead)


def memory_review(request: PageRequest, memoryentry: str) -> HttpResponseBase:
    found = _found(memoryentry)
    form = ReviewForm(request.POST or None, initial={"content_hash": found.content_hash})

    def save(form: ReviewForm) -> HttpResponseBase:
        said = form.cleaned_data
        review_memory(actor=request.actor, entry=found, seen_hash=said.pop("content_hash"), **said)
        return redirect("memory", request.workspace.slug, found.public_id)

    lead = f"You vouch for exactly this: {found.title} (content {found.content_hash[:12]}). If it changes meanwhile, nothing is kept."
    return _form(request, form, save, entry=found, title="How far may it be trusted?", submit="Vouch for it", lead=lead)


def memory_dates(request: PageRequest, memoryentry: str) -> HttpResponseBase:
    found = _found(memoryentry)
    form = DatesForm(request.POST or None, initial={name: getattr(found, name) for name in ("valid_from", "valid_until", "review_due")})

    def save(form: DatesForm) -> HttpResponseBase:
        date_memory(actor=request.actor, entry=found, **form.cleaned_data)
        return redirect("memory", request.workspace.slug, found.public_id)

    return _form(request, form, save, entry=found, title="Until when does it hold?", submit="Set dates", lead="Empty means without end.")


def memory_withdraw(request: PageRequest, memoryentry: str) -> HttpResponseBase:
    found = _found(memoryentry)
    touched = touched_by(found, shown=0)
    lead = (
        f"Read so far by {touched.runs} runs, {touched.policies} policies and {touched.people} people. Nobody who acts reads it any more."
    )
    return _reason(request, found, withdraw_memory, title="Withdraw memory", submit="Withdraw", lead=lead)


def memory_undo(request: PageRequest, memoryentry: str) -> HttpResponseBase:
    lead = "It is unreviewed again; somebody has to vouch for it anew."
    return _reason(request, _found(memoryentry), undo_memory_withdrawal, title="Undo the withdrawal", submit="Undo", lead=lead)


def _reason(request: PageRequest, entry: MemoryEntry, act: Any, **words: str) -> HttpResponseBase:
    def save(form: ReasonForm) -> HttpResponseBase:
        act(actor=request.actor, entry=entry, **form.cleaned_data)
        return redirect("memory", request.workspace.slug, entry.public_id)

    return _form(request, ReasonForm(request.POST or None), save, entry=entry, **words)


def _form(request: PageRequest, form: Any, save: Any, *, entry: MemoryEntry | None = None, **words: str) -> HttpResponseBase:
    back = reverse("memory-list", args=[request.workspace.slug])
    trail = [("Memory", back)]
    if entry is not None:
        back = reverse("memory", args=[request.workspace.slug, entry.public_id])
        trail.append((entry.title[:60], back))
    return form_page(request, form, save, trail=tuple(trail), back=back, **words)


def _found(text: str) -> MemoryEntry:
    return MemoryEntry.objects.find(text, "author", "run", "policy", "benchmark", "agent", "reviewed_by", "withdrawn_by")


def _configuration(text: str) -> dict[str, Any]:
    """Raises Refusal."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refusal("A configuration to compare with is one JSON object of names and plain values.") from error
    if not isinstance(found, dict):
        raise Refusal("A configuration to compare with is one JSON object of names and plain values.")
    check_configuration(found)
    return found
