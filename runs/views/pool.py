"""The pools of a workspace, and the page of one."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from runs.commands.stranger import end_stranger
from runs.contact import end_there, visit
from runs.forms.pool import StrangerForm
from runs.place import isolation_words
from runs.pools.base import PoolError
from runs.queries.pool import pool_state
from runs.queries.pool_contact import Contact, with_contact
from runs.queries.pool_hour import pool_hour
from runs.queries.utilisation import pool_uses
from workspaces.models import Pool
from workspaces.pages import PageRequest, redirect
from workspaces.queries.pool import pool_rows
from workspaces.views.form_page import form_page


def pool_list(request: PageRequest) -> HttpResponseBase:
    pools = [(pool, Contact.of(pool)) for pool in with_contact(pool_rows())]
    ready = sum(pool.is_accepting and pool.engine.is_accepting and not contact.is_silent for pool, contact in pools)
    return render(request, "runs/pool_list.html", {"pools": pools, "ready": ready})


def pool(request: PageRequest, pool: str) -> HttpResponseBase:
    found = Pool.objects.find(pool, "engine", "secret", "closed_by")
    (use,) = pool_uses([found])
    context = {
        "state_now": pool_state(found),
        "isolation": isolation_words(found),
        "use": use,
        "hour": pool_hour(found, timezone.now()),
    }
    return render(request, "runs/pool.html", context)


def pool_test(request: PageRequest, pool: str) -> HttpResponseBase:
    """Go to the pool's engine once, and say what it is and what stood in the way. Whether it answered is kept."""
    found = Pool.objects.find(pool, "engine")
    try:
        seen = visit(found)
    except PoolError as error:
        messages.error(request, f"{found.slug} cannot be reached: {error.reason}.")
    else:
        messages.success(request, seen.words)
        for warning in seen.warnings:
            messages.warning(request, warning)
    return redirect("pool", request.workspace.slug, found.slug)


def stranger_end(request: PageRequest, pool: str) -> HttpResponseBase:
    found = Pool.objects.find(pool, "engine")
    form = StrangerForm(request.POST or None, initial={"key": request.GET.get("key", "")})

    def save(form: StrangerForm) -> HttpResponseBase:
        key = end_stranger(actor=request.actor, pool=found, **form.cleaned_data)
        try:
            end_there(found, key)
        except PoolError as error:
            messages.error(request, f"{found.slug} was not told to end {key}: {error.reason}. Tell it again.")
        else:
            messages.success(request, f"{found.slug} was told to end {key}. It is asked each minute what is left there.")
        return redirect("pool", request.workspace.slug, found.slug)

    above = reverse("pool", args=[request.workspace.slug, found.slug])
    trail = (("Pools", reverse("pool-list", args=[request.workspace.slug])), (found.slug, above))
    lead = f"{found.slug} has it at work and no run explains it. What it has written stays in its folder there; no run gets it."
    return form_page(request, form, save, title="End unknown work", submit="End work", lead=lead, trail=trail, back=above)
