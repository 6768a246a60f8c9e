"""Classes of what grows: a live dataset, its windows, and what somebody sets while a run ends."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from labsite.owner import as_owner
from runs.commands import egress, growth
from runs.commands.artifact_dataset import import_artifact
from runs.commands.egress import set_egress
from runs.models import Artifact
from tests.factories import make_workspace
from tests.factories_runs import Laboratory, drive, launch
from tests.runs.attempts import in_threads, is_someone_waiting, until
from tests.runs.test_egress import classify, exports, grown_and_read, laboratory
from workspaces import scope
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal
from workspaces.commands.dataset import create_dataset
from workspaces.commands.egress import refuse_shared, tighten
from workspaces.commands.live_dataset import cut_window, make_live
from workspaces.commands.share import grant_share, revoke_share
from workspaces.models import AuditEvent, Dataset, DatasetPiece, EventPayload

__all__ = ["exports", "laboratory"]  # the fixtures, by their names
pytestmark = pytest.mark.django_db(transaction=True)


def test_windows_and_what_grows_are_of_the_class_they_come_from(laboratory: Laboratory) -> None:
    with laboratory.opened():
        grown = create_dataset(actor=laboratory.owner, slug="grown")
        make_live(actor=laboratory.owner, dataset=grown)
    classify(laboratory, "grown", "public")
    with laboratory.opened():
        run = launch(laboratory, datasets=("free",))
    classify(laboratory, "free", "public")
    assert drive(laboratory, run).status == "succeeded"
    with laboratory.opened():
        window = cut_window(actor=laboratory.owner, dataset=Dataset.objects.find("grown"))
        assert (Dataset.objects.find("grown").egress, window.egress) == ("public", "public")
    classify(laboratory, "closed", "restricted")
    with laboratory.opened():
        run = launch(laboratory, datasets=("closed",))
    assert drive(laboratory, run).status == "succeeded"
    with laboratory.opened():
        assert Dataset.objects.find("grown").egress == "restricted"
        assert Dataset.objects.get(pk=window.pk).egress == "restricted"  # it was cut off what is closed now
        assert cut_window(actor=laboratory.owner, dataset=Dataset.objects.find("grown")).egress == "restricted"
        with pytest.raises(Refusal, match="change that first"):
            set_egress(actor=laboratory.owner, dataset=window, egress="internal", reason="x")


def test_a_class_set_while_a_run_ends_is_not_made_laxer_by_it(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    with laboratory.opened():
        make_live(actor=laboratory.owner, dataset=create_dataset(actor=laboratory.owner, slug="grown"))
    classify(laboratory, "grown", "public")
    with laboratory.opened():
        run = launch(laboratory, datasets=("free",))

    said: list[BaseException] = []

    def close() -> None:
        classify(laboratory, "grown", "restricted")

    closer = threading.Thread(target=lambda: said.extend(in_threads(1, close)))

    def close_then_tighten(event: Draft, *given: Any) -> list[Dataset]:
        closer.start()
        until(lambda: not closer.is_alive() or is_someone_waiting(), "the class is set, or waits for the run's end")
        return tighten(event, *given)

    monkeypatch.setattr(growth, "tighten", close_then_tighten)
    assert drive(laboratory, run).status == "succeeded"
    closer.join(20)
    assert (closer.is_alive(), said) == (False, [])
    with laboratory.opened():
        assert DatasetPiece.objects.filter(dataset__slug="grown").exists()
        assert Dataset.objects.find("grown").egress == "restricted"


def test_what_runs_made_of_it_before_is_closed_with_it(laboratory: Laboratory) -> None:
    """Grown, cut, frozen from an artifact, and what was made of these in turn; what has nothing of it stays as it was."""
    window, _, reader = grown_and_read(laboratory)
    with laboratory.opened():
        derived = create_dataset(actor=laboratory.owner, slug="derived")
        import_artifact(actor=laboratory.owner, dataset=derived, artifact=Artifact.objects.get(run=reader, path="copy.txt"), role="train")
        other, _ = make_workspace("other")
        tomorrow = timezone.now() + timedelta(days=1)
        share: dict[str, Any] = {"object_type": "dataset", "to_workspace": other, "expires_at": tomorrow, "reason": "to read"}
        grant = grant_share(actor=laboratory.owner, object_id="derived", **share)
        with pytest.raises(Refusal, match="derived is shared with Other; end that share first"):
            set_egress(actor=laboratory.owner, dataset=Dataset.objects.find("closed"), egress="restricted", reason="x")
        revoke_share(actor=laboratory.owner, grant=grant, reason="over")
    classify(laboratory, "closed", "restricted")
    with laboratory.opened():
        classes = dict(Dataset.objects.values_list("slug", "egress"))
        closed = {"closed", "grown", window.slug, "derived"}
        assert {slug for slug, egress in classes.items() if egress == "restricted"} == closed
        details = EventPayload.objects.get(event=AuditEvent.objects.latest("sequence")).body["details"]
        assert (sorted(details["closed"]), details["closed_count"]) == (sorted(closed - {"closed"}), 3)


def test_what_was_made_of_it_before_it_followed_is_closed_by_saying_so_again(laboratory: Laboratory) -> None:
    with laboratory.opened():
        make_live(actor=laboratory.owner, dataset=create_dataset(actor=laboratory.owner, slug="grown"))
        run = launch(laboratory, datasets=("closed",))
    assert drive(laboratory, run).status == "succeeded"
    classify(laboratory, "closed", "restricted")
    with as_owner(), scope.open_workspace(laboratory.workspace.pk):
        Dataset.objects.filter(slug="grown").update(egress="public")  # as a dataset that was made before classes followed
    classify(laboratory, "closed", "restricted")
    with laboratory.opened():
        assert Dataset.objects.find("grown").egress == "restricted"
        with pytest.raises(Refusal, match="restricted already"):
            set_egress(actor=laboratory.owner, dataset=Dataset.objects.find("closed"), egress="restricted", reason="x")


def test_a_window_is_cut_behind_a_withdrawal_that_is_under_way(laboratory: Laboratory) -> None:
    """It marks what was cut before it, and what is cut after it sees its marks."""
    said: list[BaseException] = []
    with laboratory.opened():
        make_live(actor=laboratory.owner, dataset=create_dataset(actor=laboratory.owner, slug="grown"))

    def cut() -> None:
        with laboratory.opened():
            cut_window(actor=laboratory.owner, dataset=Dataset.objects.find("grown"))

    cutter = threading.Thread(target=lambda: said.extend(in_threads(1, cut)))
    with laboratory.opened(), transaction.atomic():
        lock_ledger()  # as a withdrawal does
        cutter.start()
        until(lambda: not cutter.is_alive() or is_someone_waiting(), "the window is cut, or waits")
        assert cutter.is_alive()
    cutter.join(20)
    assert [type(one) for one in said] == [Refusal], "nothing was waiting"


def test_a_window_is_not_set_laxer_than_what_it_was_cut_off_becomes(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its class waits for the one that is being set on what it was cut off."""
    with laboratory.opened():
        make_live(actor=laboratory.owner, dataset=create_dataset(actor=laboratory.owner, slug="grown"))
        run = launch(laboratory, datasets=("free",))
    assert drive(laboratory, run).status == "succeeded"
    with laboratory.opened():
        window = cut_window(actor=laboratory.owner, dataset=Dataset.objects.find("grown"))
    classify(laboratory, window.slug, "restricted")
    said: list[BaseException] = []

    def loosen() -> None:
        classify(laboratory, window.slug, "internal")

    setter = threading.Thread(target=lambda: said.extend(in_threads(1, loosen)))

    def refuse_then_set(*datasets: Dataset) -> None:
        refuse_shared(*datasets)
        if not setter.ident:
            setter.start()
            until(lambda: not setter.is_alive() or is_someone_waiting(), "the window's class is set, or waits")

    monkeypatch.setattr(egress, "refuse_shared", refuse_then_set)
    classify(laboratory, "grown", "restricted")
    setter.join(20)
    assert [type(one) for one in said] == [Refusal]
    with laboratory.opened():
        assert Dataset.objects.get(pk=window.pk).egress == "restricted"
