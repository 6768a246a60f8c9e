"""The queue: why does mine wait? And what operators do about it."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from runs.commands.placement import move_run
from runs.commands.queue import hold_queue, release_queue, set_priority, set_priority_limit
from runs.forms.queue import MoveForm, PriorityForm, PriorityLimitForm
from runs.models import Run
from runs.queries import hold
from runs.queries.queue import SHOWN, waiting_runs
from runs.views.live import live
from workspaces.forms.resource import ReasonForm
from workspaces.models import Pool
from workspaces.pages import PageRequest, redirect
from workspaces.views.form_page import form_page


def queue(request: PageRequest) -> HttpResponseBase:
    waiting = waiting_runs()
    own = [entry for entry in waiting if request.actor.is_user(entry.run.requested_by_id)]
    context = {
        "waiting": waiting,
        "own": own[0] if own else None,
        "own_count": len(own),
        "is_cut": len(waiting) == SHOWN,
        "hold": hold.queue_hold(),
    }
    if request.GET.get("part") == "live":
        return live(request, "runs/queue_rows.html", context)
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
