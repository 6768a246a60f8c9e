"""Why runs fail, by cause; what came of it."""

from django.http import HttpResponseBase
from django.shortcuts import render

from runs.commands.failure import acknowledge_failure
from runs.forms.failure import NoteForm
from runs.queries.failure import ROWS, failing_agents, failure_group, failure_groups
from runs.views.once import form_key
from workspaces.access import Kind, Permission
from workspaces.audit import Refusal
from workspaces.pages import PageRequest, redirect

SHOWN = 200  # groups on the page; the filters narrow them


def failure_list(request: PageRequest) -> HttpResponseBase:
    agent, state = request.GET.get("agent", "")[:64], request.GET.get("state", "open")
    groups = list(failure_groups(agent=agent, is_open=state != "all")[: SHOWN + 1])
    context = {
        "groups": groups[:SHOWN],
        "is_cut": len(groups) > SHOWN,
        "most": SHOWN,
        "agents": failing_agents(),
        "agent": agent,
        "state": "all" if state == "all" else "open",
    }
    return render(request, "runs/failure_list.html", context)


def failure(request: PageRequest, failure: str) -> HttpResponseBase:
    return _failure(request, failure, NoteForm())


def failure_acknowledge(request: PageRequest, failure: str) -> HttpResponseBase:
    group = failure_group(failure, size=1).group
    form = NoteForm(request.POST)
    if not form.is_valid():
        return _failure(request, failure, form, status=422)
    try:
        acknowledge_failure(actor=request.actor, group=group, reason=form.cleaned_data["reason"])
    except Refusal as refusal:
        form.add_error("reason", list(refusal.reasons))
        return _failure(request, failure, form, status=409)
    return redirect("failure", request.workspace.slug, group.public_id)


def _failure(request: PageRequest, failure: str, form: NoteForm, *, status: int = 200) -> HttpResponseBase:
    found = failure_group(failure, cursor=request.GET.get("after", ""), size=ROWS)
    context = {
        "group": found.group,
        "failures": found.failures.items,
        "newest": found.newest,
        "next_cursor": found.failures.next or "",
        "form": form,
        "once": form_key(request),
        "may_retry": found.newest is not None and request.rights.allows(Permission.LAUNCH_RUN, Kind.RUN),
    }
    return render(request, "runs/failure.html", context, status=status)
