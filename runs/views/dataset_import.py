"""Pages that bring a version from elsewhere: asking for addresses to be read, how far that is, freezing an artifact."""

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from runs.commands.artifact_dataset import import_artifact
from runs.commands.croissant import import_croissant
from runs.commands.dataset_import import request_import
from runs.forms.dataset_import import ArtifactForm, CroissantForm, ImportForm
from runs.models import Artifact, DatasetImport
from runs.queries.dataset_import import progress_of
from runs.views.live import live
from workspaces.access import Kind, Permission
from workspaces.audit import Refusal
from workspaces.models import Dataset, NotFound, Secret
from workspaces.pages import PageRequest, redirect
from workspaces.queries.secret import usable_secrets
from workspaces.views.form_page import form_page


def import_new(request: PageRequest, dataset: str) -> HttpResponseBase:
    found = Dataset.objects.find(dataset)
    may_open = request.rights.allows(Permission.MANAGE_SECRET, Kind.SECRET)
    secrets = usable_secrets() if may_open else []
    form = ImportForm(request.POST or None, secrets=secrets)

    def save(form: ImportForm) -> HttpResponseBase:
        given = {**form.cleaned_data, "secret": _named(secrets, form.cleaned_data.get("secret", ""))}
        asked = request_import(actor=request.actor, dataset=found, files=given.pop("addresses"), **given)
        return redirect("dataset-import", request.workspace.slug, found.slug, asked.public_id)

    lead = "labsite reads the files, hashes them on the way, and freezes them as one version, or nothing. What changes while it is read is refused."
    trail, back = _above(request, found)
    title = f"Import a version of {found.name}"
    return form_page(request, form, save, title=title, submit="Import version", lead=lead, trail=trail, back=back)


def croissant_new(request: PageRequest) -> HttpResponseBase:
    form = CroissantForm(request.POST or None)

    def save(form: CroissantForm) -> HttpResponseBase:
        asked = import_croissant(actor=request.actor, **form.cleaned_data)
        return redirect("dataset-import", request.workspace.slug, asked.dataset.slug, asked.public_id)

    above = reverse("dataset-list", args=[request.workspace.slug])
    lead = "The dataset takes name, description and licence from the file. Its files are read, and each must have the SHA-256 that is named there."
    trail = (("Datasets", above),)
    return form_page(request, form, save, title="Import a Croissant", submit="Import data set", lead=lead, trail=trail, back=above)


def import_page(request: PageRequest, dataset: str, datasetimport: str) -> HttpResponseBase:
    found = _found(dataset, datasetimport)
    context = {
        "dataset": found.dataset,
        "asked": found,
        "files": found.found or [{"path": entry["path"], "sha256": entry["sha256"], "bytes": entry["bytes"]} for entry in found.sources],
        "progress": progress_of(found),
        "is_live": found.status in DatasetImport.OPEN,
    }
    if request.GET.get("part") == "live":
        response = live(request, "runs/dataset_import_live.html", context)
        if found.status not in DatasetImport.OPEN:
            response["HX-Refresh"] = "true"
        return response
    return render(request, "runs/dataset_import.html", context)


def artifact_new(request: PageRequest, dataset: str) -> HttpResponseBase:
    found = Dataset.objects.find(dataset)
    form = ArtifactForm(request.POST or None, initial={"artifact": request.GET.get("artifact", "")[:100]})

    def save(form: ArtifactForm) -> HttpResponseBase:
        given = form.cleaned_data
        try:
            artifact = Artifact.objects.find(given.pop("artifact"))
        except NotFound as error:
            raise Refusal("There is no such artifact here.", field="artifact") from error
        import_artifact(actor=request.actor, dataset=found, artifact=artifact, **given)
        return redirect("dataset", request.workspace.slug, found.slug)

    lead = "The version is derived from the artifact, so that its lineage leads to the run and to all that the run has read. No byte is copied."
    trail, back = _above(request, found)
    title = f"Freeze an artifact as a version of {found.name}"
    return form_page(request, form, save, title=title, submit="Freeze version", lead=lead, trail=trail, back=back)


def _found(dataset: str, text: str) -> DatasetImport:
    found = DatasetImport.objects.find(text, "dataset", "requested_by", "version", "secret")
    if found.dataset_id != Dataset.objects.find(dataset).pk:
        raise NotFound("import")
    return found


def _named(secrets: list[Secret], name: str) -> Secret | None:
    return next((secret for secret in secrets if secret.name == name), None)


def _above(request: PageRequest, dataset: Dataset) -> tuple[tuple[tuple[str, str], ...], str]:
    slug = request.workspace.slug
    back = reverse("dataset", args=[slug, dataset.slug])
    return (("Datasets", reverse("dataset-list", args=[slug])), (dataset.name, back)), back
