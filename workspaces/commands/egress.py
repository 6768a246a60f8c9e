"""What may leave with a dataset: set by people with a reason, and never laxer than what the dataset was made of."""

from collections.abc import Iterable

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
    off, a closed class while the dataset is shared, and a change without reason."""
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
    if chosen == Dataset.Egress.RESTRICTED:
        _refuse_shared(locked)
    event.reason = reason.strip()[:1000]
    event.about = locked
    event.change(locked, egress=chosen)
    tighten(event, locked.windows.order_by("pk"), chosen)
    return locked


def tighten(event: Draft, datasets: Iterable[Dataset], egress: str) -> list[Dataset]:
    """Part of commands that make something of a stricter thing: close those that are laxer. Returns which were changed."""
    wanted = STRICTNESS[Dataset.Egress(egress)]
    laxer = [dataset for dataset in datasets if STRICTNESS[Dataset.Egress(dataset.egress)] < wanted]
    for dataset in laxer:
        event.change(dataset, egress=egress)
    return laxer


def _refuse_shared(dataset: Dataset) -> None:
    shared = ShareGrant.objects.filter(object_type="dataset", object_id=dataset.pk, revoked_at=None, expires_at__gt=timezone.now())
    grant = shared.select_related("to_workspace").first()
    if grant is not None and grant.to_workspace is not None:
        raise Refusal(f"{dataset.name} is shared with {grant.to_workspace.name}; end that share first.", field="egress")
