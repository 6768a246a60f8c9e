"""The operators' console, `/console/`: people, groups, workspaces, engines, tokens, queues, health. It shows no workspace's content."""

from collections.abc import Callable
from functools import partial
from typing import Any

import redis
from django import forms
from django.contrib import messages
from django.contrib.auth.models import Group
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, reverse

from labsite import health
from labsite.console_forms import (
    EngineChangeForm,
    EngineForm,
    GroupForm,
    GroupMemberForm,
    PersonForm,
    PolicyForm,
    RulesDecisionForm,
    RulesForm,
    SiteRolesForm,
    StopForm,
    WeightForm,
)
from runs.commands.site_rules import decide_rules, propose_rules, stop_policies
from runs.policy.catalogue import rules_catalogue
from runs.policy.changes import changes, lines_of
from runs.policy.document import BadPolicy
from runs.policy.site import read_rules
from runs.queries.site_rules import forecast
from runs.queue import depths
from workspaces import scope
from workspaces.access import SiteRole, people_groups
from workspaces.audit import Refusal
from workspaces.commands.engine import add_engine, change_engine, set_engine_weight
from workspaces.commands.group import add_to_group, create_group, find_group, remove_from_group
from workspaces.commands.site_policy import set_site_policy
from workspaces.commands.token import revoke_leaked_token
from workspaces.commands.user import activate_user, create_user, deactivate_user, give_new_password, set_site_roles
from workspaces.forms.refusal import show_refusal
from workspaces.models import Engine, NotFound, SitePolicy, SiteRules
from workspaces.pages import PageRequest, redirect, site_page
from workspaces.queries.installation import UNDECIDED, is_copy
from workspaces.queries.site import counts, find_people, find_person, first_broken, live_tokens, site_events, workspace_rows
from workspaces.queries.workspace import find_workspace

SECTIONS = (
    ("Health", "console"),
    ("People", "console-person-list"),
    ("Groups", "console-group-list"),
    ("Workspaces", "console-workspace-list"),
    ("Engines", "console-engine-list"),
    ("Policy", "console-policy"),
    ("Rules for policies", "console-rules"),
    ("Tokens", "console-token-list"),
    ("Record", "console-event-list"),
)


def _show(request: PageRequest, section: str, context: dict[str, Any], *, template: str = "", status: int = 200) -> HttpResponse:
    entries = [{"label": words, "url": reverse(name), "current": name == section, "count": None} for words, name in SECTIONS]
    shown = {**context, "rail": [{"label": "Installation", "items": entries}]}
    return render(request, f"console/{template or section.removeprefix('console-').replace('-', '_')}.html", shown, status=status)


def _carry_out(request: PageRequest, form: forms.Form, command: Callable[..., object]) -> int:
    """0 once the command is done; else the status of the page that shows the form again."""
    if not form.is_valid():
        return 422
    try:
        command(actor=request.actor, **form.cleaned_data)
    except Refusal as refusal:
        show_refusal(form, refusal)
        return 409
    return 0


# --- Health -------------------------------------------------------------------------------------------------------------------------------


def overview(request: PageRequest) -> HttpResponse:
    try:
        waiting: dict[str, int] | None = depths()
    except redis.RedisError:
        waiting = None
    missing = health.missing()
    undecided = UNDECIDED if not missing and is_copy() else ""
    return _show(request, "console", {"missing": missing, "undecided": undecided, "depths": waiting, "counts": counts()})


# --- People -------------------------------------------------------------------------------------------------------------------------------


def person_list(request: PageRequest) -> HttpResponse:
    text = request.GET.get("q", "").strip()[:120]
    rows, following = find_people(text, request.GET.get("after", "")[:150])
    return _show(request, "console-person-list", {"rows": rows, "next_cursor": following, "q": text})


def person_add(request: PageRequest) -> HttpResponse:
    form, status = PersonForm(request.POST or None), 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                user, password = create_user(actor=request.actor, **form.cleaned_data)
            except Refusal as refusal:
                show_refusal(form, refusal)
                status = 409
            else:
                return _show_password(request, user.username, password, status=201)
    return _show(request, "console-person-list", {"form": form}, template="person_add", status=status)


def person(request: PageRequest, username: str) -> HttpResponse:
    return _person(request, username)


def person_roles(request: PageRequest, username: str) -> HttpResponse:
    find_person(username)
    form = SiteRolesForm(request.POST)
    status = _carry_out(request, form, partial(set_site_roles, username=username))
    return _person(request, username, form, status) if status else redirect("console-person", username)


def person_deactivate(request: PageRequest, username: str) -> HttpResponse:
    user = deactivate_user(actor=request.actor, username=username)
    messages.success(request, f"{user.label} is kept out from the next request on.")
    return redirect("console-person", username)


def person_activate(request: PageRequest, username: str) -> HttpResponse:
    user = activate_user(actor=request.actor, username=username)
    messages.success(request, f"{user.label} may sign in again.")
    return redirect("console-person", username)


def person_password(request: PageRequest, username: str) -> HttpResponse:
    user, password = give_new_password(actor=request.actor, username=username)
    return _show_password(request, user.username, password, status=200)


def _person(request: PageRequest, username: str, form: forms.Form | None = None, status: int = 200) -> HttpResponse:
    user = find_person(username)
    groups = people_groups().filter(user=user)
    context = {"person": user, "groups": groups, "form": form or SiteRolesForm(initial={"roles": user.site_roles})}
    return _show(request, "console-person-list", context, template="person", status=status)


def _show_password(request: PageRequest, username: str, password: str, *, status: int) -> HttpResponse:
    context = {"person": find_person(username), "password": password}
    return _show(request, "console-person-list", context, template="person_password", status=status)


# --- Groups of people ---------------------------------------------------------------------------------------------------------------------


def group_list(request: PageRequest) -> HttpResponse:
    form, status = GroupForm(request.POST or None), 200
    if request.method == "POST":
        status = _carry_out(request, form, create_group)
        if not status:
            return redirect("console-group-list")
    rows = [{"group": group, "size": group.size} for group in people_groups().annotate(size=Count("user"))]
    return _show(request, "console-group-list", {"rows": rows, "form": form}, status=status)


def group(request: PageRequest, group: str) -> HttpResponse:
    row = _group(group)
    form, status = GroupMemberForm(request.POST or None), 200
    if request.method == "POST":
        try:
            status = _carry_out(request, form, partial(add_to_group, group=row.pk))
        except NotFound:
            form.add_error("username", "There is nobody of that name.")
            status = 422
        if not status:
            return redirect("console-group", row.pk)
    people = list(row.user_set.order_by("username")[:500])
    return _show(request, "console-group-list", {"group": row, "people": people, "form": form}, template="group", status=status)


def group_remove(request: PageRequest, group: str, username: str) -> HttpResponse:
    row = _group(group)
    remove_from_group(actor=request.actor, group=row.pk, username=username)
    return redirect("console-group", row.pk)


def _group(key: str) -> Group:
    if not (key.isascii() and key.isdigit() and len(key) < 10):
        raise NotFound("group")
    return find_group(int(key))


# --- Workspaces, engines, tokens, record --------------------------------------------------------------------------------------------------


def workspace_list(request: PageRequest) -> HttpResponse:
    rows, following = workspace_rows(request.GET.get("after", "")[:64])
    return _show(request, "console-workspace-list", {"rows": rows, "next_cursor": following})


def workspace_weight(request: PageRequest, workspace: str) -> HttpResponse:
    form = WeightForm(request.POST)
    if not form.is_valid():
        raise Refusal(*(str(words) for found in form.errors.values() for words in found))
    set_engine_weight(actor=request.actor, workspace=workspace, weight=form.cleaned_data["weight"])
    return redirect("console-workspace-list")


def engine_list(request: PageRequest) -> HttpResponse:
    form, status = EngineForm(request.POST or None), 200
    if request.method == "POST":
        status = _carry_out(request, form, add_engine)
        if not status:
            return redirect("console-engine-list")
    return _show(request, "console-engine-list", {"rows": Engine.objects.order_by("slug"), "form": form}, status=status)


def engine_accept(request: PageRequest, engine: str) -> HttpResponse:
    reason = request.POST.get("reason", "").replace("\x00", "")
    change_engine(actor=request.actor, slug=engine, is_accepting=request.POST.get("accepting") == "yes", reason=reason)
    return redirect("console-engine-list")


def engine_change(request: PageRequest, engine: str) -> HttpResponse:
    form = EngineChangeForm(request.POST)
    if not form.is_valid():
        raise Refusal(*(f"{form.fields[name].label}: {words}" for name, found in form.errors.items() for words in found))
    cleaned = form.cleaned_data
    host_key, jobs_url = cleaned["host_key"] or None, cleaned["jobs_url"] or None
    change_engine(actor=request.actor, slug=engine, slots=cleaned["slots"], host_key=host_key, jobs_url=jobs_url)
    return redirect("console-engine-list")


def policy(request: PageRequest) -> HttpResponse:
    current, status = SitePolicy.objects.filter(is_current=True).first(), 200
    kept = {name: getattr(current, name) for name in PolicyForm.base_fields} if current else None
    form = PolicyForm(request.POST if request.method == "POST" else None, initial=kept)
    if request.method == "POST":
        status = _carry_out(request, form, set_site_policy)
        if not status:
            messages.success(request, "The policy holds for every launch from now on.")
            return redirect("console-policy")
    return _show(request, "console-policy", {"form": form}, status=status)


# --- Rules for policies -------------------------------------------------------------------------------------------------------------------


def rules(request: PageRequest) -> HttpResponse:
    """GET shows what holds and what waits; POST with `check` says whom a document would touch, without it proposes."""
    versions = list(SiteRules.objects.select_related("proposed_by", "decided_by").order_by("-number")[:50])
    holding = next((row for row in versions if row.status == SiteRules.Status.ACTIVE), None)
    waiting = next((row for row in versions if row.status == SiteRules.Status.PROPOSED), None)
    initial = {"document": "\n".join(lines_of((waiting or holding or SiteRules(document={})).document))}
    form, status, seen = RulesForm(request.POST if request.method == "POST" else None, initial=initial), 200, None
    if request.method == "POST" and "check" in request.POST:
        form.fields["reason"].required = False
        status = 422
        if form.is_valid():
            try:
                seen = forecast(read_rules(form.cleaned_data["document"]))
                status = 200
            except BadPolicy as fault:
                form.add_error("document", list(fault.faults))
    elif request.method == "POST":
        status = _carry_out(request, form, propose_rules)
        if not status:
            messages.success(request, "The rules wait for another operator's decision.")
            return redirect("console-rules")
    return _rules(request, versions, form, status, seen=seen)


def rules_decide(request: PageRequest, number: str) -> HttpResponse:
    if not (number.isascii() and number.isdigit() and len(number) < 9):
        raise NotFound("site rules")
    form = RulesDecisionForm(request.POST)
    if not form.is_valid():
        raise Refusal("A comment has at most 1,000 characters.")
    decide_rules(
        actor=request.actor, number=int(number), approves=request.POST.get("approve") == "yes",
        seen_hash=request.POST.get("seen", "")[:64], comment=form.cleaned_data["comment"],
    )  # fmt: skip
    return redirect("console-rules")


def rules_stop(request: PageRequest) -> HttpResponse:
    form = StopForm(request.POST)
    if not form.is_valid():
        raise Refusal("Say why, in at most 300 characters.")
    stop_policies(actor=request.actor, reason=form.cleaned_data["reason"])
    messages.success(request, "Every policy is stopped.")
    return redirect("console-rules")


def _rules(request: PageRequest, versions: list[SiteRules], form: RulesForm, status: int, *, seen: Any) -> HttpResponse:
    holding = next((row for row in versions if row.status == SiteRules.Status.ACTIVE), None)
    waiting = next((row for row in versions if row.status == SiteRules.Status.PROPOSED), None)
    context = {
        "form": form,
        "versions": versions,
        "holding": holding,
        "waiting": waiting,
        "lines": lines_of(holding.document) if holding else [],
        "changes": changes(holding.document if holding else None, waiting.document) if waiting else [],
        "seen": seen,
        "stop": StopForm(),
        "catalogue": rules_catalogue(),
        "decision": RulesDecisionForm(),
        "is_own": waiting is not None and waiting.proposed_by_id == request.user.pk,
    }
    return _show(request, "console-rules", context, status=status)


def token_list(request: PageRequest) -> HttpResponse:
    rows, following = live_tokens(request.GET.get("after", "")[:64])
    return _show(request, "console-token-list", {"rows": rows, "next_cursor": following})


def token_revoke(request: PageRequest, workspace: str, token: str) -> HttpResponse:
    found = find_workspace(workspace)
    if found is None:
        raise NotFound("workspace")
    with scope.open_workspace(found.pk):
        revoke_leaked_token(actor=request.actor, token=token)
    messages.success(request, "The token is revoked; its next request is refused.")
    return redirect("console-token-list")


def event_list(request: PageRequest) -> HttpResponse:
    after = request.GET.get("after", "")
    rows, following = site_events(int(after) if after.isascii() and after.isdigit() and len(after) < 18 else None)
    return _show(request, "console-event-list", {"rows": rows, "next_cursor": following, "broken": first_broken(rows)})


def _page(route: str, view: Callable[..., HttpResponse], name: str, *methods: str) -> URLPattern:
    return site_page(f"console/{route}", view, name=name, needs=SiteRole.SITE_OPERATOR, methods=methods or ("GET",))


urlpatterns = [
    _page("", overview, "console"),
    _page("people/", person_list, "console-person-list"),
    _page("people/new/", person_add, "console-person-add", "GET", "POST"),
    _page("people/<str:username>/", person, "console-person"),
    _page("people/<str:username>/roles/", person_roles, "console-person-roles", "POST"),
    _page("people/<str:username>/deactivate/", person_deactivate, "console-person-deactivate", "POST"),
    _page("people/<str:username>/activate/", person_activate, "console-person-activate", "POST"),
    _page("people/<str:username>/password/", person_password, "console-person-password", "POST"),
    _page("groups/", group_list, "console-group-list", "GET", "POST"),
    _page("groups/<str:group>/", group, "console-group", "GET", "POST"),
    _page("groups/<str:group>/remove/<str:username>/", group_remove, "console-group-remove", "POST"),
    _page("workspaces/", workspace_list, "console-workspace-list"),
    _page("workspaces/<str:workspace>/weight/", workspace_weight, "console-workspace-weight", "POST"),
    _page("engines/", engine_list, "console-engine-list", "GET", "POST"),
    _page("engines/<str:engine>/accept/", engine_accept, "console-engine-accept", "POST"),
    _page("engines/<str:engine>/change/", engine_change, "console-engine-change", "POST"),
    _page("policy/", policy, "console-policy", "GET", "POST"),
    _page("rules/", rules, "console-rules", "GET", "POST"),
    _page("rules/stop/", rules_stop, "console-rules-stop", "POST"),
    _page("rules/<str:number>/decide/", rules_decide, "console-rules-decide", "POST"),
    _page("tokens/", token_list, "console-token-list"),
    _page("tokens/<str:workspace>/<str:token>/revoke/", token_revoke, "console-token-revoke", "POST"),
    _page("record/", event_list, "console-event-list"),
]
