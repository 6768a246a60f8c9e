"""A form that is sent twice makes one thing: a key in the form, from which the id of what it makes is taken."""

import re
import uuid

from django import forms

from workspaces.pages import PageRequest


class OnceForm(forms.Form):
    """A form of nothing but its button."""

    once = forms.CharField(widget=forms.HiddenInput, required=False)


KEY = re.compile(r"[0-9a-f]{32}")


def form_key(request: PageRequest) -> str:
    """The key that the form was sent with, or a fresh one for a form that is shown for the first time."""
    given = request.POST.get("once", "") if request.method == "POST" else ""
    return given if KEY.fullmatch(given) else uuid.uuid4().hex


def id_of(request: PageRequest, key: str) -> uuid.UUID:
    """The id of what this person's form makes: the same key and the same fields give the same thing; a form that was gone back to and changed
    gives another, and nobody's key gives another person's."""
    assert request.actor.user is not None
    fields = sorted((name, request.POST.getlist(name)) for name in request.POST if name != "csrfmiddlewaretoken")
    return uuid.uuid5(request.actor.user.pk, f"{request.workspace.pk.hex} {request.path} {key} {fields!a}")
