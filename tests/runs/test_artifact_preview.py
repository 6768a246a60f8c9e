"""What an artifact holds is seen on its page, within bounds, by whoever may download it; nothing of it is executed or trusted."""

import pytest

from runs.commands.artifact import delete_artifact, remove_artifact
from runs.commands.withdrawal import withdraw
from runs.models import Artifact
from runs.queries.lineage import Node
from runs.queries.lineage_edges import NodeKind
from tests.factories import make_member, make_user
from tests.factories_pages import add_artifact, client_of
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces import scope, store
from workspaces.access import Actor

HOSTILE = "</pre><script>alert(1)</script>\u202egnp.exe"


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


def made(laboratory: Laboratory, path: str, content: bytes) -> Artifact:
    with laboratory.opened():
        return add_artifact(actor=laboratory.owner, run=launch(laboratory), path=path, content=content)


def page_of(laboratory: Laboratory, artifact: Artifact) -> str:
    answer = client_of(laboratory.owner).get(f"/workspaces/lab/artifacts/{artifact.public_id}/")
    assert answer.status_code == 200
    return answer.content.decode()


def shown(laboratory: Laboratory, path: str, content: bytes) -> str:
    _, _, preview = page_of(laboratory, made(laboratory, path, content)).partition('id="preview"')
    return preview.partition("</section>")[0]


def test_a_table_is_its_first_rows(laboratory: Laboratory) -> None:
    found = shown(laboratory, "out/predictions.csv", b"id,truth\n" + b"".join(b"%d,cat\n" % row for row in range(30)))
    assert '<th scope="col"><bdi>truth</bdi></th>' in found
    assert (found.count(">cat</bdi>"), "The first 20 rows; the file has more." in found) == (20, True)


def test_json_lines_are_a_table_and_text_is_lines(laboratory: Laboratory) -> None:
    assert '<th scope="col"><bdi>loss</bdi></th>' in shown(laboratory, "metrics.jsonl", b'{"loss": 0.5}\n')
    assert "<bdi>epoch 1</bdi>\n<bdi>epoch 2</bdi>" in shown(laboratory, "train.log", b"epoch 1\nepoch 2\n")
    assert "The file is empty." in shown(laboratory, "nothing.txt", b"")


def test_bytes_that_are_no_text_are_only_named(laboratory: Laboratory) -> None:
    assert "Not text, so it is not shown" in shown(laboratory, "model.bin", b"PK\x03\x04\x00\x00")


@pytest.mark.parametrize("path", ["page.html", "page.svg", "page.csv", "page.jsonl"])
def test_hostile_text_is_text_within_bounds_of_its_own(laboratory: Laboratory, path: str) -> None:
    found = shown(laboratory, path, HOSTILE.encode())
    assert ">&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;\u202egnp.exe</bdi>" in found
    assert "<script" not in found


def test_a_lost_file_says_so_and_a_removed_one_has_no_preview(laboratory: Laboratory) -> None:
    lost, removed = made(laboratory, "lost.txt", b"lost"), made(laboratory, "removed.txt", b"to go")
    with laboratory.opened():
        place = store.local_path("local", scope.current_id(), lost.blob.sha256)
        assert place
        place.unlink()
        delete_artifact(actor=laboratory.owner, artifact=removed, reason="No use.")
    assert "Its file was not found whole in the store" in page_of(laboratory, lost)
    assert "<bdi>to go</bdi>" in page_of(laboratory, removed), "it can be restored: this is what would come back"
    with laboratory.opened():
        remove_artifact(actor=laboratory.owner, artifact=removed)
    assert 'id="preview"' not in page_of(laboratory, removed)


def test_a_store_that_does_not_answer_keeps_nobody_from_the_page(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = made(laboratory, "far.txt", b"far away")

    def away(*args: object, **values: object) -> None:
        raise store.StoreAway("no answer")

    monkeypatch.setattr("workspaces.queries.registry.store.open", away)
    assert "The store does not answer at the moment" in page_of(laboratory, artifact)


def test_who_may_not_download_it_reads_no_preview(laboratory: Laboratory) -> None:
    """Samples with the truth of a holdout are artifacts too."""
    artifact = made(laboratory, "samples.jsonl", b'{"id": "1", "truth": "cat"}\n')
    reader = client_of(make_member(laboratory.workspace, "viewer"))
    outsider = client_of(Actor.of(make_user("outsider")))
    page = f"/workspaces/lab/artifacts/{artifact.public_id}/"
    for address in (page, f"{page}file/"):
        assert (reader.get(address).status_code, outsider.get(address).status_code) == (200, 404)


def test_what_is_withdrawn_is_still_read_by_who_may_see_it(laboratory: Laboratory) -> None:
    artifact = made(laboratory, "wrong.txt", b"wrong column")
    with laboratory.opened():
        withdraw(actor=laboratory.owner, subject=Node(NodeKind.ARTIFACT, artifact.pk), label="wrong.txt", reason="Wrong column.")
    page = page_of(laboratory, artifact)
    assert ("Not to be rested on" in page, "<bdi>wrong column</bdi>" in page) == (True, True)
