"""What the beginning of a stored file looks like: a table, text, or nothing that is shown; nothing of it is executed or trusted."""

from typing import cast

import pytest

from tests.factories import make_workspace
from tests.factories_registry import make_dataset_version, stored
from workspaces import scope
from workspaces.commands.dataset import import_dataset_version
from workspaces.models import Blob, Dataset, DatasetFile
from workspaces.queries.preview import Preview, preview_of

pytestmark = pytest.mark.django_db(transaction=True)


def shown(path: str, content: bytes) -> Preview:
    workspace, owner = make_workspace("lab", region="local")
    with scope.open_workspace(workspace.pk):
        make_dataset_version(owner)
        version = import_dataset_version(actor=owner, dataset=Dataset.objects.get(), role="any", files=[stored(path, content)])
        file = DatasetFile.objects.select_related("blob").get(version=version)
        return preview_of(file.blob, file.path)


def test_csv_is_a_table_of_its_first_rows() -> None:
    found = shown("t.csv", b"a,b\n" + b"".join(b'%d,"x, y"\n' % row for row in range(50)))
    assert (found.kind, found.head, found.rows[0], len(found.rows), found.is_cut) == ("table", ("a", "b"), ("0", "x, y"), 20, True)


def test_many_columns_and_long_cells_are_cut() -> None:
    found = shown("t.csv", b",".join(b"c%d" % n for n in range(30)) + b"\n" + b"y" * 5000 + b"\n")
    assert (len(found.head), found.head[-1], len(found.rows[0][0])) == (13, "…", 120)


def test_json_lines_are_a_table_by_their_keys() -> None:
    found = shown("t.jsonl", b'{"a": 1, "b": [1, 2]}\n{"a": "x", "c": null}\n')
    assert (found.head, found.rows) == (("a", "b", "c"), (("1", "[1, 2]", ""), ("x", "", "null")))


@pytest.mark.parametrize("content", [b"[1]\nnot json\n", b"[" * 60_000, b'"text"\n'])
def test_what_is_no_table_is_text(content: bytes) -> None:
    assert shown("t.jsonl", content).kind == "text"


@pytest.mark.parametrize("content", [b"PK\x03\x04\x00\x00", b"caf\xe9\n" * 3])
def test_bytes_that_are_no_utf8_are_not_shown(content: bytes) -> None:
    assert shown("m.npz", content).kind == "binary"


def test_text_whose_first_piece_ends_within_a_character_is_text() -> None:
    found = shown("t.txt", b"x" + "ü".encode() * 40_000)
    assert (found.kind, found.is_cut) == ("text", True)


def test_a_csv_with_a_quote_that_never_ends_breaks_nothing() -> None:
    assert shown("t.csv", b'a,b\n"' + b"z" * 200_000).kind in ("table", "text")


def test_json_that_nests_as_deep_as_can_be_read_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be read at a depth at which it cannot be written any more."""
    nobody = cast(Blob, None)  # what it holds is said below
    for depth in range(700, 1000):
        line = f'{{"a": {"[" * depth}{"]" * depth}}}'
        monkeypatch.setattr("workspaces.queries.preview.beginning_of", lambda blob, most, line=line: (line, False))
        assert preview_of(nobody, "t.jsonl").kind in ("table", "text")
