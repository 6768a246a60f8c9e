"""A withdrawal names the memory that rests on it, before and after, to whom may read memory; undone it names none."""

import pytest
from django.test import Client

from runs.commands.memory import Said, write_memory
from runs.commands.withdrawal import undo_withdrawal, withdraw
from runs.models import MemoryEntry, Run
from runs.queries import withdrawn_memory
from runs.queries.memory_stale import staleness_of
from runs.queries.withdrawal import find_subject, radius
from tests.factories import make_user
from tests.factories_pages import client_of
from tests.factories_registry import make_dataset_version
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from workspaces.access import Actor, Kind
from workspaces.commands.member import add_member
from workspaces.models import DatasetVersion

pytestmark = pytest.mark.django_db(transaction=True)
API = "/api/v1/workspaces/lab/withdrawals"


def remember(laboratory: Laboratory, title: str, *evidence: tuple[str, str]) -> MemoryEntry:
    said = Said(kind="finding", collection="openings", title=title, evidence=evidence)
    return write_memory(actor=laboratory.owner, said=said)


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    """Entries on the table, on a run that read it, and on something else."""
    made = make_laboratory()
    with made.opened():
        run = launch(made)
    drive(made, run)
    with made.opened():
        remember(made, "Of the <b>table</b>", ("dataset_version", table().public_id))
        remember(made, "Of the run", ("run", Run.objects.get().public_id))
        remember(made, "Of something else", ("dataset_version", make_dataset_version(made.owner, "other").public_id))
    return made


def table() -> DatasetVersion:
    return DatasetVersion.objects.get(dataset__slug="table")


def test_what_is_named_is_what_is_stale_then(laboratory: Laboratory) -> None:
    with laboratory.opened():
        node, label = find_subject("dataset_version", table().public_id)
        before = radius(node, label).memory
        assert [entry.title for entry in before.named] == ["Of the run", "Of the <b>table</b>"]
        withdrawal = withdraw(actor=laboratory.owner, subject=node, label=label, reason="Bad.")
        assert {entry.pk for entry in before.named} == set(staleness_of(list(MemoryEntry.objects.all())))
    client, page = client_of(laboratory.owner), f"/workspaces/lab/withdrawals/{withdrawal.public_id}/"
    shown = client.get(page).content.decode()
    assert "Of the &lt;b&gt;table&lt;/b&gt;" in shown and "Of the run" in shown and "Of something else" not in shown
    told = client.get(f"{API}/{withdrawal.public_id}").json()
    assert (told["memory"], told["memory_count"]) == ([entry.public_id for entry in before.named], 2)
    with laboratory.opened():
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="Good.")
    assert client.get(f"{API}/{withdrawal.public_id}").json()["memory_count"] == 0
    assert "Of the run" not in client.get(page).content.decode()


def test_the_preview_names_the_newest_and_counts_all(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(withdrawn_memory, "MOST_NAMED", 1)
    with laboratory.opened():
        user = make_user("narrowed")
        add_member(actor=laboratory.owner, user=user, role="researcher", kinds=[Kind.DATASET])
        asked = {"kind": "dataset_version", "id": table().public_id}

    def shown(client: Client) -> str:
        return client.get("/workspaces/lab/withdrawals/new/", asked).content.decode()

    owner, reader = client_of(laboratory.owner), client_of(Actor.of(user))
    assert "Memory that would be stale" in shown(owner) and "newest 1 of 2" in shown(owner) and "Of the run" in shown(owner)
    assert "Memory that would be stale" not in shown(reader)
    told = reader.get(f"{API}/preview", asked).json()
    assert (told["memory"], told["memory_count"]) == ([], None), "as the page, which says nothing of memory then"
