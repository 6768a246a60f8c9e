"""What a search text may mean, and where it stands in a name."""

import uuid

import pytest

from workspaces.search_text import Unsearchable, Wanted, read, split

KEY = uuid.UUID("01920000-0000-7000-8000-00005e8c41b2")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("  go fast ", Wanted("go fast")),
        ("#12", Wanted("#12", number=12)),
        ("12", Wanted("12", number=12)),
        ("1234567890", Wanted("1234567890", tail="1234567890", sha256="1234567890")),
        (f"run_{KEY.hex}", Wanted(f"run_{KEY.hex}", key=KEY)),
        (str(KEY), Wanted(str(KEY), key=KEY)),
        ("run_5e8c41b2", Wanted("run_5e8c41b2", tail="5e8c41b2")),
        ("5E8C41B2", Wanted("5E8C41B2", tail="5e8c41b2", sha256="5e8c41b2")),
        ("e3b0c4", Wanted("e3b0c4", sha256="e3b0c4")),
        ("bench_go", Wanted("bench_go")),
        ("٣", Wanted("٣")),  # a digit, but no number of ours
        ("", Wanted("")),
    ],
)
def test_what_a_text_means(text: str, wanted: Wanted) -> None:
    assert read(text) == wanted


@pytest.mark.parametrize(("text", "words"), [("x" * 201, "up to 200 characters; this has 201"), ("a\x00b", "NUL"), ("\ud800", "surrogate")])
def test_what_nothing_can_be_called(text: str, words: str) -> None:
    with pytest.raises(Unsearchable, match=words):
        read(text)


@pytest.mark.parametrize(
    ("shown", "text", "parts"),
    [
        ("Fast learning of Go", "GO", ("Fast learning of ", "Go", "")),
        ("go-go", "go", ("", "go", "-go")),
        ("a.b", ".", ("a", ".", "b")),
        ("İstanbul go", "GO", ("İstanbul ", "go", "")),  # lower() would move what comes after
        ("nothing", "go", ("nothing", "", "")),
        ("nothing", "", ("nothing", "", "")),
    ],
)
def test_where_a_text_stands(shown: str, text: str, parts: tuple[str, str, str]) -> None:
    assert split(shown, text) == parts
