"""Forms and files of datasets. Their list and the dataset itself tell what the upper floor knows of them, too (runs/views/dataset.py)."""

from django.http import HttpResponseBase, JsonResponse
from django.urls import reverse

from workspaces.commands.dataset import change_dataset, create_dataset, import_dataset_version, set_origin
from workspaces.downloads import stored_file
from workspaces.forms.dataset import DatasetEditForm, DatasetForm, OriginForm, UploadForm
from workspaces.models import Dataset
from workspaces.pages import PageRequest, redirect
from workspaces.queries.croissant import croissant_of
from workspaces.queries.registry import find_file, find_version, newest_version
from workspaces.queries.version_proof import proof_in
from workspaces.uploads import receive_archive, receive_form_files
from workspaces.views.form_page import form_page


def dataset_new(request: PageRequest) -> HttpResponseBase:
    form = DatasetForm(request.POST or None)

    def save(form: DatasetForm) -> HttpResponseBase:
        dataset = create_dataset(actor=request.actor, **form.cleaned_data)
        return redirect("dataset-upload", request.workspace.slug, dataset.slug)

    above = reverse("dataset-list", args=[request.workspace.slug])
    lead = "First what it is; its files come next."
    return form_page(request, form, save, title="New dataset", submit="Create dataset", lead=lead, trail=(("Datasets", above),), back=above)


def dataset_edit(request: PageRequest, dataset: str) -> HttpResponseBase:
    found = Dataset.objects.find(dataset)
    initial = {name: getattr(found, name) for name in ("name", "description", "licence")}
    form = DatasetEditForm(request.POST or None, initial=initial)

    def save(form: DatasetEditForm) -> HttpResponseBase:
        change_dataset(actor=request.actor, dataset=found, **form.cleaned_data)
        return redirect("dataset", request.workspace.slug, found.slug)

    return form_page(
        request, form, save, title=f"Change {found.name}", submit="Save changes", trail=_trail(request, found), back=_url(request, found)
    )


def dataset_origin(request: PageRequest, dataset: str) -> HttpResponseBase:
    found = Dataset.objects.find(dataset)
    form = OriginForm(request.POST or None, initial={name: getattr(found, name) for name in ("origin", "evidence", "licence")})

    def save(form: OriginForm) -> HttpResponseBase:
        set_origin(actor=request.actor, dataset=found, **form.cleaned_data)
        return redirect("dataset", request.workspace.slug, found.slug)

    title = f"Where {found.name} is from"
    return form_page(request, form, save, title=title, submit="Save", trail=_trail(request, found), back=_url(request, found))


def dataset_upload(request: PageRequest, dataset: str) -> HttpResponseBase:
    found = Dataset.objects.find(dataset)
    form = UploadForm(request.POST or None, request.FILES or None) if request.method == "POST" else UploadForm()

    def save(form: UploadForm) -> HttpResponseBase:
        given = form.cleaned_data
        receive = receive_archive if given["is_archive"] else receive_form_files
        files = receive(request, "file", has_header=given["has_header"])
        kept = {name: given[name] for name in ("role", "source", "licence", "evidence", "records", "reason")}
        import_dataset_version(actor=request.actor, dataset=found, files=files, **kept)
        return redirect("dataset", request.workspace.slug, found.slug)

    title = f"Upload a version of {found.name}"
    lead = "A version is frozen: runs name it by its content, and it never changes."
    return form_page(
        request, form, save, title=title, submit="Upload version", lead=lead, trail=_trail(request, found), back=_url(request, found)
    )


def dataset_file(request: PageRequest, dataset: str, version: str, path: str) -> HttpResponseBase:
    file = find_file(find_version(Dataset.objects.find(dataset), version), path)
    return stored_file(request, file.blob, path=file.path)


def dataset_croissant(request: PageRequest, dataset: str) -> HttpResponseBase:
    """The newest version, or the one asked for, as Croissant 1.1."""
    found = Dataset.objects.find(dataset)
    version = find_version(found, request.GET["version"]) if "version" in request.GET else newest_version(found)

    def address(path: str) -> str:
        number = str(version.number) if version else ""
        return request.build_absolute_uri(reverse("dataset-file", args=[request.workspace.slug, found.slug, number, path]))

    document = croissant_of(found, version, page=request.build_absolute_uri(_url(request, found)), address=address)
    answer = JsonResponse(document, json_dumps_params={"ensure_ascii": False, "indent": 2}, content_type="application/ld+json")
    answer["Content-Disposition"] = 'attachment; filename="croissant.json"'
    return answer


def dataset_proof(request: PageRequest, dataset: str, version: str, path: str) -> HttpResponseBase:
    proof = proof_in(find_version(Dataset.objects.find(dataset), version), path)
    return JsonResponse(proof, json_dumps_params={"ensure_ascii": False, "indent": 2})


def _trail(request: PageRequest, dataset: Dataset) -> tuple[tuple[str, str], ...]:
    return (("Datasets", reverse("dataset-list", args=[request.workspace.slug])), (dataset.name, _url(request, dataset)))


def _url(request: PageRequest, dataset: Dataset) -> str:
    return reverse("dataset", args=[request.workspace.slug, dataset.slug])
