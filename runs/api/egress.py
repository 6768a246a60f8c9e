"""`/datasets/<id>/egress`: what may leave the workspace with a dataset."""

from typing import Any, Literal

from pydantic import Field

from runs.commands.egress import set_egress
from workspaces.access import Kind, Permission
from workspaces.api.dataset import whole
from workspaces.api.dataset_shapes import DatasetOut
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Line
from workspaces.models import Dataset

routes = Routes("datasets")


class EgressIn(Body):
    egress: Literal["public", "internal", "restricted"]
    reason: Line = Field(min_length=1, max_length=1000)


@routes.post("/datasets/{dataset}/egress", needs=Permission.MANAGE_WORKSPACE, kind=Kind.DATASET, response=DatasetOut)
def post_egress(request: ApiRequest, dataset: str, body: EgressIn) -> Any:
    """Say what of the dataset may leave the workspace: nothing laxer than what it was made of; its windows follow where it becomes stricter."""
    return whole(request, set_egress(actor=request.actor, dataset=Dataset.objects.find(dataset), egress=body.egress, reason=body.reason))
