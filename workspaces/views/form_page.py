"""A page that is one form: shown, refused with the input kept, or saved by one command."""

from collections.abc import Callable
from typing import Any, TypeVar

from django import forms
from django.http import HttpResponseBase
from django.shortcuts import render

from workspaces.audit import Refusal
from workspaces.pages import PageRequest

F = TypeVar("F", bound=forms.Form)


def form_page(
    request: PageRequest,
    form: F,
    save: Callable[[F], HttpResponseBase],
    *,
    title: str,
    submit: str,
    lead: str = "",
    trail: tuple[tuple[str, str], ...] = (),
    back: str = "",
) -> HttpResponseBase:
    """Show `form`, or `save` it where it was sent and is well-formed. 422 for what is wrong with a field, 409 for what a rule refuses."""
    status = 200
    reasons: tuple[str, ...] = ()
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                return save(form)
            except Refusal as refusal:
                status = 409
                if refusal.field in form.fields:
                    form.add_error(refusal.field, list(refusal.reasons))
                else:
                    reasons = refusal.reasons
    context: dict[str, Any] = {
        "form": form,
        "title": title,
        "submit": submit,
        "lead": lead,
        "trail": trail,
        "back": back,
        "reasons": reasons,
        "has_files": form.is_multipart(),
    }
    return render(request, "workspaces/form_page.html", context, status=status)
