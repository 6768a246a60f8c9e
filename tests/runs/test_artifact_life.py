"""An artifact's life: kept until, deleted and restorable, removed with its bytes; never while something rests on it."""

import io
import json
import re
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from runs.commands import artifact as commands
from runs.commands.approval import decide_approval
from runs.commands.artifact import delete_artifact, remove_artifact, restore_artifact, set_artifact_days, set_keep_until
from runs.commands.export import request_export
from runs.commands.promotion import withdraw_promotion
from runs.jobs.tidy import tidy_artifacts
from runs.models import Artifact, Run
from runs.models.artifact import GRACE
from runs.queries.promotion import told
from tests.factories import make_member
from tests.factories_pages import add_artifact, client_of, copy_runs, score_runs
from tests.factories_people import bearer, make_token
from tests.factories_promotions import make_candidate, propose
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces import scope, store
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.commands.blob import receive_file, stored_bytes, tidy_store
from workspaces.commands.limit import set_limit
from workspaces.commands.reconcile import reconcile_files
from workspaces.models import AuditEvent, Blob, Limit, Unit

W = "/workspaces/lab"
SYSTEM = Actor.system(job_id="test")


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


@pytest.fixture
def opened(laboratory: Laboratory) -> Iterator[Laboratory]:
    with laboratory.opened():
        yield laboratory


def make(laboratory: Laboratory, content: bytes = b"x" * 5000, *, path: str = "out.bin", kind: str = "file") -> Artifact:
    pattern = Run.objects.order_by("number").first() or launch(laboratory)
    (run,) = copy_runs(actor=laboratory.owner, pattern=pattern, count=1)
    return add_artifact(actor=laboratory.owner, run=run, path=path, content=content, kind=kind)


def place_of(artifact: Artifact) -> Path | None:
    return store.local_path("local", scope.current_id(), artifact.blob.sha256)


def remove(laboratory: Laboratory, artifact: Artifact) -> Artifact:
    delete_artifact(actor=laboratory.owner, artifact=artifact, reason="No use.")
    return remove_artifact(actor=laboratory.owner, artifact=artifact)


def fresh(artifact: Artifact) -> Artifact:
    return Artifact.objects.select_related("blob").get(pk=artifact.pk)


def test_bytes_and_quota_fall_when_it_is_removed_and_not_before(opened: Laboratory) -> None:
    artifact = make(opened)
    before = stored_bytes()
    delete_artifact(actor=opened.owner, artifact=artifact, reason="No use.")
    assert (stored_bytes(), place_of(artifact) is None) == (before, False)
    remove_artifact(actor=opened.owner, artifact=artifact)
    assert (before - stored_bytes(), place_of(artifact)) == (5000, None)
    event = AuditEvent.objects.latest("sequence")
    assert event.verb == "artifact.removed"


def test_content_that_something_else_has_stays(opened: Laboratory) -> None:
    one, other = make(opened), make(opened)
    before = stored_bytes()
    remove(opened, one)
    assert (stored_bytes(), place_of(other) is None) == (before, False)
    remove(opened, other)
    assert (before - stored_bytes(), place_of(other)) == (5000, None)


def test_the_same_content_comes_again(opened: Laboratory) -> None:
    gone = make(opened)
    before = stored_bytes()
    remove(opened, gone)
    again = make(opened)
    assert (again.blob_id, stored_bytes(), place_of(again) is None) == (gone.blob_id, before, False)
    assert fresh(gone).removed_at is not None, "what was removed stays removed"


def test_restored_until_it_is_removed(opened: Laboratory) -> None:
    artifact = make(opened)
    delete_artifact(actor=opened.owner, artifact=artifact, reason="No use.")
    assert restore_artifact(actor=opened.owner, artifact=artifact).deleted_at is None
    remove(opened, artifact)
    with pytest.raises(Refusal, match="for good"):
        restore_artifact(actor=opened.owner, artifact=artifact)


def test_a_full_quota_never_blocks_deleting(opened: Laboratory) -> None:
    artifact = make(opened)
    amount = stored_bytes() - 1000
    set_limit(
        actor=opened.owner, unit=Unit.STORAGE_BYTES, window=Limit.Window.NOW, amount=amount, mode=Limit.Mode.STOP, reason="full"
    )  # fmt: skip
    with pytest.raises(Refusal, match="of storage"):
        receive_file("more.bin", [b"m" * 500], expected_bytes=500)
    remove(opened, artifact)
    assert receive_file("more.bin", [b"m" * 500], expected_bytes=500).bytes == 500


# --- What rests on it ---------------------------------------------------------------------------------------------------------------------


def refused(laboratory: Laboratory, artifact: Artifact) -> str:
    with pytest.raises(Refusal) as refusal:
        delete_artifact(actor=laboratory.owner, artifact=artifact, reason="No use.")
    return " ".join(refusal.value.reasons)


def test_a_score_of_it_keeps_it(opened: Laboratory) -> None:
    artifact = make(opened)
    (judge,) = copy_runs(actor=opened.owner, pattern=artifact.run, count=1, kind="evaluate")
    score_runs(actor=opened.owner, scores={judge: (0.5, None)}, subject_artifact=artifact)
    assert "A score is of it" in refused(opened, artifact)


def test_a_run_that_is_to_read_it_keeps_it(opened: Laboratory) -> None:
    artifact = make(opened)
    run = launch(opened, artifacts=(artifact.public_id,))
    assert f"{run.name} reads it and is queued" in refused(opened, artifact)


def test_a_promotion_keeps_it_until_it_is_withdrawn(opened: Laboratory) -> None:
    approver = make_member(opened.workspace, "approver")
    artifact = make_candidate(opened)
    promotion, approval = propose(opened.owner, artifact)
    assert "is put forward as champion, promotion 1" in refused(opened, artifact)
    decide_approval(actor=approver, approval=approval, approves=True, seen_hash=approval.content_hash)
    assert "stands as champion, promotion 1" in refused(opened, artifact)
    withdraw_promotion(actor=opened.owner, promotion=promotion, reason="A bug.")
    assert remove(opened, artifact).removed_at


def test_an_export_that_carries_it_keeps_it(opened: Laboratory) -> None:
    artifact = make(opened)
    request_export(actor=opened.owner, files="internal", reason="To the partner.")
    assert "Export 1 carries it" in refused(opened, artifact)


def test_what_came_to_rest_on_it_after_it_was_deleted_keeps_its_file(opened: Laboratory) -> None:
    artifact = make(opened)
    delete_artifact(actor=opened.owner, artifact=artifact, reason="No use.")
    (judge,) = copy_runs(actor=opened.owner, pattern=artifact.run, count=1, kind="evaluate")
    score_runs(actor=opened.owner, scores={judge: (0.5, None)}, subject_artifact=artifact)
    with pytest.raises(Refusal, match="thing rests on"):
        remove_artifact(actor=opened.owner, artifact=artifact)
    assert place_of(artifact) is not None


def test_a_launch_cannot_name_what_is_deleted(opened: Laboratory) -> None:
    artifact = make(opened)
    delete_artifact(actor=opened.owner, artifact=artifact, reason="No use.")
    with pytest.raises(Refusal, match="restore it first"):
        launch(opened, artifacts=(artifact.public_id,))


def test_who_may(opened: Laboratory) -> None:
    artifact = make(opened)
    with pytest.raises(Denied):
        delete_artifact(actor=make_member(opened.workspace, "viewer"), artifact=artifact, reason="x")
    with pytest.raises(Refusal, match="Say why"):
        delete_artifact(actor=opened.owner, artifact=artifact, reason=" ")
    with pytest.raises(Denied):
        set_artifact_days(actor=make_member(opened.workspace, "researcher"), days={"log": 1}, reason="x")


# --- By itself ----------------------------------------------------------------------------------------------------------------------------


def pass_days(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    later = timezone.now() + timedelta(days=days)
    monkeypatch.setattr("django.utils.timezone.now", lambda: later)


def test_its_day_comes_then_the_grace_then_it_is_removed(opened: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact, other = make(opened), make(opened, b"other")
    set_keep_until(actor=opened.owner, artifact=artifact, until=timezone.now() + timedelta(days=2))
    with pytest.raises(Refusal, match="still to come"):
        set_keep_until(actor=opened.owner, artifact=artifact, until=timezone.now())
    tidy_artifacts(SYSTEM)
    assert fresh(artifact).deleted_at is None
    pass_days(monkeypatch, 3)
    tidy_artifacts(SYSTEM)
    assert (fresh(artifact).deleted_at is None, fresh(artifact).removed_at) == (False, None)
    pass_days(monkeypatch, GRACE.days + 1)
    tidy_artifacts(SYSTEM)
    assert (fresh(artifact).removed_at is None, place_of(artifact)) == (False, None)
    assert (fresh(other).deleted_at, place_of(other) is None) == (None, False)


def test_a_kind_has_days_and_what_is_rested_on_outlives_them(opened: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, scored = make(opened, b"plain", kind="checkpoint"), make(opened, b"scored", kind="checkpoint")
    own = make(opened, b"own", kind="checkpoint")
    set_keep_until(actor=opened.owner, artifact=own, until=timezone.now() + timedelta(days=1000))
    (judge,) = copy_runs(actor=opened.owner, pattern=scored.run, count=1, kind="evaluate")
    score_runs(actor=opened.owner, scores={judge: (0.5, None)}, subject_artifact=scored)
    set_artifact_days(actor=opened.owner, days={"checkpoint": 30}, reason="Room.")
    pass_days(monkeypatch, 31)
    tidy_artifacts(SYSTEM)
    pass_days(monkeypatch, 31 + GRACE.days)
    tidy_artifacts(SYSTEM)
    assert [fresh(one).removed_at is not None for one in (plain, scored, own)] == [True, False, False]


def test_what_is_restored_is_not_deleted_again_at_once(opened: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = make(opened, kind="checkpoint")
    set_artifact_days(actor=opened.owner, days={"checkpoint": 30}, reason="Room.")
    pass_days(monkeypatch, 31)
    tidy_artifacts(SYSTEM)
    restore_artifact(actor=opened.owner, artifact=artifact)
    tidy_artifacts(SYSTEM)
    assert fresh(artifact).deleted_at is None


# --- Files and rows -----------------------------------------------------------------------------------------------------------------------


def test_strays_are_found_both_ways(opened: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = make(opened)
    place = place_of(artifact)
    assert place
    assert (reconcile_files(SYSTEM).missing, AuditEvent.objects.latest("sequence").verb) == ([], "artifact.stored")
    stray, _ = store.put_stream("local", scope.current_id(), [b"nobody names me"])
    place.rename(place.with_name("aside"))
    assert [blob.pk for blob in reconcile_files(SYSTEM).missing] == [artifact.blob_id]
    assert fresh(artifact).blob.missing_at is not None
    assert not reconcile_files(SYSTEM).missing, "it is said once"
    place.with_name("aside").rename(place)
    assert [blob.pk for blob in reconcile_files(SYSTEM).found] == [artifact.blob_id]
    monkeypatch.setattr("workspaces.commands.blob.ORPHANS_STAY_SECONDS", -1.0)
    tidy_store()
    assert (store.exists("local", scope.current_id(), stray), place.exists()) == (False, True)


def test_a_promotion_whose_file_is_missing_is_suspended_until_it_is_found(opened: Laboratory) -> None:
    approver = make_member(opened.workspace, "approver")
    artifact = make_candidate(opened)
    promotion, approval = propose(opened.owner, artifact)
    decide_approval(actor=approver, approval=approval, approves=True, seen_hash=approval.content_hash)
    promotion.refresh_from_db()
    place = place_of(artifact)
    assert place
    place.rename(place.with_name("aside"))
    reconcile_files(SYSTEM)
    (one,) = told([promotion])
    assert (one.state, one.may_be_rested_on) == ("suspended", False)
    page = client_of(opened.owner).get(f"{W}/promotions/{promotion.public_id}/").content.decode()
    assert "is suspended" in page
    place.with_name("aside").rename(place)
    reconcile_files(SYSTEM)
    assert told([promotion])[0].may_be_rested_on


def test_a_file_left_by_a_process_that_died_before_it_was_dropped_goes_with_the_next_tidying(
    opened: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = make(opened)
    monkeypatch.setattr(commands, "drop_file", lambda blob, *, released_after: False)
    remove(opened, artifact)
    assert place_of(artifact) is not None
    monkeypatch.setattr("workspaces.commands.blob.ORPHANS_STAY_SECONDS", -1.0)
    tidy_store()
    assert place_of(artifact) is None


@pytest.mark.django_db(transaction=True)
def test_content_that_comes_again_while_it_is_removed_is_there_afterwards() -> None:
    """Twenty times at once: whoever wins, each artifact that stands has its file, and rows say what the store holds."""
    laboratory = make_laboratory()
    with laboratory.opened():
        first = make(laboratory)
        pattern = first.run
    for number in range(20):
        with laboratory.opened():
            old = first if number == 0 else Artifact.objects.filter(deleted_at=None).latest("created_at")
            (run,) = copy_runs(actor=laboratory.owner, pattern=pattern, count=1)
            delete_artifact(actor=laboratory.owner, artifact=old, reason="No use.")

        def again(run: Run = run) -> None:
            with laboratory.opened():
                add_artifact(actor=laboratory.owner, run=run, path="again.bin", content=b"x" * 5000)
            connection.close()

        sender = threading.Thread(target=again)
        sender.start()
        with laboratory.opened():
            remove_artifact(actor=laboratory.owner, artifact=old)
            sender.join(30)
            blob = Blob.objects.get(pk=old.blob_id)
            assert Artifact.objects.filter(blob=blob, removed_at=None).count() == 1
            assert blob.removed_at is None
            assert store.exists("local", scope.current_id(), blob.sha256)


# --- Pages and API ------------------------------------------------------------------------------------------------------------------------


def test_by_page(laboratory: Laboratory) -> None:
    with laboratory.opened():
        artifact = make(laboratory)
    client, page = client_of(laboratory.owner), f"{W}/artifacts/{artifact.public_id}/"
    assert client.get(f"{page}delete/").status_code == 200
    assert client.post(f"{page}delete/", {"reason": "No use."}).status_code == 303
    assert client.get(f"{W}/artifacts/").content.decode().count(artifact.public_id) == 0
    for shown in (client.get(page).content.decode(), client.get(f"{W}/artifacts/?part=deleted").content.decode()):
        assert re.search(r"to be(?: removed|,)\s+<time", shown, re.IGNORECASE), "its bytes count: nobody reads that it is deleted"
        assert ("Deleted" in shown, artifact.public_id in shown) == (False, True)
    assert "can be restored, and its 5.0 kB count" in client.get(page).content.decode()
    assert client.post(f"{page}restore/").status_code == 303
    assert artifact.public_id in client.get(f"{W}/artifacts/").content.decode()
    client.post(f"{page}delete/", {"reason": "No use."})
    assert client.post(f"{page}remove/").status_code == 303
    assert "are free" in client.get(page).content.decode()
    assert "to be, <time" not in client.get(f"{W}/artifacts/?part=deleted").content.decode()
    assert client.get(f"{page}file/").status_code == 404


def test_days_and_until_by_page(laboratory: Laboratory) -> None:
    with laboratory.opened():
        artifact = make(laboratory, kind="checkpoint")
    client = client_of(laboratory.owner)
    assert client.post(f"{W}/artifacts/keeping/", {"days": "checkpoint: many", "reason": "Room."}).status_code == 422
    assert client.post(f"{W}/artifacts/keeping/", {"days": "checkpoint: 30\nlog: 90", "reason": "Room."}).status_code == 303
    assert "checkpoint: 30" in client.get(f"{W}/artifacts/keeping/").content.decode()
    page = f"{W}/artifacts/{artifact.public_id}/"
    assert "30 days after it was made" in client.get(page).content.decode()
    assert client.post(f"{page}keep/", {"until": "2099-01-31"}).status_code == 303
    with laboratory.opened():
        kept = fresh(artifact).keep_until
    assert kept is not None
    assert kept.isoformat() == "2099-01-31T23:00:00+00:00", "the midnight in Berlin that ends the day"


def test_by_token(laboratory: Laboratory) -> None:
    with laboratory.opened():
        artifact = make(laboratory)
    _, secret = make_token(laboratory.workspace, laboratory.owner, "artifact:write")
    client, api = bearer(secret), f"/api/v1{W}/artifacts"
    post = {"content_type": "application/json"}
    told = client.post(f"{api}/{artifact.public_id}/delete", {"reason": "No use."}, **post).json()  # type: ignore[arg-type]
    assert (told["status"], datetime.fromisoformat(told["goes_at"]) > timezone.now() + GRACE / 2) == ("deleted", True)
    assert [one["id"] for one in client.get(f"{api}?deleted=true").json()["items"]] == [artifact.public_id]
    assert client.post(f"{api}/{artifact.public_id}/restore", **post).json()["status"] == "kept"  # type: ignore[arg-type]  # keywords
    client.post(f"{api}/{artifact.public_id}/delete", {"reason": "No use."}, **post)  # type: ignore[arg-type]  # keywords
    assert client.post(f"{api}/{artifact.public_id}/remove", **post).json()["status"] == "removed"  # type: ignore[arg-type]  # keywords
    assert client.get(f"{api}/{artifact.public_id}").json()["goes_at"] is None
    assert client.get(f"{api}/{artifact.public_id}/content").status_code == 404


def test_the_page_names_what_rests_on_it(laboratory: Laboratory) -> None:
    with laboratory.opened():
        artifact = make(laboratory)
        run = launch(laboratory, artifacts=(artifact.public_id,))
    client, page = client_of(laboratory.owner), f"{W}/artifacts/{artifact.public_id}/delete/"
    shown = client.get(page).content.decode()
    assert "1 thing rests on it" in shown
    assert f"{W}/runs/{run.public_id}/" in shown
    assert client.post(page, {"reason": "No use."}).status_code == 409


def test_from_the_command_line(laboratory: Laboratory) -> None:
    with laboratory.opened():
        artifact = make(laboratory)
        place = place_of(artifact)
        assert place
    out = io.StringIO()
    call_command("reconcile", stdout=out)
    assert "every file is there" in out.getvalue()
    place.unlink()
    with pytest.raises(SystemExit):
        call_command("reconcile", "--workspace", "lab", "--json", stdout=(out := io.StringIO()))
    assert json.loads(out.getvalue())["stores"][0]["missing"] == [artifact.blob.sha256]
