"""Artifacts and evaluations: what runs have made, and what was measured of it."""

import math
from typing import Any

from django.conf import settings
from django.http.response import HttpResponseBase
from django.urls import reverse

from runs.api.schema import ArtifactOut, ArtifactPage, EvaluationPage
from runs.models import Artifact, Evaluation, Run
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Size, Text, named_by
from workspaces.downloads import attachment
from workspaces.models import Benchmark
from workspaces.queries.paging import newest_first
from workspaces.queries.registry import stored_content

routes = Routes("artifacts")
evaluations = Routes("evaluations")


@routes.get("/artifacts", needs=Permission.VIEW, kind=Kind.ARTIFACT, response=ArtifactPage)
def list_artifacts(
    request: ApiRequest, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE, run: Text = "", kind: Text = ""
) -> dict[str, Any]:
    """Artifacts, newest first; of one run, or of one kind, where asked."""
    rows = Artifact.objects.select_related("run", "blob")
    made_by = named_by(Run, run, "run")
    if made_by:
        rows = rows.filter(run=made_by)
    if kind:
        rows = rows.filter(kind=kind)
    found = newest_first(rows, cursor=cursor, size=limit)
    return {"items": [shape_artifact(request, row) for row in found.items], "next": found.next}


@routes.get("/artifacts/{artifact}", needs=Permission.VIEW, kind=Kind.ARTIFACT, response=ArtifactOut)
def get_artifact(request: ApiRequest, artifact: str) -> dict[str, Any]:
    """One artifact; `url` serves its bytes."""
    return shape_artifact(request, Artifact.objects.find(artifact, "run", "blob"))


@routes.get("/artifacts/{artifact}/content", needs=Permission.VIEW, kind=Kind.ARTIFACT)
def get_artifact_content(request: ApiRequest, artifact: str) -> HttpResponseBase:
    """The bytes of an artifact, as an attachment."""
    found = Artifact.objects.find(artifact, "blob")
    return attachment(stored_content(found.blob), path=found.path, size=found.blob.bytes, sha256=found.blob.sha256)


@evaluations.get("/evaluations", needs=Permission.VIEW, kind=Kind.EVALUATION, response=EvaluationPage)
def list_evaluations(
    request: ApiRequest, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE, run: Text = "", benchmark: Text = ""
) -> dict[str, Any]:
    """Scores, newest first; of one run, or on one benchmark, where asked."""
    rows = Evaluation.objects.select_related("run", "benchmark", "contract")
    measured_by, measured_on = named_by(Run, run, "run"), named_by(Benchmark, benchmark, "benchmark")
    if measured_by:
        rows = rows.filter(run=measured_by)
    if measured_on:
        rows = rows.filter(benchmark=measured_on)
    found = newest_first(rows, cursor=cursor, size=limit)
    return {"items": [_evaluation(row) for row in found.items], "next": found.next}


def shape_artifact(request: ApiRequest, artifact: Artifact) -> dict[str, Any]:
    return {
        "id": artifact.public_id,
        "uuid": str(artifact.pk),
        "url": reverse("artifact-file", args=[request.workspace.slug, artifact.public_id]),
        "run_id": artifact.run.public_id,
        "name": artifact.name,
        "path": artifact.path,
        "kind": artifact.kind,
        "bytes": artifact.blob.bytes,
        "sha256": artifact.blob.sha256,
        "created_at": artifact.created_at,
    }


def named(value: float | None) -> float | str | None:
    """NaN and infinities by name: JSON has no word for them."""
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _evaluation(row: Evaluation) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "uuid": str(row.pk),
        "run_id": row.run.public_id,
        "benchmark_id": row.benchmark.public_id,
        "contract_version": row.contract.version,
        "metric": row.metric,
        "value": named(row.value),
        "standard_error": named(row.standard_error),
        "samples": row.samples,
        "created_at": row.created_at,
    }
