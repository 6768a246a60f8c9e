"""Withdrawing something and everything that rests on it, and taking that back (M9). Marks are written, nothing is changed or deleted."""

import uuid
from collections import Counter

from django.utils import timezone

from runs.models import Evaluation, Run, UndeclaredInput
from runs.queries.lineage import Lineage, Node, Way, reach
from runs.queries.lineage_edges import CONTENT, NodeKind
from runs.queries.withdrawal import MOST_REACHED, SUBJECTS, fingerprint_now, fingerprint_of, reached_by
from workspaces import ids, kept_query, kept_write
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal, command
from workspaces.models import Withdrawal, WithdrawnObject
from workspaces.new_rows import NewRows, transaction_instant
from workspaces.verbs import Verb


@command(Verb.WITHDRAWAL_MADE, needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET)
def withdraw(event: Draft, *, actor: Actor, subject: Node, label: str, reason: str, fingerprint: str = "") -> Withdrawal:
    """Mark a subject and all that rests on it as withdrawn. `fingerprint`: that of the radius which was looked at; refused where it is another
    one by now. Launches wait for it, and it for them, so that no run comes in between; what takes long is done before they have to."""
    if subject.kind not in SUBJECTS:
        raise Refusal("A dataset version, a run or an artifact can be withdrawn.")
    if actor.user is None:
        raise Refusal("A person withdraws, who answers for it.")
    given = reason.strip()[:1000]
    if not given:
        raise Refusal("Say why; whoever rests on it will read it.", field="reason")
    reached = _looked_at(subject, label, fingerprint)
    seen = fingerprint or fingerprint_of(reached)
    withdrawal = Withdrawal(
        subject_kind=subject.kind, subject_id=subject.id, subject_label=label[:300], reason=given, withdrawn_by=actor.user
    )
    made = _Marks(withdrawal, reached.distance)
    lock_ledger(event)
    if Withdrawal.objects.filter(subject_kind=subject.kind, subject_id=subject.id, undone_at=None).exists():
        raise Refusal(f"{label} is withdrawn already.")
    if fingerprint_now(subject) != seen:  # somebody was in between
        made = _Marks(withdrawal, _looked_at(subject, label, fingerprint).distance)
    kept_write.insert([withdrawal])
    event.created(withdrawal)
    event.reason = given
    made.write(event)
    return withdrawal


@command(Verb.WITHDRAWAL_UNDONE, needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET)
def undo_withdrawal(event: Draft, *, actor: Actor, withdrawal: Withdrawal, reason: str) -> Withdrawal:
    """Let a withdrawal hold no more. Its marks stay for the record; boards and lists are what they would be without it."""
    if actor.user is None:
        raise Refusal("A person takes a withdrawal back, who answers for it.")
    given = reason.strip()[:1000]
    if not given:
        raise Refusal("Say why it may be rested on again.", field="reason")
    lock_ledger()
    found = Withdrawal.objects.select_for_update(no_key=True).get(pk=withdrawal.pk)
    if found.undone_at is not None:
        raise Refusal("It was undone before.")
    event.reason = given
    event.about = found
    event.change(found, undone_at=timezone.now(), undone_by=actor.user, undone_reason=given)
    return found


def spread(event: Draft, run: Run) -> None:
    """Part of the commands in which a run leaves something: what a run that rests on something withdrawn has made is withdrawn too, that of a run
    that has read something withdrawn without having declared it, and what a run has measured on something withdrawn. A contract is marked as the
    holdout is, but one that came after the mark on its holdout is not; as an admission does, both are asked for."""
    besides, scored = kept_query.ask_together(
        [kept_query.question(UndeclaredInput, run=run), kept_query.question(Evaluation, run=run, related=("contract",))]
    )
    read = {key for entry in besides for key in (entry.dataset_version_id, entry.artifact_id) if key is not None}
    on: dict[uuid.UUID, dict[Node, int]] = {}  # scores by what they were measured on, with the steps between
    for score in scored:
        measured = Node(NodeKind.EVALUATION, score.pk)
        on.setdefault(score.contract_id, {})[measured] = 1
        if score.contract.holdout_id is not None:
            on.setdefault(score.contract.holdout_id, {})[measured] = 2  # the contract stands between
    found = kept_query.rows(
        WithdrawnObject, object_id__in={run.pk, *read, *on}, withdrawal__undone_at__isnull=True, related=("withdrawal",),
        order_by=("distance", "pk"),
    )  # fmt: skip
    if not found:
        return
    made = reach([Node(NodeKind.RUN, run.pk)], Way.DOWN, along=CONTENT, most=MOST_REACHED).distance
    for mark in found:
        reached = {node: mark.distance + steps for node, steps in on.get(mark.object_id, {}).items()}
        if mark.object_id == run.pk or mark.object_id in read:
            away = 0 if mark.object_id == run.pk else 2  # the reading stands between
            reached = {node: mark.distance + away + steps for node, steps in made.items()} | reached
        known = set(mark.withdrawal.objects_marked.filter(object_id__in=[node.id for node in reached]).values_list("kind", "object_id"))
        fresh = {node: steps for node, steps in reached.items() if (node.kind.value, node.id) not in known}
        _Marks(mark.withdrawal, fresh).write(event)


def _looked_at(subject: Node, label: str, fingerprint: str) -> Lineage:
    reached = reached_by(subject)
    if not reached.is_whole:
        raise Refusal(f"More than {MOST_REACHED:,} things rest on {label}; withdraw what it was made into instead, one by one.")
    if fingerprint and fingerprint != fingerprint_of(reached):
        raise Refusal("Something else rests on it since you looked. Look at it again before you confirm.")
    return reached


class _Marks:
    """Marks that are ready to be written: what takes long with thousands of them comes before the lock."""

    def __init__(self, withdrawal: Withdrawal, distance: dict[Node, int]) -> None:
        same = {"workspace_id": withdrawal.workspace_id, "created_at": transaction_instant(), "withdrawal_id": withdrawal.pk}
        self.counts = Counter(node.kind.value for node in distance)
        self.rows = NewRows(
            [
                kept_write.row_of(WithdrawnObject, id=ids.uuid7(), kind=node.kind.value, object_id=node.id, distance=steps, **same)
                for node, steps in distance.items()
            ]
        )

    def write(self, event: Draft) -> None:
        self.rows.write(event)
        counts = event.details.setdefault("withdrawn", {})
        for kind, count in self.counts.items():
            counts[kind] = counts.get(kind, 0) + count
