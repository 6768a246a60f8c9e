"""A stored file counts as long as something names it, whatever that is, and no longer: what takes the place of another lets go of it."""

import io
import json

import pytest
from django.core.management import call_command

from runs.commands.archive import archive_workspace
from runs.commands.artifact import delete_artifact, remove_artifact
from runs.commands.overlap import record_index
from runs.jobs.tidy import tidy_files
from runs.models import RecordIndex, Run
from tests.factories_pages import add_artifact
from tests.factories_registry import make_agent_version, make_dataset_version
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces import scope, store
from workspaces.access import Actor
from workspaces.commands.blob import receive_file, stored_bytes
from workspaces.commands.reconcile import free_unnamed
from workspaces.models import AuditEvent, Blob, DatasetVersion, EventPayload
from workspaces.queries.blob_use import unnamed

pytestmark = pytest.mark.django_db(transaction=True)
SYSTEM = Actor.system(job_id="test")


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory()


def index(version: DatasetVersion, content: bytes) -> Blob:
    found = record_index(actor=SYSTEM, version=version, file=receive_file("records", [content]), records=1)
    assert isinstance(found.blob, Blob)
    return found.blob


def leak(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> Blob:
    """Hashes of records as they were forgotten before: others took their place, and their row stayed."""
    version = make_dataset_version(laboratory.owner, "leaky", content=b"x\n1\n")
    old = index(version, b"old" * 100)
    with monkeypatch.context() as patch:
        patch.setattr("runs.commands.overlap.release_blob", lambda event, blob: False)
        index(version, b"new" * 100)
    return old


def test_hashes_that_are_made_anew_take_the_place_of_the_old_ones(laboratory: Laboratory) -> None:
    with laboratory.opened():
        version = make_dataset_version(laboratory.owner, "trained", content=b"x\n1\n")
        used = stored_bytes()
        index(version, b"first method" * 10)
        assert stored_bytes() == used + 120
        index(version, b"another method" * 10)
        assert stored_bytes() == used + 140, "the old ones count no more"
        index(version, b"another method" * 10)
        assert stored_bytes() == used + 140, "the same hashes are the same file"
        record_index(actor=SYSTEM, version=version, file=None, fault="A file of it is no longer in the store.")
        assert stored_bytes() == used


def test_hashes_that_two_versions_have_stay_with_the_other(laboratory: Laboratory) -> None:
    with laboratory.opened():
        one, other = (make_dataset_version(laboratory.owner, slug, content=b"x\n1\n") for slug in ("one", "other"))
        index(one, b"same" * 10)
        kept = index(other, b"same" * 10)
        index(one, b"different" * 10)
        kept.refresh_from_db()
        assert kept.removed_at is None


def test_an_artifact_with_the_content_of_hashes_takes_nothing_along(laboratory: Laboratory) -> None:
    with laboratory.opened():
        kept = index(make_dataset_version(laboratory.owner, "trained", content=b"x\n1\n"), b"hashes" * 10)
        artifact = add_artifact(actor=laboratory.owner, run=launch(laboratory), path="copy.bin", content=b"hashes" * 10)
        assert artifact.blob_id == kept.pk
        delete_artifact(actor=laboratory.owner, artifact=artifact, reason="No use.")
        remove_artifact(actor=laboratory.owner, artifact=artifact)
        kept.refresh_from_db()
        assert kept.removed_at is None
        assert store.exists("local", scope.current_id(), kept.sha256)


def test_what_was_forgotten_is_let_go_of_and_nothing_else_is(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    with laboratory.opened():
        old = leak(laboratory, monkeypatch)
        make_agent_version(laboratory.owner, "reader", code=b"print('named by an agent')\n")
        add_artifact(actor=laboratory.owner, run=launch(laboratory), path="kept.bin", content=b"named by a run")
        removed = add_artifact(actor=laboratory.owner, run=Run.objects.get(), path="gone.bin", content=b"named by what is gone")
        delete_artifact(actor=laboratory.owner, artifact=removed, reason="No use.")
        remove_artifact(actor=laboratory.owner, artifact=removed)
        counted = set(Blob.objects.filter(removed_at=None).values_list("pk", flat=True))
        call_command("reconcile", "--json", stdout=(out := io.StringIO()))
        assert json.loads(out.getvalue())["stores"][0]["unnamed"] == [old.sha256]
        monkeypatch.setattr("workspaces.commands.blob.ORPHANS_STAY_SECONDS", -1.0)
        tidy_files(SYSTEM, scope.current_id())
        assert set(Blob.objects.filter(removed_at=None).values_list("pk", flat=True)) == counted - {old.pk}
        event = AuditEvent.objects.filter(verb="workspace.files_reconciled").latest("sequence")
        assert EventPayload.objects.get(event=event).body["details"]["released"] == [old.sha256]
        assert free_unnamed(SYSTEM) == 0
        tidy_files(SYSTEM, scope.current_id())
        assert not store.exists("local", scope.current_id(), old.sha256)
        assert store.exists("local", scope.current_id(), RecordIndex.objects.get().blob.sha256)


def test_what_is_named_by_now_stays(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between looking and locking, the same content may come again."""
    with laboratory.opened():
        old = leak(laboratory, monkeypatch)
        run = launch(laboratory)
        looked = unnamed().values_list("pk", flat=True)
        assert list(looked) == [old.pk]
        add_artifact(actor=laboratory.owner, run=run, path="again.bin", content=b"old" * 100)
        monkeypatch.setattr("workspaces.commands.reconcile.unnamed", lambda: _Stale([old.pk], monkeypatch))
        tidy_files(SYSTEM, scope.current_id())
        old.refresh_from_db()
        assert old.removed_at is None


class _Stale:
    """What was found a moment ago; asked once more, it is asked of the database."""

    def __init__(self, keys: list[object], patch: pytest.MonkeyPatch) -> None:
        self.keys, self.patch = keys, patch

    def values_list(self, *names: str, flat: bool) -> list[object]:
        self.patch.setattr("workspaces.commands.reconcile.unnamed", unnamed)
        return self.keys


def test_an_archive_keeps_all(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    with laboratory.opened():
        old = leak(laboratory, monkeypatch)
        archive_workspace(actor=laboratory.owner, reason="Done.", cancels_running=True)
        tidy_files(SYSTEM, scope.current_id())
        old.refresh_from_db()
        assert old.removed_at is None
