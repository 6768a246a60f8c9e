"""What may leave with a dataset: set by people with a reason, and never laxer than what the dataset was made of."""

from collections.abc import Iterable

from django.db.models import QuerySet
from django.utils import timezone

from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.models import Dataset, ShareGrant
from workspaces.verbs import Verb

# From free to closed; what is made of several takes the last of theirs.
STRICTNESS = {Dataset.Egress.PUBLIC: 0, Dataset.Egress.INTERNAL: 1, Dataset.Egress.RESTRICTED: 2}


@command(Verb.DATASET_EGRESS_SET, needs=Permission.MANAGE_WORKSPACE, kind=Kind.DATASET)
def set_egress(event: Draft, *, actor: Actor, dataset: Dataset, egress: str, reason: str) -> Dataset:
    """Set the class of a dataset; windows that were cut off it follow where it becomes stricter. Refuses a window laxer than what it was cut
    off, a closed class while the dataset or a window of it is shared, and a change without reason."""
    if egress not in Dataset.Egress.values:
        raise Refusal(f"The classes are {', '.join(Dataset.Egress.values)}; {egress[:40]} is none.", field="egress")
    if not reason.strip():
        raise Refusal("Say why; whoever is refused an export will read it.", field="reason")
    chosen = Dataset.Egress(egress)
    locked = Dataset.objects.select_for_update(no_key=True, of=("self",)).select_related("window_of").get(pk=dataset.pk)
    if locked.egress == chosen:
        raise Refusal(f"{locked.name} is {chosen.label} already.", field="egress")
    source = locked.window_of
    if source is not None and STRICTNESS[chosen] < STRICTNESS[Dataset.Egress(source.egress)]:
        raise Refusal(f"It was cut off {source.name}, which is {source.get_egress_display()}; change that first.", field="egress")
    windows = list(locked.windows.select_for_update(no_key=True).order_by("pk"))
    if chosen == Dataset.Egress.RESTRICTED:
        _refuse_shared(locked, *windows)
    event.reason = reason.strip()[:1000]
    event.about = locked
    event.change(locked, egress=chosen)
    tighten(event, windows, chosen)
    return locked


def tighten(event: Draft, datasets: Iterable[Dataset], egress: str) -> list[Dataset]:
    """Part of commands that make something of a stricter thing: close those that are laxer. Returns which were changed. Shares of what is
    restricted by it end: a run that ends cannot be refused."""
    wanted = STRICTNESS[Dataset.Egress(egress)]
    laxer = [dataset for dataset in datasets if STRICTNESS[Dataset.Egress(dataset.egress)] < wanted]
    for dataset in laxer:
        event.change(dataset, egress=egress)
    if egress == Dataset.Egress.RESTRICTED:
        for grant in _shares(laxer).select_for_update(no_key=True):
            event.change(grant, revoked_at=timezone.now())
    return laxer


def _refuse_shared(*datasets: Dataset) -> None:
    grant = _shares(datasets).select_related("to_workspace").first()
    if grant is not None and grant.to_workspace is not None:
        raise Refusal(f"{grant.object_label} is shared with {grant.to_workspace.name}; end that share first.", field="egress")


def _shares(datasets: Iterable[Dataset]) -> "QuerySet[ShareGrant]":
    keys = [dataset.pk for dataset in datasets]
    return ShareGrant.objects.filter(object_type="dataset", object_id__in=keys, revoked_at=None, expires_at__gt=timezone.now()).order_by(
        "pk"
    )
