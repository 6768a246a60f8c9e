"""What may leave with a dataset: how classes compare, closing what is made of something closed. People set them by runs/commands/egress.py."""

import uuid
from collections.abc import Iterable

from django.db.models import QuerySet
from django.utils import timezone

from workspaces.audit import Draft, Refusal
from workspaces.models import Dataset, ShareGrant

# From free to closed; what is made of several takes the last of theirs.
STRICTNESS = {Dataset.Egress.PUBLIC: 0, Dataset.Egress.INTERNAL: 1, Dataset.Egress.RESTRICTED: 2}


def tighten(event: Draft, keys: Iterable[uuid.UUID], egress: str) -> list[Dataset]:
    """Part of commands that make something of a stricter thing: lock the datasets of these keys with their windows, and close those that are
    laxer. Returns which were changed. Shares of what is restricted by it end: a run that ends cannot be refused."""
    wanted = STRICTNESS[Dataset.Egress(egress)]
    laxer = [dataset for dataset in lock_with_windows(keys) if STRICTNESS[Dataset.Egress(dataset.egress)] < wanted]
    for dataset in laxer:
        event.change(dataset, egress=egress)
    if egress == Dataset.Egress.RESTRICTED:
        for grant in _shares(laxer).select_for_update(no_key=True):
            event.change(grant, revoked_at=timezone.now())
    return laxer


def lock_with_windows(keys: Iterable[uuid.UUID]) -> list[Dataset]:
    """The datasets of these keys and their windows as they are now, whoever sets their class meanwhile waiting: one order of locks for all, datasets
    by key, then windows by key. A second query, since a window may have been cut while the first one waited."""
    rows = Dataset.objects.select_for_update(no_key=True, of=("self",))
    datasets = list(rows.filter(pk__in=list(keys)).order_by("pk"))
    return datasets + list(rows.filter(window_of__in=datasets).exclude(pk__in=[row.pk for row in datasets]).order_by("pk"))


def refuse_shared(*datasets: Dataset) -> None:
    """Part of the command that closes by hand: its shares are ended first, by whoever gave them."""
    grant = _shares(datasets).select_related("to_workspace").first()
    if grant is not None and grant.to_workspace is not None:
        raise Refusal(f"{grant.object_label} is shared with {grant.to_workspace.name}; end that share first.", field="egress")


def _shares(datasets: Iterable[Dataset]) -> "QuerySet[ShareGrant]":
    keys = [dataset.pk for dataset in datasets]
    return ShareGrant.objects.filter(object_type="dataset", object_id__in=keys, revoked_at=None, expires_at__gt=timezone.now()).order_by(
        "pk"
    )
