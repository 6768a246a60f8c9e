"""Many files at once cost few statements; a storage limit does what its mode says; what is named while the store is tidied stays."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import make_workspace, scope
from tests.factories_pages import client_of
from tests.factories_registry import make_dataset_version, stored
from workspaces import store
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.agent import create_agent, publish_agent_version
from workspaces.commands.blob import receive_file, stored_bytes, tidy_store
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.commands.limit import set_limit
from workspaces.models import AuditEvent, Blob, Dataset, EventPayload, Limit, Unit, Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def lab(db: None, settings: Any, tmp_path: Path) -> Iterator[tuple[Workspace, Actor]]:
    settings.LABSITE_REGIONS = {"local": tmp_path / "store"}
    workspace, actor = make_workspace("lab", region="local")
    with scope.open_workspace(workspace.pk):
        yield workspace, actor


def limit_storage(actor: Actor, amount: int, mode: str) -> None:
    set_limit(actor=actor, unit=Unit.STORAGE_BYTES, window=Limit.Window.NOW, amount=amount, mode=mode, reason="small")


def statements(act: Callable[[], object]) -> list[str]:
    with CaptureQueriesContext(connection) as asked:
        act()
    return [query["sql"] for query in asked]


def imported(actor: Actor, slug: str, count: int) -> Callable[[], object]:
    dataset = create_dataset(actor=actor, slug=slug)
    files = [stored(f"{number}.txt", f"{slug} {number}".encode()) for number in range(count)]
    return lambda: import_dataset_version(actor=actor, dataset=dataset, role="train", files=files)


def published(actor: Actor, slug: str, count: int) -> Callable[[], object]:
    agent = create_agent(actor=actor, slug=slug)
    files = [stored(f"{number}.py", f"# {slug} {number}".encode()) for number in range(count)]
    return lambda: publish_agent_version(actor=actor, agent=agent, argv=["python", "0.py"], files=files)


@pytest.mark.parametrize("make", [imported, published])
def test_many_files_cost_as_many_statements_as_few_and_one_sum(lab: tuple[Workspace, Actor], make: Any) -> None:
    limit_storage(lab[1], 10**9, Limit.Mode.STOP)
    few, many = statements(make(lab[1], "few", 20)), statements(make(lab[1], "many", 60))  # of a handful more go together
    assert len(many) == len(few) < 40
    assert sum("SUM(" in sql for sql in many) == 1
    assert Blob.objects.count() == 80


def test_what_an_import_makes_stands_in_its_event(lab: tuple[Workspace, Actor]) -> None:
    make_dataset_version(lab[1], "first", content=b"a,b\n1,2\n")
    before = set(Blob.objects.values_list("pk", flat=True))
    dataset = create_dataset(actor=lab[1], slug="second")
    files = [stored("same.csv", b"a,b\n1,2\n"), stored("x.txt", b"x"), stored("y.txt", b"x")]
    version = import_dataset_version(actor=lab[1], dataset=dataset, role="train", files=files)
    event = AuditEvent.objects.latest("sequence")
    (fresh,) = set(Blob.objects.values_list("pk", flat=True)) - before  # the same content twice is one row
    subjects = set(event.subjects.values_list("object_id", flat=True))
    assert subjects == {version.pk, fresh, *version.files.values_list("pk", flat=True)}
    assert sorted(version.files.values_list("path", "blob__sha256")) == sorted((file.path, file.sha256) for file in files)


def test_a_form_of_many_files_asks_the_limit_once_and_with_all_of_them(lab: tuple[Workspace, Actor]) -> None:
    limit_storage(lab[1], 1_000, Limit.Mode.STOP)
    Dataset.objects.get(pk=create_dataset(actor=lab[1], slug="wide").pk)
    client = client_of(lab[1])

    def send(count: int, each: int) -> tuple[int, list[str], str]:
        files = [SimpleUploadedFile(f"{number}.txt", f"{number:04}".encode() * (each // 4)) for number in range(count)]
        with CaptureQueriesContext(connection) as asked:
            answer = client.post("/workspaces/lab/datasets/wide/upload/", {"role": "train", "file": files, "complete": "1"})
        return answer.status_code, [query["sql"] for query in asked], answer.content.decode()

    status, asked, _ = send(20, 4)
    assert status == 303
    assert sum("SUM(" in sql for sql in asked) <= 2  # before the bytes, and under the lock
    status, _, body = send(20, 80)
    assert (status, "1.6 kB more would make" in body) == (409, True)
    assert stored_bytes() == 80


def test_a_storage_limit_that_asks_for_approval_says_that_an_upload_cannot_wait(lab: tuple[Workspace, Actor]) -> None:
    limit_storage(lab[1], 20, Limit.Mode.APPROVAL)
    with pytest.raises(Refusal, match="asks for approval, and bytes that arrive cannot wait for one"):
        make_dataset_version(lab[1], content=b"a\n" * 20)
    with pytest.raises(Refusal, match="asks for approval"):
        receive_file("x", [b"c" * 30], expected_bytes=30)
    assert stored_bytes() == 0


def test_a_storage_limit_that_warns_lets_in_and_says_so_in_the_record(lab: tuple[Workspace, Actor]) -> None:
    limit_storage(lab[1], 20, Limit.Mode.WARN)
    make_dataset_version(lab[1], content=b"a\n" * 20)
    body = EventPayload.objects.get(event=AuditEvent.objects.latest("sequence")).body
    assert body["details"]["warning"] == "40 bytes more would make 40 bytes of 20 bytes of storage."


def test_a_file_that_is_gone_is_refused_by_name_and_nothing_is_kept(lab: tuple[Workspace, Actor]) -> None:
    dataset = create_dataset(actor=lab[1], slug="d")
    files = [stored("here.txt", b"1"), stored("gone.txt", b"2")]
    path = store.local_path("local", lab[0].pk, files[1].sha256)
    assert path is not None
    path.unlink()
    with pytest.raises(Refusal, match=r"gone\.txt is no longer in the store"):
        import_dataset_version(actor=lab[1], dataset=dataset, role="train", files=files)
    assert not Blob.objects.exists()


def test_a_file_named_between_the_look_and_the_removal_stays(lab: tuple[Workspace, Actor]) -> None:
    """The same content comes again, and its command commits, right after the question which of the old files have a row."""
    orphan = stored("table.csv", b"a,b\n1,2\n")
    path = store.local_path("local", lab[0].pk, orphan.sha256)
    assert path is not None
    os.utime(path, (0, 0))
    named: list[object] = []

    def name_it_then(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        found = execute(sql, params, many, context)
        if not named and sql.startswith("SELECT") and "workspaces_blob" in sql:
            named.append(None)
            named.append(make_dataset_version(lab[1], content=b"a,b\n1,2\n"))
        return found

    with connection.execute_wrapper(name_it_then):
        assert tidy_store() == 0
    assert len(named) == 2
    assert store.exists("local", lab[0].pk, orphan.sha256)


def test_a_command_that_names_an_old_file_makes_it_young_before_its_row(lab: tuple[Workspace, Actor]) -> None:
    """Received long ago, named only now: what runs between its row and its commit must not remove it."""
    dataset = create_dataset(actor=lab[1], slug="d")
    file = stored("x.txt", b"slow")
    path = store.local_path("local", lab[0].pk, file.sha256)
    assert path is not None
    os.utime(path, (0, 0))
    import_dataset_version(actor=lab[1], dataset=dataset, role="train", files=[file])
    assert path.stat().st_mtime > time.time() - 60


def test_putting_and_removing_the_same_content_at_once_never_loses_it(settings: Any, tmp_path: Path) -> None:
    settings.LABSITE_REGIONS = {"local": tmp_path}
    place, workspace = store.store_of("local"), Workspace(slug="x").pk
    sha256, _ = place.put_stream(workspace, [b"content"])
    path = place.local_path(workspace, sha256)
    assert path is not None
    faults: list[BaseException] = []

    def put(gate: threading.Barrier) -> None:
        gate.wait(10)
        try:
            place.put_stream(workspace, [b"content"])
        except BaseException as fault:  # shown below
            faults.append(fault)

    for turn in range(200):
        os.utime(path, (0, 0))
        gate = threading.Barrier(2)
        other = threading.Thread(target=put, args=[gate])
        other.start()
        gate.wait(10)
        place.remove_old(workspace, sha256, older_than_seconds=60)
        other.join(10)
        assert (turn, path.exists(), faults) == (turn, True, [])
