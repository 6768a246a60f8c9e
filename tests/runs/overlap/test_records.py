"""Two records are the same where they say the same, nearly the same as contracts.md K has it, and different otherwise; in files of every kind."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from runs.overlap.compare import Overlap, Side, compare
from runs.overlap.kinds import unmet
from runs.overlap.sidecar import Contents, Sidecar, Source, write

ROW = "id,radius,diagnosis\nwdbc-7,17.99,malignant\n"
POINTS = 81


def made(folder: Path, name: str, *files: tuple[str, str | bytes]) -> tuple[Contents, Side]:
    sources = []
    for number, (path, content) in enumerate(files):
        place = folder / f"{name}-{number}"
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        sources.append(Source(path, place))
    contents = write(folder / f"{name}.records", sources)
    return contents, Side(Sidecar(folder / f"{name}.records"), sources)


def met(folder: Path, one: tuple[str, str | bytes], other: tuple[str, str | bytes]) -> Overlap:
    return compare(made(folder, "one", one)[1], made(folder, "other", other)[1])


def counts(found: Overlap) -> tuple[int, int]:
    return found.exact, found.near


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("a.csv", ROW, (1, 0)),
        ("a.csv", ROW.replace("\n", "\r\n"), (1, 0)),
        ("a.csv", "\ufeff" + ROW, (1, 0)),
        ("a.csv", "diagnosis,radius,id\nmalignant,17.990,wdbc-7\n", (1, 0)),  # other order, the same number
        ("a.tsv", ROW.replace(",", "\t"), (1, 0)),
        ("a.tab", ROW.replace(",", "\t"), (1, 0)),
        ("a.csv", ROW.replace(",", "\t"), (1, 0)),
        ("a.csv", ROW.replace(",", ";"), (1, 0)),
        ("a.csv", ROW.replace(",", "|"), (1, 0)),
        ("a.txt", ROW, (1, 0)),
        ("a.csv", ROW.encode("utf-16"), (1, 0)),
        ("a.csv.gz", gzip.compress(ROW.encode(), mtime=0), (1, 0)),
        ("a.txt", '{"radius": 17.99, "diagnosis": "malignant", "id": "wdbc-7"}\n', (1, 0)),
        ("a.jsonl.gz", gzip.compress(b'{"radius": 17.99, "diagnosis": "malignant", "id": "wdbc-7"}\n', mtime=0), (1, 0)),
        ("a.jsonl", '{"x": {"radius": 17.99, "diagnosis": "malignant", "id": "wdbc-7"}}\n', (1, 0)),
        ("a.jsonl", '{"radius": 17.99, "diagnosis": "malignant", "id": "wdbc-7"}\n', (1, 0)),
        ("a.json", '[{"radius": 17.99, "diagnosis": "malignant", "id": "wdbc-7"}]', (1, 0)),
        ("a.json", '{"of": {"rows": [{"radius": 17.99, "diagnosis": "malignant", "id": "wdbc-7"}], "count": 1}}', (1, 0)),
        ("a.json", '{"wdbc": {"radius": 17.99, "diagnosis": "malignant", "id": "wdbc-7"}}', (1, 0)),
        ("a.csv", ROW.replace("17.99", "17.994"), (0, 1)),  # 17.99 at four digits
        ("a.csv", ROW.replace("17.99", "17.98"), (0, 0)),
        ("a.csv", ROW.replace("wdbc-7", "wdbc-8"), (0, 0)),
        ("a.csv", ROW.replace("radius", "area"), (0, 0)),
    ],
)
def test_a_row_is_the_same_whatever_its_file_looks_like(tmp_path: Path, path: str, content: str | bytes, expected: tuple[int, int]) -> None:
    assert counts(met(tmp_path, (path, content), ("held.csv", ROW))) == expected


def test_a_planted_row_is_named_where_it_stands(tmp_path: Path) -> None:
    held = "id,x\n" + "".join(f"h{number},{number * 1.5}\n" for number in range(20))
    rows = [f"t{number},{number * 2.5}\n" for number in range(100)]
    planted = "id,x\n" + "".join([*rows[:40], "h7,10.5\n", *rows[40:]])
    found = met(tmp_path, ("train.csv", planted), ("held.csv", held))
    (pair,) = found.pairs
    assert (found.exact, pair.kind, pair.record, pair.other) == (1, "exact", 40, 7)
    assert counts(met(tmp_path / _new(tmp_path), ("train.csv", "id,x\n" + "".join(rows)), ("held.csv", held))) == (0, 0)


def test_a_record_that_was_numbered_anew_is_nearly_the_same(tmp_path: Path) -> None:
    held = "record_id,a,b,c,d\nh-1,1.5,2.5,3.5,4.5\n"
    assert counts(met(tmp_path, ("t.csv", held.replace("h-1", "t-9").replace("2.5", "2.50001")), ("h.csv", held))) == (0, 1)
    assert counts(met(tmp_path / _new(tmp_path), ("t.csv", held.replace("4.5", "4.6")), ("h.csv", held))) == (0, 0)
    few = "id,label\n1,benign\n"
    assert counts(met(tmp_path / _new(tmp_path), ("t.csv", few.replace("1", "2")), ("h.csv", few))) == (0, 0), "labels alone name no record"


def test_a_row_with_a_column_more_is_nearly_the_same(tmp_path: Path) -> None:
    """A teacher's labels of a record that is held out: its measurements, another label, how sure it is."""
    random = np.random.default_rng(5)
    names = ",".join(f"m{number}" for number in range(30))
    rows = [",".join(f"{value:.6g}" for value in random.lognormal(0, 3, 30)) for _ in range(40)]
    held = f"record_id,{names},malignant\n" + "".join(f"w-{number},{row},1\n" for number, row in enumerate(rows[:20]))
    labels = [f"w-{number},0,{0.5 + number / 99:.6g},{row}\n" for number, row in enumerate(rows[20:])]
    head = f"record_id,malignant,confidence,{names}\n"
    planted = "".join([head, *labels[:9], f"x-1,0,0.98765,{rows[3]}\n", *labels[9:]])
    (pair,) = met(tmp_path, ("labels.csv", planted), ("held.csv", held)).pairs
    assert (pair.kind, pair.record, pair.other) == ("near", 9, 3)
    assert counts(met(tmp_path / _new(tmp_path), ("labels.csv", head + "".join(labels)), ("held.csv", held))) == (0, 0)
    sparse = "".join(
        [
            ",".join(f"c{number}" for number in range(60)),
            "\n",
            *(",".join("1" if at == row else "0" for at in range(60)) + "\n" for row in range(40)),
        ]
    )
    first, second = sparse.splitlines(keepends=True)[:21], sparse.splitlines(keepends=True)[21:]
    assert counts(met(tmp_path / _new(tmp_path), ("t.csv", "".join(first)), ("h.csv", "".join([first[0], *second])))) == (0, 0), (
        "zeros name none"
    )


def test_text_is_near_where_its_shingles_are(tmp_path: Path) -> None:
    text = "A patient of fifty years presents with a firm mass in the upper outer quadrant of the left breast, first seen two months ago."
    assert counts(met(tmp_path, ("a.txt", f"  {text.replace(' ', '  ')}\n"), ("h.txt", text))) == (1, 0)
    changed = text.replace("fifty", "sixty").upper()
    (pair,) = met(tmp_path / _new(tmp_path), ("a.txt", f"{changed}\n"), ("h.jsonl", json.dumps({"q": text, "a": 1}))).pairs
    assert pair.kind == "near" and 0.8 <= pair.similarity < 1
    other = "Which of these drugs is given first to an adult whose blood pressure stays high although salt was left out for six weeks?"
    assert counts(met(tmp_path / _new(tmp_path), ("a.txt", other), ("h.txt", text))) == (0, 0)


@pytest.mark.parametrize(("path", "turned"), [("a.txt.gz", gzip.compress), ("a.txt", lambda text: text.decode().encode("utf-16"))])
def test_text_that_is_packed_is_near_where_its_shingles_are(tmp_path: Path, path: str, turned: Callable[[bytes], bytes]) -> None:
    text = "A patient of fifty years presents with a firm mass in the upper outer quadrant of the left breast, first seen two months ago."
    lines = f"Something else that is long enough to be prose.\n{text.replace('fifty', 'sixty')}\n"
    (pair,) = met(tmp_path, (path, turned(lines.encode())), ("h.txt", text)).pairs
    assert (pair.kind, pair.record) == ("near", 1)


def test_a_conversation_is_one_record_whose_text_is_looked_at(tmp_path: Path) -> None:
    said = "What may a patient with a firm mass in the upper outer quadrant of the left breast be told before the biopsy is back?"
    held, turned = ([{"messages": [{"said": "Go on, say it."}, {"said": text}]}] for text in (said, said.replace("firm", "soft")))
    lines = "".join(json.dumps(line) + "\n" for line in ({"messages": [{"said": "Another"}, {"said": "one"}]}, *turned))
    (pair,) = met(tmp_path, ("a.jsonl", lines), ("h.jsonl", json.dumps({"a": 1}) + "\n" + json.dumps(held[0]))).pairs
    assert (pair.kind, pair.record, pair.other) == ("near", 1, 1)


def test_a_table_without_names_meets_only_such_a_table(tmp_path: Path) -> None:
    names, *rows = ["id,radius,diagnosis", *(f"w-{number},{number}.5,benign" for number in range(9))]
    words = ["Ann,north,yes", "Bob,south,no", "Cid,east,yes"]
    bare, other = made(tmp_path, "bare", ("a.csv", "\n".join(rows)), ("b.csv", "\n".join(words))), made(tmp_path, "o", ("c.csv", rows[2]))
    named, text = made(tmp_path, "named", ("a.csv", "\n".join([names, *rows]))), made(tmp_path, "text", ("a.txt", "one\n"))
    noted = made(tmp_path, "noted", ("a.csv", "\n".join(["# as of today", names, *rows])))[0].parts
    assert unmet(noted, named[0].parts) == (["a.csv"], [])
    assert unmet(bare[0].parts, named[0].parts) == (["a.csv", "b.csv"], [])
    assert unmet(bare[0].parts, other[0].parts) == unmet(bare[0].parts, text[0].parts) == unmet(named[0].parts, named[0].parts) == ([], [])
    assert counts(compare(bare[1], other[1])) == (1, 0)
    assert bare[0].records == 12


@pytest.mark.parametrize(
    "text",
    [
        "The patient came late, with fever.\nNobody asked, so she waited.\n",
        "One line, and no more\n",
        "name: a; b\nother\n",
        "# Title\n\nA sentence, of some length.\n",
    ],
)
def test_prose_is_no_table(tmp_path: Path, text: str) -> None:
    assert [part.kind for part in made(tmp_path, "one", ("a.txt", text), ("a.md", text))[0].parts] == ["text", "text"]


def test_text_in_a_json_document_is_near_where_its_shingles_are(tmp_path: Path) -> None:
    text = "A patient of fifty years presents with a firm mass in the upper outer quadrant of the left breast, first seen two months ago."
    document = json.dumps(
        {"title": "questions", "rows": [{"q": "another, long enough for prose"}, {"q": text.replace("fifty", "sixty"), "a": 1}]}
    )
    (pair,) = met(tmp_path, ("a.json", document), ("h.jsonl", json.dumps({"q": text, "a": 1}))).pairs
    assert (pair.kind, pair.record) == ("near", 1) and 0.8 <= pair.similarity < 1


@pytest.mark.parametrize("symmetry", range(8))
def test_a_game_is_near_under_every_symmetry(tmp_path: Path, symmetry: int) -> None:
    moves = [(2, 3), (6, 5), (4, 4), (7, 2), (0, 8), (3, 3)]
    held = _game(moves, 0, "C[a comment with (;brackets\\])]PB[one]")
    found = met(tmp_path, ("g.sgf", _game([(1, 1), (2, 2)], 0) + _game(moves, symmetry, "PB[another]")), ("h.sgf", held))
    assert counts(found) == ((1, 0) if symmetry == 0 else (0, 1))
    assert found.pairs[0].record == 1
    assert counts(met(tmp_path / _new(tmp_path), ("g.sgf", _game(moves[:-1], 0)), ("h.sgf", held))) == (0, 0)


def test_positions_are_near_under_every_symmetry_and_other_rows_are_not(tmp_path: Path) -> None:
    arrays = _positions(12)
    board = np.arange(POINTS).reshape(9, 9)
    turned = np.rot90(board.T, 3).ravel()
    rotated = {**arrays, "stones": arrays["stones"][..., turned], "owners": arrays["owners"][:, turned], "game": arrays["game"] + 3}
    rotated["visits"] = arrays["visits"][:, np.append(turned, POINTS)]
    assert counts(met(tmp_path, ("p.npz", _npz(rotated)), ("h.npz", _npz(arrays)))) == (0, 12)
    moved = {**arrays, "game": arrays["game"] + 3}
    assert counts(met(tmp_path / _new(tmp_path), ("p.npz", _npz(moved)), ("h.npz", _npz(arrays)))) == (12, 0)
    assert counts(met(tmp_path / _new(tmp_path), ("p.npz", _npz(_positions(12, seed=2))), ("h.npz", _npz(arrays)))) == (0, 0)


def test_rows_of_any_arrays_are_compared(tmp_path: Path) -> None:
    features = np.random.default_rng(1).normal(size=(50, 8))
    one = _npz({"x": features, "y": np.arange(50), "about": np.array("a note")})
    other = _npz({"x": np.concatenate([features[20:23] * 1.000001, features[5:6]]), "y": np.array([20, 21, 22, 5])})
    assert counts(met(tmp_path, ("a.npz", one), ("h.npz", other))) == (1, 3)
    single = io.BytesIO()
    np.save(single, features[:10])
    assert made(tmp_path / _new(tmp_path), "npy", ("a.npy", single.getvalue()))[0].records == 10


def test_every_set_of_an_archive_is_compared_and_what_is_about_the_file_is_not(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    held_out = random.random((150, 6))
    about = {"classes": np.array([f"class {number}" for number in range(120)]), "mean": np.full((6,), 0.5), "std": np.full((6,), 0.25)}
    training = {"x_train": random.random((400, 6)), "y_train": np.arange(400), "x_test": held_out, "y_test": np.arange(150)}
    holdout = {"x": held_out[:130], "y": np.arange(130)}
    assert counts(met(tmp_path, ("all.npz", _npz(training | about)), ("h.npz", _npz(holdout | about)))) == (130, 0)
    kept = {name: training[name] for name in ("x_train", "y_train")}
    assert counts(met(tmp_path / _new(tmp_path), ("all.npz", _npz(kept | about)), ("h.npz", _npz(holdout | about)))) == (0, 0)


def test_a_file_of_another_kind_is_one_record(tmp_path: Path) -> None:
    contents, one = made(tmp_path, "one", ("weights.bin", b"\x00\x01" * 1000), ("more.bin", b"\x02"))
    _, other = made(tmp_path, "other", ("renamed.dat", b"\x00\x01" * 1000))
    assert contents.records == 2
    assert counts(compare(one, other)) == (1, 0)


DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
HOSTILE: list[tuple[str, bytes, int, str]] = [
    ("ten megabytes.jsonl", b'{"text": "' + b"word and word " * 750_000 + b'"}\n{"a": 1}\n', 2, ""),
    ("one cell.csv", b'a,b\n1,"' + b"x y" * 3_500_000 + b'"\n2,3\n', 2, ""),
    ("wide.csv", b",".join(b"c%d" % n for n in range(5000)) + b"\n" + b",".join([b"1.5"] * 5000) + b"\n", 1, ""),
    ("nan.csv", b"a,b\nNaN,inf\n-Infinity,nan\n1e999,-1e999\n", 3, ""),
    ("nan.jsonl", b'{"a": NaN, "b": [Infinity, -Infinity]}\n{"a": 1e999}\n', 2, ""),
    ("nul.csv", b"a,b\n\x00,1\n2,\x00\x00\n", 2, ""),
    ("latin.csv", "name,age\nJos\u00e9,3\n".encode("latin-1"), 1, ""),
    ("broken.txt", b"\xff\xfe\xfa\n\xc3\x28\n", 2, ""),
    ("deep.jsonl", DEEP + b"\n", 1, ""),
    ("digits.jsonl", b'{"a": ' + b"9" * 10_000 + b"}\n", 1, ""),
    ("blank.jsonl", b"\n\n  \n", 0, ""),
    ("ragged.csv", b"a,b\n1\n1,2,3\n1,2\n", 3, ""),
    ("twice.csv", b"a,a,a\n1,2,3\n", 1, ""),
    ("quote.csv", b'a,b\n1,"' + b"never closed\n" * 1_400_000, 1, "line"),
    ("endless.csv", b"a,b\n" + b"x" * (17 * 1024 * 1024), 1, "longer than 16 MiB"),
    ("endless.txt", b"x" * (17 * 1024 * 1024) + b"\nshort\n", 2, ""),
    ("no.sgf", b"this is no game", 1, "no game tree"),
    ("open.sgf", b"(;GM[1]SZ[9];B[aa", 1, "without an end"),
    ("no.npz", b"PK\x03\x04 this is no archive", 1, "no archive"),
    ("no.csv.gz", b"a,b\n1,2\n", 1, "no gzip"),
    ("cut.csv.gz", gzip.compress(ROW.encode() * 99, mtime=0)[:-20], 1, "no gzip"),
    ("half.txt", b"\xff\xfea\x00,", 1, ""),
    ("one line.jsonl", b'{"rows": [{"a": 1}, {"a": 2}]}\n', 1, "in one line"),
    ("no.json", b"a: 1", 1, "not what its name says"),
    ("columns.json", b'{"a": {"0": 1, "1": 2}, "b": {"0": 3, "1": 4}}', 1, "as columns"),
    ("split.json", b'{"columns": ["a", "b"], "data": [[1, 2], [3, 4]]}', 1, "lists of lists"),
    ("lists.json", b'{"rows": {"a": [1, 2], "b": [3, 4]}}', 1, "as columns"),
    ("deep.json", DEEP, 1, "too deep"),
    ("no.npy", b"\x93NUMPY\x01\x00\xff\xff", 1, "no array"),
]


@pytest.mark.parametrize(("path", "content", "records", "fault"), HOSTILE, ids=[path for path, *_ in HOSTILE])
def test_whatever_a_file_holds_it_is_read_or_said_why_not(tmp_path: Path, path: str, content: bytes, records: int, fault: str) -> None:
    contents, side = made(tmp_path, "one", ("good.csv", ROW), (path, content))
    part = contents.parts[1]
    assert part.count == records and fault in part.fault and bool(fault) == bool(part.fault)
    assert counts(compare(side, side))[0] == contents.records, "each record is in what it is in"


def array_file(shape: str) -> bytes:
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + bytes(64)


def zip_of_arrays(broken: str) -> bytes:
    """An .npz, its packed bytes broken or its directory displaced."""
    out = io.BytesIO()
    np.savez_compressed(out, rows=np.arange(4096.0).reshape(64, 64))
    whole = bytearray(out.getvalue())
    if broken == "displaced":
        whole[-6:-2] = (int.from_bytes(whole[-6:-2], "little") + 4096).to_bytes(4, "little")
    else:
        whole[200:260] = b"\xff" * 60
    return bytes(whole)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.npy", array_file("(8,")),
        ("a.npy", array_file("(-8,)")),
        ("a.npy", array_file("(2,)")),  # more behind it
        ("a.npy", array_file("(9" + "9" * 40 + ",)")),
        ("a.npz", zip_of_arrays("displaced")),
        ("a.npz", zip_of_arrays("packed")),
    ],
)
def test_a_file_of_arrays_that_lies_is_one_record_and_the_others_are_read(tmp_path: Path, path: str, content: bytes) -> None:
    contents, _ = made(tmp_path, "one", (path, content), ("held.csv", ROW))
    assert [(part.count, bool(part.fault)) for part in contents.parts] == [(1, True), (1, False)]


def test_objects_in_arrays_are_never_opened(tmp_path: Path) -> None:
    contents, _ = made(tmp_path, "one", ("evil.npz", _npz({"x": np.array([{"a": 1}, None], dtype=object)})))
    assert "Python objects" in contents.parts[0].fault


def test_what_was_read_of_a_file_that_breaks_later_is_forgotten(tmp_path: Path) -> None:
    broken = b"q\n" + b"a question with a good many words in it\n" * 20_000 + b'"' + b"x" * (17 * 1024 * 1024)
    contents, side = made(tmp_path, "one", ("first.csv", ROW), ("broken.csv", broken), ("last.csv", ROW))
    assert [(part.first, part.count) for part in contents.parts] == [(0, 1), (1, 1), (2, 1)]
    assert contents.sketches == 0
    assert counts(compare(side, made(tmp_path, "other", ("h.csv", ROW))[1])) == (2, 0)


def test_parts_follow_each_other(tmp_path: Path) -> None:
    contents, _ = made(tmp_path, "one", ("a.csv", ROW), ("blank.txt", "\n"), ("b.csv", ROW + "wdbc-9,1,benign\n"))
    assert all(one.first + one.count == other.first for one, other in pairwise(contents.parts))
    assert [contents.part_of(number).path for number in range(contents.records)] == ["a.csv", "b.csv", "b.csv"]


def _new(folder: Path) -> str:
    """A folder for another pair."""
    name = f"pair-{sum(1 for _ in folder.iterdir())}"
    (folder / name).mkdir()
    return name


def _game(moves: list[tuple[int, int]], symmetry: int, head: str = "") -> str:
    nodes = []
    for turn, (column, row) in enumerate(moves):
        if symmetry & 1:
            column = 8 - column
        if symmetry & 2:
            row = 8 - row
        if symmetry & 4:
            column, row = row, column
        nodes.append(f";{'BW'[turn % 2]}[{chr(97 + column)}{chr(97 + row)}]")
    return f"(;FF[4]GM[1]SZ[9]KM[6.5]{head}{''.join(nodes)};B[])\n"


def _positions(count: int, seed: int = 1) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    visits = random.random((count, POINTS + 1)).astype(np.float32)
    return {
        "stones": random.integers(0, 2, (count, 2, POINTS), dtype=np.uint8),
        "black_to_move": np.arange(count) % 2 == 0,
        "visits": visits / visits.sum(axis=1, keepdims=True),
        "owners": random.integers(-1, 2, (count, POINTS)).astype(np.int8),
        "outcome": np.ones(count, np.float32),
        "game": np.zeros(count, np.int32),
    }


def _npz(arrays: dict[str, np.ndarray]) -> bytes:
    """As np.savez_compressed writes it."""
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.save(file, array)
    return kept.getvalue()
