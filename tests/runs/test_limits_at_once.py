"""What is asked for at the same moment is counted one after another: no limit is passed by one."""

from collections.abc import Callable
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from django.conf import settings

from runs.commands import dataset_import
from runs.commands.dataset_import import WantedFile, request_import
from runs.models import DatasetImport
from tests.factories import make_workspace
from tests.runs.attempts import in_threads
from workspaces import scope
from workspaces.audit import Refusal
from workspaces.commands import upload
from workspaces.commands.blob import refuse_over_limit
from workspaces.commands.dataset import create_dataset
from workspaces.commands.limit import set_limit
from workspaces.commands.upload import begin_upload
from workspaces.models import Limit, Unit, Upload, Workspace

pytestmark = pytest.mark.django_db(transaction=True)


def meeting(before: Callable[..., Any]) -> Callable[..., Any]:
    """What is called after counting, once another one has counted, too; where that waits for us, it goes on by itself."""
    met = Barrier(2)

    def wait(*given: Any, **named: Any) -> Any:
        with suppress(BrokenBarrierError):
            met.wait(timeout=2)
        return before(*given, **named)

    return wait


def refused_of_two(workspace: Workspace, act: Callable[[], object]) -> str:
    """What the one of two connections is told that is refused; the other is not."""

    def asked() -> None:
        with scope.open_workspace(workspace.pk):
            act()

    [refusal] = in_threads(2, asked)
    assert isinstance(refusal, Refusal)
    return str(refusal)


def test_uploads_that_begin_at_once_pass_no_limit(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "UPLOADS", tmp_path)
    workspace, owner = make_workspace("lab", region="local")
    with scope.open_workspace(workspace.pk):
        set_limit(actor=owner, unit=Unit.STORAGE_BYTES, window=Limit.Window.NOW, amount=1500, mode=Limit.Mode.STOP, reason="small")

    def begin() -> object:
        return begin_upload(actor=owner, path="a.csv", length=1000)

    with monkeypatch.context() as slow:
        slow.setattr(upload, "refuse_over_limit", meeting(refuse_over_limit))
        refused = refused_of_two(workspace, begin)
    assert refused == "2.0 kB more would make 2.0 kB of 1.5 kB of storage. Free 500 bytes, or ask for a larger storage limit."
    with scope.open_workspace(workspace.pk):
        set_limit(actor=owner, unit=Unit.STORAGE_BYTES, window=Limit.Window.NOW, amount=9000, mode=Limit.Mode.STOP, reason="more")
    monkeypatch.setattr(upload, "AT_ONCE", 2)
    monkeypatch.setattr(upload, "refuse_over_limit", meeting(refuse_over_limit))
    assert refused_of_two(workspace, begin).startswith("2 uploads are open ")
    with scope.open_workspace(workspace.pk):
        assert Upload.objects.count() == 2


def test_imports_that_are_asked_for_at_once_pass_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, owner = make_workspace("lab", region="local")
    with scope.open_workspace(workspace.pk):
        dataset = create_dataset(actor=owner, slug="d")
    monkeypatch.setattr(dataset_import, "MAX_OPEN", 1)
    monkeypatch.setattr(dataset_import, "_sources", meeting(dataset_import._sources))
    files = [WantedFile("https://data.example/a.csv")]
    refused = refused_of_two(workspace, lambda: request_import(actor=owner, dataset=dataset, role="train", files=files))
    assert refused == "1 import waits here already; ask again once some of them have ended."
    with scope.open_workspace(workspace.pk):
        assert DatasetImport.objects.count() == 1
