"""`/agents`: list, create, read, publish a version.

A version is JSON with its code as base64 files. A larger bundle goes to `/versions/upload` as multipart/form-data: a field `spec` (the same
JSON without `files`), the part `bundle` (zip or tar.gz), and a last field `complete=1`.
"""

import base64
from collections.abc import Callable
from typing import Any

from django.http import HttpResponseBase
from ninja import Status
from pydantic import ValidationError

from workspaces import uploads
from workspaces.access import Kind, Permission
from workspaces.agent_inputs import Need
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import (
    AgentIn,
    AgentList,
    AgentOut,
    AgentVersionIn,
    AgentVersionList,
    AgentVersionOut,
    AgentVersionSpec,
    CodeFileIn,
    Cursor,
    Size,
    Text,
    agent_out,
    agent_version_out,
    made_before,
)
from workspaces.audit import Refusal
from workspaces.commands.agent import create_agent, publish_agent_version
from workspaces.commands.blob import SentFile, StoredFile, receive_files
from workspaces.downloads import stored_file
from workspaces.models import Agent, AgentVersion, Pool
from workspaces.queries.paging import in_order
from workspaces.queries.registry import (
    agent_rows,
    agent_version_row,
    agent_versions_of,
    find_agent_file,
    find_agent_version,
)

routes = Routes("agents")


@routes.get("/agents", needs=Permission.VIEW, kind=Kind.AGENT, response=AgentList)
def list_agents(request: ApiRequest, q: Text = "", cursor: Cursor = "", limit: Size = 50) -> Any:
    """Agents, newest first; `q` looks for a text in name and slug."""
    page = agent_rows(text=q, cursor=cursor, size=limit)
    return {"items": [agent_out(request, row.agent, row.version) for row in page.items], "next": page.next}


@routes.post("/agents", needs=Permission.EDIT_REGISTRY, kind=Kind.AGENT, response=AgentOut, status=201)
def post_agent(request: ApiRequest, body: AgentIn) -> Any:
    """Create an agent without a version yet."""
    agent = made_before(request, Agent) or create_agent(actor=request.actor, id=request.chosen_id, **body.dict())
    return Status(201, _whole(request, agent))


@routes.get("/agents/{agent}", needs=Permission.VIEW, kind=Kind.AGENT, response=AgentOut)
def get_agent(request: ApiRequest, agent: str) -> Any:
    """One agent with the number of its newest version."""
    return _whole(request, Agent.objects.find(agent))


@routes.get("/agents/{agent}/versions", needs=Permission.VIEW, kind=Kind.AGENT, response=AgentVersionList)
def list_versions(request: ApiRequest, agent: str, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Every version, newest first, with its code's manifest."""
    found = Agent.objects.find(agent)
    page = in_order(agent_versions_of(found), lambda row: (-row.version.number,), cursor=cursor, size=limit)
    return {"items": [agent_version_out(request, found, row) for row in page.items], "next": page.next}


@routes.post("/agents/{agent}/versions", needs=Permission.EDIT_REGISTRY, kind=Kind.AGENT, response=AgentVersionOut, status=201)
def post_version(request: ApiRequest, agent: str, body: AgentVersionIn) -> Any:
    """Publish the next version with its code in the body."""
    return Status(201, _published(request, agent, body, lambda: _stored(body.files)))


@routes.post(  # stands before the versions by number, which would take `upload` for one
    "/agents/{agent}/versions/upload", needs=Permission.EDIT_REGISTRY, kind=Kind.AGENT, response=AgentVersionOut, status=201, streams=True
)
def upload_version(request: ApiRequest, agent: str) -> Any:
    """Publish the next version with its code as a zip or tar.gz."""
    if not uploads.is_form(request):
        raise Refusal("Send multipart/form-data with spec, bundle and complete.", field="bundle")
    try:
        spec = AgentVersionSpec.model_validate_json(request.POST.get("spec", ""))
    except ValidationError as error:
        fault = error.errors()[0]
        raise Refusal(f"{fault['msg']}.", field=".".join(["spec", *(str(part) for part in fault["loc"])])) from error
    return Status(201, _published(request, agent, spec, lambda: uploads.receive_bundle(request, "bundle")))


@routes.get("/agents/{agent}/versions/{agentversion}", needs=Permission.VIEW, kind=Kind.AGENT, response=AgentVersionOut)
def get_version(request: ApiRequest, agent: str, agentversion: str) -> Any:
    """One version, by number or id, with its code's manifest."""
    found = Agent.objects.find(agent)
    return agent_version_out(request, found, agent_version_row(find_agent_version(found, agentversion)))


@routes.get("/agents/{agent}/versions/{agentversion}/files/{path:file}", needs=Permission.VIEW, kind=Kind.AGENT)
def get_file(request: ApiRequest, agent: str, agentversion: str, file: str) -> HttpResponseBase:
    """The content of one file of the code, as an attachment."""
    found = find_agent_file(find_agent_version(Agent.objects.find(agent), agentversion), file)
    return stored_file(request, found.blob, path=found.path)


def _published(request: ApiRequest, agent: str, spec: AgentVersionSpec, receive: Callable[[], list[StoredFile]]) -> dict[str, Any]:
    found = Agent.objects.find(agent)
    version = made_before(request, AgentVersion)
    if version is None:
        pools = [Pool.objects.find(name) for name in spec.pools]
        fields = spec.dict(exclude={"files", "pools"}) | {"inputs": [Need(**need.dict()) for need in spec.inputs]}
        version = publish_agent_version(actor=request.actor, agent=found, id=request.chosen_id, pools=pools, files=receive(), **fields)
    return agent_version_out(request, found, agent_version_row(version))


def _stored(files: list[CodeFileIn]) -> list[StoredFile]:
    contents = [base64.b64decode(file.content_base64) for file in files]
    sent = [SentFile(file.path, [content], len(content), file.is_executable) for file, content in zip(files, contents, strict=True)]
    return receive_files(sent, announced_bytes=sum(map(len, contents)))


def _whole(request: ApiRequest, agent: Agent) -> dict[str, Any]:
    return agent_out(request, agent, agent.versions.order_by("-number").first())
