"""What may leave with a dataset, set by people: a command of this floor, since what a dataset was made of is known here."""

from runs.queries.egress import made_of, sources_of
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.egress import STRICTNESS, lock_with_windows, refuse_shared, tighten
from workspaces.models import Dataset
from workspaces.verbs import Verb

SHOWN = 20  # of what was closed with it, in the event


@command(Verb.DATASET_EGRESS_SET, needs=Permission.MANAGE_WORKSPACE, kind=Kind.DATASET)
def set_egress(event: Draft, *, actor: Actor, dataset: Dataset, egress: str, reason: str) -> Dataset:
    """Set the class of a dataset; windows that were cut off it and datasets that runs made of it follow where it becomes stricter. Refuses a class
    laxer than that of what it was cut off or made of, however far back, a closed class while the dataset or one that would follow is shared, and a
    change without reason."""
    if egress not in Dataset.Egress.values:
        raise Refusal(f"The classes are {', '.join(Dataset.Egress.values)}; {egress[:40]} is none.", field="egress")
    if not reason.strip():
        raise Refusal("Say why; whoever is refused an export will read it.", field="reason")
    chosen = Dataset.Egress(egress)
    lock_ledger(event)  # runs that end and versions that are frozen come before, or read the class that is set
    stands = Dataset.objects.values_list("egress", flat=True).get(pk=dataset.pk)  # whoever sets one has the lock
    made = set(made_of(dataset)) if STRICTNESS[chosen] >= STRICTNESS[Dataset.Egress(stands)] else set()
    family = lock_with_windows({dataset.window_of_id or dataset.pk, *made})  # with a window, what it was cut off
    locked = next(row for row in family if row.pk == dataset.pk)
    following = [row for row in family if row.pk in made or row.window_of_id in made or row.window_of_id == locked.pk]
    if locked.egress == chosen and all(STRICTNESS[Dataset.Egress(row.egress)] >= STRICTNESS[chosen] for row in following):
        raise Refusal(f"{locked.name} is {chosen.value} already.", field="egress")
    source = next((row for row in family if row.pk == locked.window_of_id), None)
    if source is not None and STRICTNESS[chosen] < STRICTNESS[Dataset.Egress(source.egress)]:
        raise Refusal(f"It was cut off {source.name}, which is {source.get_egress_display()}; change that first.", field="egress")
    if STRICTNESS[chosen] < STRICTNESS[Dataset.Egress(locked.egress)]:
        _refuse_laxer(locked, chosen)
    if chosen == Dataset.Egress.RESTRICTED:
        refuse_shared(locked, *following)
    event.reason = reason.strip()[:1000]
    event.about = locked
    if locked.egress != chosen:
        event.change(locked, egress=chosen)
    closed = tighten(event, [row.pk for row in (locked, *following)], chosen)
    if closed:
        event.details["closed"] = [row.slug for row in closed[:SHOWN]]
        event.details["closed_count"] = len(closed)
    return locked


def _refuse_laxer(dataset: Dataset, chosen: Dataset.Egress) -> None:
    sources = sources_of(dataset)
    if sources is None:
        raise Refusal("It was made of more than can be looked at, so nobody can tell what of it is closed.", field="egress")
    stricter = next((source for source in sources if STRICTNESS[Dataset.Egress(source.egress)] > STRICTNESS[chosen]), None)
    if stricter is not None:
        raise Refusal(f"Runs made it of {stricter.name}, which is {stricter.get_egress_display()}; change that first.", field="egress")
