"""Pages of agents and their versions."""

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from workspaces.commands.agent import change_agent, create_agent, publish_agent_version
from workspaces.downloads import attachment, stored_file
from workspaces.forms.agent import AgentEditForm, AgentForm, AgentVersionForm
from workspaces.models import Agent, Pool
from workspaces.pages import PageRequest, redirect
from workspaces.queries.code import bundle_of, code_of
from workspaces.queries.registry import agent_rows, agent_versions_of, find_agent_file, find_agent_version
from workspaces.uploads import receive_bundle
from workspaces.views.form_page import form_page
from workspaces.views.registry_list import list_query


def agent_list(request: PageRequest) -> HttpResponseBase:
    text, cursor = list_query(request)
    page = agent_rows(text=text, cursor=cursor)
    return render(request, "workspaces/agent_list.html", {"rows": page.items, "next_cursor": page.next or "", "text": text})


def agent(request: PageRequest, agent: str) -> HttpResponseBase:
    found = Agent.objects.find(agent)
    rows = agent_versions_of(found)
    version, path = request.GET.get("version", ""), request.GET.get("file", "")
    code = code_of(found, version, path) if version and path else None
    context = {"agent": found, "rows": rows, "newest": rows[0] if rows else None, "code": code}
    return render(request, "workspaces/agent.html", context)


def agent_file(request: PageRequest, agent: str, agentversion: str, path: str) -> HttpResponseBase:
    file = find_agent_file(find_agent_version(Agent.objects.find(agent), agentversion), path)
    return stored_file(request, file.blob, path=file.path)


def agent_bundle(request: PageRequest, agent: str, agentversion: str) -> HttpResponseBase:
    found = Agent.objects.find(agent)
    version = find_agent_version(found, agentversion)
    chunks, size = bundle_of(version)
    return attachment(chunks, path=f"{found.slug}-{version.number}.zip", size=size, sha256=version.bundle_hash)


def agent_new(request: PageRequest) -> HttpResponseBase:
    form = AgentForm(request.POST or None)

    def save(form: AgentForm) -> HttpResponseBase:
        made = create_agent(actor=request.actor, **form.cleaned_data)
        return redirect("agent-version-new", request.workspace.slug, made.slug)

    above = reverse("agent-list", args=[request.workspace.slug])
    lead = "First what it is; its code and how it runs come next."
    return form_page(request, form, save, title="New agent", submit="Create agent", lead=lead, trail=(("Agents", above),), back=above)


def agent_edit(request: PageRequest, agent: str) -> HttpResponseBase:
    found = Agent.objects.find(agent)
    form = AgentEditForm(request.POST or None, initial={name: getattr(found, name) for name in ("name", "part", "description")})

    def save(form: AgentEditForm) -> HttpResponseBase:
        change_agent(actor=request.actor, agent=found, **form.cleaned_data)
        return redirect("agent", request.workspace.slug, found.slug)

    return form_page(
        request, form, save, title=f"Change {found.name}", submit="Save changes", trail=_trail(request, found), back=_url(request, found)
    )


def agent_version_new(request: PageRequest, agent: str) -> HttpResponseBase:
    found = Agent.objects.find(agent)
    pools = list(Pool.objects.order_by("slug"))
    form = AgentVersionForm(request.POST, request.FILES, pools=pools) if request.method == "POST" else AgentVersionForm(pools=pools)

    def save(form: AgentVersionForm) -> HttpResponseBase:
        publish_agent_version(actor=request.actor, agent=found, files=receive_bundle(request, "bundle"), **form.version())
        return redirect("agent", request.workspace.slug, found.slug)

    title = f"New version of {found.name}"
    lead = "A version is frozen: code, command, parameters and limits never change once it is published."
    return form_page(
        request, form, save, title=title, submit="Publish version", lead=lead, trail=_trail(request, found), back=_url(request, found)
    )


def _trail(request: PageRequest, agent: Agent) -> tuple[tuple[str, str], ...]:
    return (("Agents", reverse("agent-list", args=[request.workspace.slug])), (agent.name, _url(request, agent)))


def _url(request: PageRequest, agent: Agent) -> str:
    return reverse("agent", args=[request.workspace.slug, agent.slug])
