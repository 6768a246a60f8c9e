"""The queue: why does mine wait? And what operators do about it."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from runs.commands.placement import move_run
from runs.commands.queue import hold_queue, release_queue, set_priority, set_priority_limit
from runs.forms.queue import MoveForm, PriorityForm, PriorityLimitForm
from runs.models import Run
from runs.queries import hold
from runs.queries.queue import SHOWN, in_pools, own_waiting, waiting_of, waiting_runs
from runs.views.live import live
from workspaces.forms.resource import ReasonForm
from workspaces.models import Pool
from workspaces.pages import PageRequest, redirect
from workspaces.queries.paging import BadCursor
from workspaces.views.form_page import form_page


def queue(request: PageRequest) -> HttpResponseBase:
    pool, cursor = request.GET.get("pool", ""), request.GET.get("after", "")
    try:
        page = waiting_runs(pool=pool, cursor=cursor, size=SHOWN)
    except BadCursor:
        page, cursor = waiting_runs(pool=pool, size=SHOWN), ""
    context: dict[str, Any] = {"waiting": page.items, "hold": hold.queue_hold()}
    if request.GET.get("part") == "live":
        return live(request, "runs/queue_rows.html", context)
    assert request.actor.user is not None  # pages are asked for by people
    pools = in_pools(request.actor.user.pk)
    chosen = [one for one in pools if one.slug == pool] if pool else pools
    own_count = sum(one.own for one in pools)
    is_whole = not (pool or cursor or page.next)
    apart = own_waiting(request.actor.user.pk) if own_count and not is_whole else []
    if apart:
        own = waiting_of(apart[0].run, request.workspace)
    else:
        own = next((entry for entry in page.items if request.actor.is_user(entry.run.requested_by_id)), None)
    context |= {
        "pools": pools,
        "pool": pool,
        "all": sum(one.count for one in pools),
        "total_words": f"of {sum(one.count for one in chosen):,}",
        "next_cursor": page.next or "",
        "is_whole": is_whole,
        "own": own,
        "own_count": own_count,
        "apart": apart,
    }
    return render(request, "runs/queue.html", context)


def queue_hold(request: PageRequest) -> HttpResponseBase:
    form = ReasonForm(request.POST or None)

    def save(form: ReasonForm) -> HttpResponseBase:
        hold_queue(actor=request.actor, reason=form.cleaned_data["reason"])
        return redirect("queue", request.workspace.slug)

    lead = "No queued run of this workspace starts until the queue is released. What runs goes on, and what is launched waits."
    return form_page(request, form, save, title="Hold the queue", submit="Hold queue", lead=lead, trail=_trail(request), back=_url(request))


def queue_release(request: PageRequest) -> HttpResponseBase:
    form = ReasonForm(request.POST or None)

    def save(form: ReasonForm) -> HttpResponseBase:
        release_queue(actor=request.actor, reason=form.cleaned_data["reason"])
        return redirect("queue", request.workspace.slug)

    standing = hold.queue_hold()
    lead = f"{standing.by} holds it. Why: {standing.reason}" if standing else "Nobody holds it."
    return form_page(
        request, form, save, title="Release the queue", submit="Release queue", lead=lead, trail=_trail(request), back=_url(request)
    )


def queue_limit(request: PageRequest) -> HttpResponseBase:
    form = PriorityLimitForm(request.POST or None, initial={"limit": request.workspace.priority_limit})

    def save(form: PriorityLimitForm) -> HttpResponseBase:
        set_priority_limit(actor=request.actor, **form.cleaned_data)
        return redirect("queue", request.workspace.slug)

    lead = "A run that is launched with a higher priority, or raised above it, waits for an approver who did not ask for it."
    return form_page(
        request, form, save, title="Limit of priorities", submit="Save limit", lead=lead, trail=_trail(request), back=_url(request)
    )


def run_priority(request: PageRequest, run: str) -> HttpResponseBase:
    found = Run.objects.find(run)
    form = PriorityForm(request.POST or None, initial={"priority": found.priority})

    def save(form: PriorityForm) -> HttpResponseBase:
        asked = set_priority(actor=request.actor, run=found, **form.cleaned_data)
        if asked is not None:
            messages.info(
                request, f"{found.name} keeps priority {found.priority} until an approver agrees to {form.cleaned_data['priority']}."
            )
        return redirect("queue", request.workspace.slug)

    limit = request.workspace.priority_limit
    lead = f"{found.name} has priority {found.priority}. Above {limit} an approver who did not ask for it decides."
    return form_page(
        request, form, save, title="Change priority", submit="Change priority", lead=lead, trail=_trail(request), back=_url(request)
    )


def run_move(request: PageRequest, run: str) -> HttpResponseBase:
    found = Run.objects.find(run, "pool")
    others = list(Pool.objects.exclude(pk=found.pool_id).order_by("-is_accepting", "slug"))
    form = MoveForm(request.POST or None, pools=others)

    def save(form: MoveForm) -> HttpResponseBase:
        pool = Pool.objects.find(form.cleaned_data["pool"])
        move_run(actor=request.actor, run=found, pool=pool, reason=form.cleaned_data["reason"])
        return redirect("queue", request.workspace.slug)

    lead = (
        f"{found.name} waits for {found.pool.slug}, and this workspace has no other pool: bind one first."
        if not others
        else (
            f"{found.name} waits for {found.pool.slug}. Admission is decided anew with a certificate of its own; what it reserves is what the "
            "new pool counts. Where it would not be admitted it stays where it is."
        )
    )
    title = "Move to another pool"
    return form_page(request, form, save, title=title, submit="Move run", lead=lead, trail=_trail(request), back=_url(request))


def _trail(request: PageRequest) -> tuple[tuple[str, str], ...]:
    return (("Queue", _url(request)),)


def _url(request: PageRequest) -> str:
    return reverse("queue", args=[request.workspace.slug])
