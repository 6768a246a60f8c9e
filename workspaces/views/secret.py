"""Pages of secrets. Values come in through forms and go out to runs; no page has one."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from workspaces.commands.secret import change_secret, create_secret, revoke_secret, rotate_secret
from workspaces.forms.resource import ReasonForm
from workspaces.forms.secret import AllowForm, RotateForm, SecretForm
from workspaces.models import Agent, Benchmark, Pool, Secret
from workspaces.pages import PageRequest, redirect
from workspaces.queries.secret import dependents, find_secret, held_uses, pools_opened_by, row_of, secret_rows, use_rows
from workspaces.secret_value import ssh_fingerprint
from workspaces.views.form_page import form_page


def secret_list(request: PageRequest) -> HttpResponseBase:
    rows = secret_rows()
    counts = {status: sum(row.status == status for row in rows) for status in ("ready", "due", "revoked")}
    return render(request, "workspaces/secret_list.html", {"rows": rows, "counts": counts})


def secret(request: PageRequest, secret: str) -> HttpResponseBase:
    found = find_secret(secret)
    page = use_rows(found, cursor=request.GET.get("after", ""))
    context = {
        "row": row_of(found),
        "ssh_fingerprint": ssh_fingerprint(found.public_key) if found.public_key.count(" ") else "",
        "dependents": dependents(found),
        "pools": pools_opened_by(found),
        "held": held_uses(found),
        "uses": page.items,
        "next_cursor": page.next or "",
    }
    return render(request, "workspaces/secret.html", context)


def secret_new(request: PageRequest) -> HttpResponseBase:
    form = SecretForm(request.POST or None, request.FILES or None, **_choices())

    def save(form: SecretForm) -> HttpResponseBase:
        cleaned = form.cleaned_data
        made = create_secret(actor=request.actor, name=cleaned["name"], kind=cleaned["kind"], value=cleaned["value"], **form.allowed())
        messages.success(request, f"{made.name} is kept. Agent versions that name it may be launched where it is allowed.")
        return redirect("secret", request.workspace.slug, made.public_id)

    above = reverse("secret-list", args=[request.workspace.slug])
    lead = "A value that runs read as a file. It is kept encrypted, and shown to nobody."
    return form_page(request, form, save, title="New secret", submit="Keep secret", lead=lead, trail=(("Secrets", above),), back=above)


def secret_rotate(request: PageRequest, secret: str) -> HttpResponseBase:
    found = find_secret(secret)
    form = RotateForm(request.POST or None, request.FILES or None)

    def save(form: RotateForm) -> HttpResponseBase:
        rotate_secret(actor=request.actor, secret=found, value=form.cleaned_data["value"], reason=form.cleaned_data["reason"])
        return redirect("secret", request.workspace.slug, found.public_id)

    lead = "The value before is destroyed. Runs that start from now on get the new one; those at work keep what they have."
    title = f"Replace the value of {found.name}"
    return form_page(
        request, form, save, title=title, submit="Replace value", lead=lead, trail=_trail(request, found), back=_url(request, found)
    )


def secret_change(request: PageRequest, secret: str) -> HttpResponseBase:
    found = find_secret(secret)
    row = row_of(found)
    initial = {
        "description": found.description,
        "rotate_after_days": found.rotate_after_days,
        "agents": row.agents,
        "pools": row.pools,
        "benchmarks": row.benchmarks,
    }
    form = AllowForm(request.POST or None, initial=initial, **_choices())

    def save(form: AllowForm) -> HttpResponseBase:
        change_secret(actor=request.actor, secret=found, reason=form.cleaned_data["reason"], **form.allowed())
        return redirect("secret", request.workspace.slug, found.public_id)

    title = f"Who may read {found.name}"
    return form_page(request, form, save, title=title, submit="Save changes", trail=_trail(request, found), back=_url(request, found))


def secret_revoke(request: PageRequest, secret: str) -> HttpResponseBase:
    found = find_secret(secret)
    form = ReasonForm(request.POST or None)

    def save(form: ReasonForm) -> HttpResponseBase:
        revoke_secret(actor=request.actor, secret=found, reason=form.cleaned_data["reason"])
        return redirect("secret", request.workspace.slug, found.public_id)

    lead = (
        "Its value is destroyed and no run starts with it any more. Runs at work keep what they have: cancel them where that matters, and end the "
        "value where it opens doors."
    )
    title = f"Revoke {found.name}"
    return form_page(
        request, form, save, title=title, submit="Revoke secret", lead=lead, trail=_trail(request, found), back=_url(request, found)
    )


def _choices() -> dict[str, Any]:
    return {
        "agents": list(Agent.objects.only("slug").order_by("slug")),
        "pools": list(Pool.objects.only("slug").order_by("slug")),
        "benchmarks": list(Benchmark.objects.only("slug").order_by("slug")),
    }


def _trail(request: PageRequest, secret: Secret) -> tuple[tuple[str, str], ...]:
    return (("Secrets", reverse("secret-list", args=[request.workspace.slug])), (secret.name, _url(request, secret)))


def _url(request: PageRequest, secret: Secret) -> str:
    return reverse("secret", args=[request.workspace.slug, secret.public_id])
