"""A live dataset grows by what runs make; each record stands in one window, and what arrives while a window is cut waits for the next."""

import threading
import uuid

import pytest
from django.db import connection
from django.test import Client

from tests.factories import make_member, make_workspace
from tests.factories_registry import stored
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.commands import live_dataset
from workspaces.commands.blob import keep_blobs
from workspaces.commands.dataset import create_dataset
from workspaces.commands.live_dataset import Piece, cut_window, grow, make_live
from workspaces.models import AuditEvent, Dataset, DatasetPiece, DatasetVersion, EventPayload, IdempotencyKey, User, Workspace
from workspaces.verbs import Verb

pytestmark = pytest.mark.django_db(transaction=True)

Lab = tuple[Workspace, Actor, Dataset]


@command(Verb.RUN_ENDED, needs=None, by_system=True)
def end_run(event: Draft, *, actor: Actor, dataset: Dataset, by: User, files: dict[str, tuple[bytes, int]], run_id: uuid.UUID) -> int:
    """What the end of a run does with the pieces that it made."""
    received = {path: stored(path, content) for path, (content, _) in files.items()}
    pieces = [Piece(path, keep_blobs(event, [received[path]])[received[path].sha256], records) for path, (_, records) in files.items()]
    return len(grow(event, dataset=dataset, pieces=pieces, run_id=run_id, by=by))


def add(lab: Lab, *records: int, run_id: uuid.UUID | None = None) -> int:
    _, owner, dataset = lab
    assert owner.user
    run_id = run_id or uuid.uuid4()
    files = {f"games-{place}.sgf": (f"{run_id} {place}".encode(), count) for place, count in enumerate(records)}
    return end_run(actor=Actor.system(job_id="test"), dataset=dataset, by=owner.user, files=files, run_id=run_id)


@pytest.fixture
def lab() -> Lab:
    workspace, owner = make_workspace("lab", region="local")
    with scope.open_workspace(workspace.pk):
        dataset = create_dataset(actor=owner, slug="self-play", name="Self-play", origin=Dataset.Origin.SELF_PLAY)
        return workspace, owner, make_live(actor=owner, dataset=dataset)


def test_a_window_takes_what_waits_and_is_frozen(lab: Lab) -> None:
    workspace, owner, dataset = lab
    with scope.open_workspace(workspace.pk):
        add(lab, 10, 20)
        add(lab, 5)
        window = cut_window(actor=owner, dataset=dataset, reason="before the sweep")
        version = DatasetVersion.objects.get(dataset=window)
        assert (window.slug, window.origin, version.number, version.records) == ("self-play-window-1", "self_play", 1, 35)
        assert [file.path for file in version.files.order_by("path")] == ["000001-games-0.sgf", "000002-games-1.sgf", "000003-games-0.sgf"]
        event = AuditEvent.objects.latest("sequence")
        assert (event.verb, event.subject_label) == ("dataset.window_cut", "Self-play, window 1")
        with pytest.raises(Refusal, match="Nothing has been added to Self-play since its last window"):
            cut_window(actor=owner, dataset=dataset)
        add(lab, 7)
        assert cut_window(actor=owner, dataset=dataset).slug == "self-play-window-2"
        assert Dataset.objects.find("ds_self_play_window_2").window_number == 2


def test_a_window_of_so_many_records_takes_the_oldest(lab: Lab) -> None:
    workspace, owner, dataset = lab
    with scope.open_workspace(workspace.pk):
        add(lab, 10, 10, 10)
        with pytest.raises(Refusal, match="40 records is asked for; 30 records wait"):
            cut_window(actor=owner, dataset=dataset, records=40)
        assert DatasetVersion.objects.get(dataset=cut_window(actor=owner, dataset=dataset, records=15)).records == 20
        assert [piece.number for piece in DatasetPiece.objects.filter(window=None)] == [3]


def test_windows_cut_themselves_once_enough_waits(lab: Lab) -> None:
    workspace, owner, dataset = lab
    with scope.open_workspace(workspace.pk):
        make_live(actor=owner, dataset=dataset, window_records=25)
        add(lab, 10, 10)
        assert not dataset.windows.exists()
        add(lab, 10, 50)
        assert [DatasetVersion.objects.get(dataset=window).records for window in dataset.windows.order_by("window_number")] == [30, 50]
        event = AuditEvent.objects.latest("sequence")
        assert event.verb == "run.ended"
        assert [entry["window"] for entry in EventPayload.objects.get(event=event).body["details"]["windows"]] == [
            "self-play-window-1",
            "self-play-window-2",
        ]


def test_a_run_that_ends_twice_adds_once(lab: Lab) -> None:
    workspace, _, _ = lab
    run_id = uuid.uuid4()
    with scope.open_workspace(workspace.pk):
        assert add(lab, 10, run_id=run_id) == 1
        assert add(lab, 10, run_id=run_id) == 0
        assert DatasetPiece.objects.count() == 1


def test_every_record_stands_in_one_window_while_games_arrive(lab: Lab) -> None:
    workspace, owner, dataset = lab
    faults: list[BaseException] = []

    def arrive() -> None:
        try:
            with scope.open_workspace(workspace.pk):
                for _ in range(10):
                    add(lab, 1, 1)
        except BaseException as fault:
            faults.append(fault)
        finally:
            connection.close()

    threads = [threading.Thread(target=arrive) for _ in range(2)]
    for thread in threads:
        thread.start()
    with scope.open_workspace(workspace.pk):
        while any(thread.is_alive() for thread in threads):
            try:
                cut_window(actor=owner, dataset=dataset)
            except Refusal:
                continue
        for thread in threads:
            thread.join()
        if DatasetPiece.objects.filter(window=None).exists():
            cut_window(actor=owner, dataset=dataset)
        assert not faults
        windows = DatasetVersion.objects.filter(dataset__window_of=dataset)
        assert sum(version.records or 0 for version in windows) == 40
        assert [piece.number for piece in DatasetPiece.objects.order_by("number")] == [*range(1, 41)]
        order = list(DatasetPiece.objects.order_by("number").values_list("window__window_number", flat=True))
        assert order == sorted(order, key=lambda number: number or 0)


def test_only_a_live_dataset_grows_and_only_who_may_cuts(lab: Lab) -> None:
    workspace, owner, dataset = lab
    viewer = make_member(workspace, "viewer", "vera")
    with scope.open_workspace(workspace.pk):
        add(lab, 1)
        with pytest.raises(Denied):
            cut_window(actor=viewer, dataset=dataset)
        window = cut_window(actor=owner, dataset=dataset)
        with pytest.raises(Refusal, match="does not grow by runs"):
            cut_window(actor=owner, dataset=window)
        with pytest.raises(Refusal, match="is a window"):
            make_live(actor=owner, dataset=window)
        with pytest.raises(Refusal, match="between 1 and"):
            make_live(actor=owner, dataset=dataset, window_records=0)


def test_a_key_cuts_one_window_although_its_answer_was_lost(lab: Lab) -> None:
    workspace, owner, dataset = lab
    assert owner.user
    client = Client()
    client.force_login(owner.user)
    url, key = f"/api/v1/workspaces/lab/datasets/{dataset.slug}/windows", {"Idempotency-Key": "k"}
    with scope.open_workspace(workspace.pk):
        add(lab, 10, 20)
    first = client.post(url, {"records": 5}, "application/json", headers=key)
    assert first.status_code == 201, first.content
    with scope.open_workspace(workspace.pk):
        IdempotencyKey.objects.all().delete()
    again = client.post(url, {"records": 5}, "application/json", headers=key)
    assert (again.status_code, again.json()) == (201, first.json())
    with scope.open_workspace(workspace.pk):
        assert [piece.number for piece in DatasetPiece.objects.filter(window=None)] == [2]


def test_a_window_that_would_need_too_many_pieces_is_cut_short(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, owner, dataset = lab
    monkeypatch.setattr(live_dataset, "MAX_FILES", 3)
    with scope.open_workspace(workspace.pk):
        make_live(actor=owner, dataset=dataset, window_records=8)
        for _ in range(4):
            add(lab, 1, 1)  # the fourth run would be kept from ending if the window were refused
        assert [version.records for version in DatasetVersion.objects.filter(dataset__window_of=dataset)] == [3]
        assert DatasetPiece.objects.filter(window=None).count() == 5


def test_a_name_that_is_taken_is_passed_over(lab: Lab) -> None:
    workspace, owner, dataset = lab
    with scope.open_workspace(workspace.pk):
        create_dataset(actor=owner, slug="self_play-window-1")
        make_live(actor=owner, dataset=dataset, window_records=1)
        add(lab, 1)
        assert [window.slug for window in dataset.windows.all()] == ["self-play-window-2"]


def test_a_name_that_its_number_makes_too_long_keeps_its_end(lab: Lab) -> None:
    workspace, owner, dataset = lab
    assert owner.user
    files = {f"games/{'ä' * 125}.sgf": (b"a game", 1)}
    with scope.open_workspace(workspace.pk):
        end_run(actor=Actor.system(job_id="test"), dataset=dataset, by=owner.user, files=files, run_id=uuid.uuid4())
        [file] = cut_window(actor=owner, dataset=dataset).versions.get().files.all()
    assert file.path.startswith("000001-") and file.path.endswith("ä.sgf") and len(file.path.encode()) <= 255
