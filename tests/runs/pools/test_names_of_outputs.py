"""Which names of outputs are taken, and what is said of those that are not. Without a pool."""

import os
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from runs.pools.base import is_component, is_strange
from runs.pools.folder import list_outputs
from workspaces.downloads import attachment
from workspaces.file_paths import clean_path
from workspaces.text import unprintable

ORDINARY = ("می‌خواهم.csv", "👩‍🔬.png", "no break\xa0blank", "全角\u3000空白", "क्‍ष", "private \ue000", "marks\u200f\u200e")


def test_pools_refuse_the_characters_that_pages_refuse_and_no_others() -> None:
    for code in range(sys.maxunicode + 1):
        assert is_strange(chr(code)) == (unprintable(chr(code)) is not None), hex(code)


def test_names_of_every_script_are_names() -> None:
    assert all(is_component(name) for name in ORDINARY)
    strange = ("line\nbreak", "tab\t", "\x7f", "a\u202eb", "\u2066", "half \udcff", "\u2028", "", ".", "..", "a/b")
    assert not any(is_component(name) for name in strange)


def test_a_file_is_downloaded_under_the_name_that_it_was_kept_under() -> None:
    for name in ORDINARY:
        said = attachment(iter(()), path=f"folder/{clean_path(name)}", size=0, sha256="")["Content-Disposition"]
        assert unquote(said.partition("''")[2]) == name
    assert (
        unquote(attachment(iter(()), path="a\u202eb\n.csv", size=0, sha256="")["Content-Disposition"]) == 'attachment; filename="a_b_.csv"'
    )


def test_what_is_not_taken_is_counted_by_its_reason_and_the_first_is_named(tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    (outputs / "folder").mkdir(parents=True)
    for name in ORDINARY:
        (outputs / name).write_text(name)
    for name in ("b\nad", "a\x1bbad"):
        (outputs / name).write_text("kept by nobody")
    for link, target in {"latest": "folder", "folder/up": "../latest", "away": "/etc/passwd", "folder/out": "../../home"}.items():
        (outputs / link).symlink_to(target)
    os.mkfifo(outputs / "pipe")
    found = list_outputs(tmp_path, frozenset({os.geteuid()}))
    assert {one.path for one in found} == set(ORDINARY)
    assert found.left == {"names": (2, "a\x1bbad"), "links": (2, "away")}
    assert found.skipped == 3, "the pipe, and links to what is listed itself"
    of_others = list_outputs(tmp_path, frozenset({os.geteuid() + 1}))
    assert (of_others.left["closed"], list(of_others)) == ((len(ORDINARY), min(ORDINARY)), [])


def test_one_that_vanishes_while_they_are_listed_takes_none_of_the_others_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs, read = tmp_path / "outputs", os.readlink
    outputs.mkdir()
    for name in "abcdef":
        (outputs / name).write_text(name)
    for name in ("1", "b1", "z"):
        (outputs / name).symlink_to("/etc/passwd")

    def readlink(path: str, **given: int) -> str:
        if path != "z":
            raise FileNotFoundError(path)
        return read(path, **given)

    monkeypatch.setattr(os, "readlink", readlink)
    found = list_outputs(tmp_path, frozenset({os.geteuid()}))
    assert [one.path for one in found] == list("abcdef")
    assert (found.skipped, found.left) == (2, {"links": (1, "z")})
