"""What may leave with a dataset, set by people: a command of this floor, since what a dataset was made of is known here."""

from runs.queries.egress import sources_of
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.egress import STRICTNESS, lock_with_windows, refuse_shared, tighten
from workspaces.models import Dataset
from workspaces.verbs import Verb


@command(Verb.DATASET_EGRESS_SET, needs=Permission.MANAGE_WORKSPACE, kind=Kind.DATASET)
def set_egress(event: Draft, *, actor: Actor, dataset: Dataset, egress: str, reason: str) -> Dataset:
    """Set the class of a dataset; windows that were cut off it follow where it becomes stricter. Refuses a class laxer than that of what it was cut
    off or made of, however far back, a closed class while the dataset or a window of it is shared, and a change without reason."""
    if egress not in Dataset.Egress.values:
        raise Refusal(f"The classes are {', '.join(Dataset.Egress.values)}; {egress[:40]} is none.", field="egress")
    if not reason.strip():
        raise Refusal("Say why; whoever is refused an export will read it.", field="reason")
    chosen = Dataset.Egress(egress)
    family = lock_with_windows([dataset.window_of_id or dataset.pk])  # with a window, what it was cut off
    locked = next(row for row in family if row.pk == dataset.pk)
    if locked.egress == chosen:
        raise Refusal(f"{locked.name} is {chosen.label} already.", field="egress")
    source = next((row for row in family if row.pk == locked.window_of_id), None)
    if source is not None and STRICTNESS[chosen] < STRICTNESS[Dataset.Egress(source.egress)]:
        raise Refusal(f"It was cut off {source.name}, which is {source.get_egress_display()}; change that first.", field="egress")
    if STRICTNESS[chosen] < STRICTNESS[Dataset.Egress(locked.egress)]:
        _refuse_laxer(locked, chosen)
    if chosen == Dataset.Egress.RESTRICTED:
        refuse_shared(locked, *(row for row in family if row.window_of_id == locked.pk))
    event.reason = reason.strip()[:1000]
    event.about = locked
    event.change(locked, egress=chosen)
    tighten(event, [locked.pk], chosen)
    return locked


def _refuse_laxer(dataset: Dataset, chosen: Dataset.Egress) -> None:
    sources = sources_of(dataset)
    if sources is None:
        raise Refusal("It was made of more than can be looked at, so nobody can tell what of it is closed.", field="egress")
    stricter = next((source for source in sources if STRICTNESS[Dataset.Egress(source.egress)] > STRICTNESS[chosen]), None)
    if stricter is not None:
        raise Refusal(f"Runs made it of {stricter.name}, which is {stricter.get_egress_display()}; change that first.", field="egress")
