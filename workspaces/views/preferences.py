"""What a person prefers."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render

from workspaces.audit import Refusal
from workspaces.commands.preferences import set_preferences
from workspaces.forms.refusal import show_refusal
from workspaces.forms.workspace import PreferencesForm, ZoneForm
from workspaces.pages import PageRequest, redirect


def preferences(request: PageRequest) -> HttpResponse:
    user, status = request.user, 200
    names = ("display_name", "theme", "density", "zone", "has_shortcuts")
    form = PreferencesForm(request.POST or None, initial={name: getattr(user, name) for name in names} | {"display_name": user.label})
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                set_preferences(actor=request.actor, **form.cleaned_data)
            except Refusal as refusal:
                show_refusal(form, refusal)
                status = 409
            else:
                messages.success(request, "Kept.")
                answer = redirect("preferences")
                answer.delete_cookie("theme", samesite="Lax")  # this device follows the preference again
                return answer
    return render(request, "workspaces/preferences.html", {"form": form, "zones": ZoneForm.zones()}, status=status)
