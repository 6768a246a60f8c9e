"""Two uploads of one dataset at the same moment: numbers follow each other, and one content is frozen once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from tests.factories import make_workspace
from workspaces import scope
from workspaces.audit import Refusal
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.models import Dataset, DatasetFile, DatasetVersion

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = 4


def uploaded_at_once(content: Callable[[int], bytes]) -> list[str]:
    """What each of some uploads is told: the label of its version, or why it is refused. The files have arrived before the first is frozen."""
    workspace, owner = make_workspace("lab", region="local")
    with scope.open_workspace(workspace.pk):
        create_dataset(actor=owner, slug="d")
    ready = Barrier(AT_ONCE, timeout=60)

    def upload(number: int) -> str:
        try:
            with scope.open_workspace(workspace.pk):
                file = receive_file("a.csv", [content(number)])
                dataset = Dataset.objects.get()
                ready.wait()
                return import_dataset_version(actor=owner, dataset=dataset, role="train", files=[file]).label
        except Refusal as refusal:
            return str(refusal)
        finally:
            connection.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        told = sorted(pool.map(upload, range(AT_ONCE)))
    with scope.open_workspace(workspace.pk):
        numbers = list(DatasetVersion.objects.order_by("number").values_list("number", flat=True))
        assert numbers == list(range(1, len(numbers) + 1))
        assert DatasetFile.objects.count() == len(numbers), "each version has its file, and no file is left of one that was refused"
    return told


def test_one_content_at_once_is_one_version_and_one_clear_refusal_for_each_other() -> None:
    made, *refused = sorted(uploaded_at_once(lambda number: b"a\n1\n"), key=lambda told: "holds already" in told)
    assert "holds already" not in made
    assert len(refused) == AT_ONCE - 1
    assert all(told.startswith("This is what version 1 of d holds already, as ") for told in refused), refused


def test_different_contents_at_once_are_as_many_versions() -> None:
    told = uploaded_at_once(lambda number: b"a\n%d\n" % number)
    assert len(set(told)) == AT_ONCE
    assert not any("holds already" in one for one in told)
