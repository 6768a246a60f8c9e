"""What people do with a live dataset: let runs add to it, and cut a window."""

from django.http import HttpResponseBase
from django.urls import reverse

from workspaces.commands.live_dataset import cut_window, make_live
from workspaces.forms.dataset import LiveForm, WindowForm
from workspaces.models import Dataset
from workspaces.pages import PageRequest, redirect
from workspaces.queries.growth import waiting_of
from workspaces.units import plural
from workspaces.views.form_page import form_page


def dataset_live(request: PageRequest, dataset: str) -> HttpResponseBase:
    found = Dataset.objects.find(dataset)
    form = LiveForm(request.POST or None, initial={"window_records": found.window_records, "records_a_day": found.records_a_day})

    def save(form: LiveForm) -> HttpResponseBase:
        make_live(actor=request.actor, dataset=found, **form.cleaned_data)
        return redirect("dataset", request.workspace.slug, found.slug)

    title = f"How {found.name} grows" if found.is_live else f"Let runs add to {found.name}"
    lead = "Each run that names it in a line of type “dataset” of its events.jsonl adds its output as a piece. Runs read windows, which are frozen."
    trail, above = _above(request, found)
    return form_page(request, form, save, title=title, submit="Save", lead=lead, trail=trail, back=above)


def dataset_window(request: PageRequest, dataset: str) -> HttpResponseBase:
    found = Dataset.objects.find(dataset)
    form = WindowForm(request.POST or None)

    def save(form: WindowForm) -> HttpResponseBase:
        window = cut_window(actor=request.actor, dataset=found, **form.cleaned_data)
        return redirect("dataset", request.workspace.slug, window.slug)

    records, pieces = waiting_of(found)
    waits = f"{plural(records, 'record waits', 'records wait')} in {plural(pieces, 'piece', 'pieces')}" if pieces else "Nothing waits yet"
    lead = f"A window is frozen: it holds what has been added since the last one, and runs name it by its content. {waits}."
    trail, above = _above(request, found)
    return form_page(request, form, save, title=f"Cut a window of {found.name}", submit="Cut window", lead=lead, trail=trail, back=above)


def _above(request: PageRequest, dataset: Dataset) -> tuple[tuple[tuple[str, str], ...], str]:
    slug = request.workspace.slug
    above = reverse("dataset", args=[slug, dataset.slug])
    return (("Datasets", reverse("dataset-list", args=[slug])), (dataset.name, above)), above
