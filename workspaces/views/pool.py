"""Pages that bind and change pools; those that show them, with what runs know of them, stand in runs/views/pool.py."""

from django.http import HttpResponseBase
from django.urls import reverse

from workspaces.audit import Refusal
from workspaces.commands.pool import bind_pool, change_pool, open_pool, unbind_pool
from workspaces.forms.resource import PoolBindForm, PoolForm, ReasonForm
from workspaces.models import Pool
from workspaces.pages import PageRequest, redirect
from workspaces.queries.pool import engines
from workspaces.queries.secret import ssh_keys
from workspaces.views.form_page import form_page


def pool_bind(request: PageRequest) -> HttpResponseBase:
    found = engines()
    if not found:
        raise Refusal("This installation has no engine that takes work; a site operator adds one in the console.")
    form = PoolBindForm(request.POST or None, engines=found, keys=ssh_keys())

    def save(form: PoolBindForm) -> HttpResponseBase:
        pool = bind_pool(actor=request.actor, reason=form.cleaned_data["reason"], **form.values())
        return redirect("pool", request.workspace.slug, pool.slug)

    above = reverse("pool-list", args=[request.workspace.slug])
    return form_page(request, form, save, title="Bind a pool", submit="Bind pool", trail=(("Pools", above),), back=above)


def pool_change(request: PageRequest, pool: str) -> HttpResponseBase:
    found = Pool.objects.find(pool, "engine", "secret")
    form = PoolForm(
        request.POST or None, initial=PoolForm.values_of(found), engines=[found.engine], keys=ssh_keys() if found.engine.host else ()
    )

    def save(form: PoolForm) -> HttpResponseBase:
        change_pool(actor=request.actor, pool=found, reason=form.cleaned_data["reason"], **form.values())
        return redirect("pool", request.workspace.slug, found.slug)

    title = f"Change {found.slug}"
    return form_page(request, form, save, title=title, submit="Save changes", trail=_trail(request, found), back=_url(request, found))


def pool_unbind(request: PageRequest, pool: str) -> HttpResponseBase:
    found = Pool.objects.find(pool)
    form = ReasonForm(request.POST or None)

    def save(form: ReasonForm) -> HttpResponseBase:
        unbind_pool(actor=request.actor, pool=found, reason=form.cleaned_data["reason"])
        return redirect("pool", request.workspace.slug, found.slug)

    lead = "It takes no new work then. What runs goes on; what waits for it stays in the queue until it is opened again or cancelled."
    title = f"Close {found.slug}"
    return form_page(
        request, form, save, title=title, submit="Close pool", lead=lead, trail=_trail(request, found), back=_url(request, found)
    )


def pool_open(request: PageRequest, pool: str) -> HttpResponseBase:
    found = Pool.objects.find(pool)
    form = ReasonForm(request.POST or None)

    def save(form: ReasonForm) -> HttpResponseBase:
        open_pool(actor=request.actor, pool=found, reason=form.cleaned_data["reason"])
        return redirect("pool", request.workspace.slug, found.slug)

    lead = "It takes new work again, and what waits for it starts as there is room."
    return form_page(
        request,
        form,
        save,
        title=f"Open {found.slug}",
        submit="Open pool",
        lead=lead,
        trail=_trail(request, found),
        back=_url(request, found),
    )


def _trail(request: PageRequest, pool: Pool) -> tuple[tuple[str, str], ...]:
    return (("Pools", reverse("pool-list", args=[request.workspace.slug])), (pool.slug, _url(request, pool)))


def _url(request: PageRequest, pool: Pool) -> str:
    return reverse("pool", args=[request.workspace.slug, pool.slug])
