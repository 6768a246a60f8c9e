"""Records that show an overlap are found again in whatever form their file holds them; what would cost too much is said to be left out."""

import gzip
import json
from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest

from runs.models import OverlapCheck
from runs.queries import record_text
from runs.queries.overlap_records import ShownPair, pairs_of
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, make_laboratory
from tests.runs.test_overlap import keep, work
from workspaces import scope
from workspaces.models import DatasetVersion

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = [{"patient": f"P{number}", "note": f"a note on patient {number}", "radius": f"{17 + number}.25"} for number in range(30)]
HELD_OUT, TRAINED = [ROWS[0], ROWS[1] | {"radius": "40.5"}], ROWS[2:]


def table(rows: list[dict[str, str]], delimiter: str = ",") -> bytes:
    return "\n".join([delimiter.join(rows[0]), *(delimiter.join(row.values()) for row in rows), ""]).encode()


def as_document(rows: list[dict[str, str]]) -> bytes:
    return json.dumps({"title": "notes", "records": rows}).encode()


def as_lines(rows: list[dict[str, str]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def as_wide(content: bytes) -> bytes:
    return content.decode().encode("utf-16")


@pytest.fixture
def lab() -> Laboratory:
    return make_laboratory()


def compared(lab: Laboratory, path: str, held_out: bytes, trained: bytes) -> tuple[DatasetVersion, list[ShownPair]]:
    keep(lab.owner, "held-out", held_out, role="holdout", path=path)
    planted = keep(lab.owner, "planted", trained, path=path)
    work(lab)
    return planted, pairs_of(OverlapCheck.objects.get(version=planted))


def test_text_and_fields_are_shown_in_whatever_form_a_file_holds_them(lab: Laboratory) -> None:
    """One exact record, and one of which a value is nearly the same."""
    forms: dict[str, Callable[[list[dict[str, str]]], bytes]] = {
        "packed.csv.gz": lambda rows: gzip.compress(table(rows)),
        "wide.csv": lambda rows: as_wide(table(rows)),
        "semicolons.csv": lambda rows: table(rows, ";"),
        "bars.txt": lambda rows: table(rows, "|"),
        "lines.jsonl.gz": lambda rows: gzip.compress(as_lines(rows)),
        "document.json": as_document,
        "document.json.gz": lambda rows: gzip.compress(as_document(rows)),
    }
    planted = [*TRAINED[:20], ROWS[0], ROWS[1] | {"radius": "40.50001"}]
    with scope.open_workspace(lab.workspace.pk):
        for number, (path, form) in enumerate(forms.items()):
            holdout = keep(lab.owner, f"held-out-{number}", form(HELD_OUT), role="holdout", path=path)
            trained = keep(lab.owner, f"planted-{number}", form(planted), path=path)
            work(lab)
            exact, near = pairs_of(OverlapCheck.objects.get(version=trained, holdout=holdout))
            for shown in (exact.record, exact.holdout):
                assert shown.fields == ROWS[0], path
                assert shown.text and "a note on patient 0" in shown.text and "patient 1" not in shown.text, path
            assert [(one.name, one.mine, one.other) for one in near.differences] == [("radius", "40.50001", "40.5")], path
        page = client_of(lab.owner).get(f"/workspaces/{lab.workspace.slug}/overlaps/{OverlapCheck.objects.latest('pk').public_id}/")
    assert "not shown" not in page.content.decode()


def test_games_and_prose_that_are_packed_are_shown(lab: Laboratory) -> None:
    game, line = b"(;SZ[9];B[aa];W[bb])", b"a sentence of prose that is long enough, and says so\n"
    with scope.open_workspace(lab.workspace.pk):
        _, (pair,) = compared(lab, "games.sgf.gz", gzip.compress(b"(;SZ[9];B[cc])" + game), gzip.compress(game + b"(;SZ[9];B[dd])"))
        assert (pair.record.text, pair.holdout.text) == (game.decode(), game.decode())
        keep(lab.owner, "held-out", as_wide(line), role="holdout", path="prose.txt")
        prose = keep(lab.owner, "prose", as_wide(b"another sentence\n" + line), path="prose.txt")
        work(lab)
        (pair,) = pairs_of(OverlapCheck.objects.exclude(exact=0).get(version=prose))
        assert (pair.record.text, pair.holdout.text) == (line.decode().strip(), line.decode().strip())


def test_packed_arrays_are_said_to_be_no_text(lab: Laboratory) -> None:
    """Their places are rows: the bytes there are no record, though they read as letters behind the head of the file."""
    rows = np.array([[33 + number % 90, 33 + number * 7 % 90, 33 + number // 90, 65] for number in range(300)], dtype=np.uint8)
    packed = []
    for part in (rows[250:253], rows):
        file = BytesIO()
        np.save(file, part)
        packed.append(gzip.compress(file.getvalue()))
    with scope.open_workspace(lab.workspace.pk):
        _, pairs = compared(lab, "rows.npy.gz", *packed)
    assert {pair.record.number for pair in pairs} == {251, 252, 253}
    assert {(pair.record.text, pair.record.missing) for pair in pairs} == {(None, record_text.NO_TEXT)}


def test_what_would_cost_a_page_too_much_is_said_to_be_left_out(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packed file may stand for a thousand times its size."""
    filler = b"".join(b"the same note, number %d\n" % number for number in range(20_000))
    last = b"the last sentence of all, which is held out\n"
    with scope.open_workspace(lab.workspace.pk):
        planted, (pair,) = compared(lab, "notes.txt.gz", gzip.compress(last), gzip.compress(filler + last))
        assert pair.record.text == pair.holdout.text == last.decode().strip()
        check = OverlapCheck.objects.get(version=planted)
        with monkeypatch.context() as small:
            small.setattr(record_text, "MOST_TURNED", 100_000)
            (pair,) = pairs_of(check)
            assert (pair.record.text, pair.record.missing) == (None, record_text.TOO_FAR)
            assert pair.holdout.text == last.decode().strip()
        monkeypatch.setattr(record_text, "MOST_ON_PAGE", 100_000)
        (pair,) = pairs_of(check)
        assert pair.record.text == last.decode().strip()
        assert (pair.holdout.text, pair.holdout.missing) == (None, record_text.NO_ROOM), "the first has taken it"
        page = client_of(lab.owner).get(f"/workspaces/{lab.workspace.slug}/overlaps/{check.public_id}/").content.decode()
        assert record_text.NO_ROOM in page
