"""The part of a log that a page shows: right line numbers at any place, and no more read or shown than a window however long the log is."""

import random
import uuid

import pytest

from runs.models import Attempt, Run
from runs.queries import log, log_window
from runs.queries.log_window import LogWindow
from tests.factories_pages import add_artifact, add_attempt, client_of
from tests.factories_runs import Laboratory, launch, make_laboratory

NAME = "stdout.log"


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces, windows and lines so small that a short log has many of each."""
    monkeypatch.setattr(log, "PIECE", 64)
    monkeypatch.setattr(log_window, "PIECE", 64)
    monkeypatch.setattr(log_window, "WINDOW", 48)
    monkeypatch.setattr(log_window, "LINES", 9)
    monkeypatch.setattr(log_window, "LINES_BEFORE", 2)


def keep(laboratory: Laboratory, content: bytes) -> tuple[Run, Attempt]:
    run = launch(laboratory)
    attempt = add_attempt(actor=laboratory.owner, run=run)
    add_artifact(actor=laboratory.owner, run=run, path=f".labsite/attempt-1/{NAME}", content=content)
    return run, attempt


def check(found: LogWindow, content: bytes) -> None:
    """The window is a piece of the log at the place that it says."""
    begins = found.next_offset - len(found.text)
    assert content[begins : found.next_offset] == found.text
    assert found.first == 1 + content.count(b"\n", 0, begins)
    assert found.next_line == 1 + content.count(b"\n", 0, found.next_offset)
    assert found.text.count(b"\n") <= log_window.LINES
    assert len(found.text) <= log_window.WINDOW
    assert found.is_final == (found.next_offset == len(content))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("small")
def test_every_line_can_be_linked_to_and_the_end_is_the_end(laboratory: Laboratory, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # lines of a test, no secret
    content = b"\n".join(bytes(chance.choices(b"abc", k=chance.choice((0, 0, 1, 3, 9, 30)))) for _ in range(120)) + b"\n" * (seed % 2)
    lines = content.split(b"\n")
    with laboratory.opened():
        run, attempt = keep(laboratory, content)
        end = log_window.log_window(run, NAME, attempt=attempt)
        check(end, content)
        assert end.is_end
        assert end.is_final
        for number in range(1, content.count(b"\n") + 1):
            found = log_window.log_window(run, NAME, attempt=attempt, line=number)
            check(found, content)
            assert found.first == max(1, number - 2)
            assert found.text.split(b"\n")[0] == lines[found.first - 1][: log_window.WINDOW]
        beyond = log_window.log_window(run, NAME, attempt=attempt, line=10_000)
        assert beyond.text == end.text


@pytest.mark.usefixtures("small")
def test_reading_on_window_by_window_gives_the_whole_log_once(laboratory: Laboratory) -> None:
    content = b"".join(b"%d\n" % number for number in range(200)) + b"x" * 130 + b"\nlast, without an end"
    with laboratory.opened():
        run, attempt = keep(laboratory, content)
        found = log_window.log_window(run, NAME, attempt=attempt, line=1)
        read = found.text
        while not found.is_final:
            found = log_window.log_after(run, NAME, attempt=attempt, offset=found.next_offset, line=found.next_line)
            check(found, content)
            assert found.text
            read += found.text
    assert read == content


@pytest.mark.parametrize("content", [b"", b"\n", b"one", b"one\n", b"x" * 500, b"x" * 500 + b"\n", b"\n" * 500, b"a\n" * 24])
@pytest.mark.usefixtures("small")
def test_odd_logs_show_something_of_what_they_have(laboratory: Laboratory, content: bytes) -> None:
    with laboratory.opened():
        run, attempt = keep(laboratory, content)
        for line in (None, 1, 2, 24, 500):
            found = log_window.log_window(run, NAME, attempt=attempt, line=line)
            check(found, content)
            assert bool(found.text) == bool(content)


def test_a_long_log_is_counted_once_and_read_in_windows(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """100,000 short lines and more: the second look reads only what it shows, whatever line is asked for."""
    content = b"".join(b"line %d\n" % number for number in range(1, 400_001))
    with laboratory.opened():
        run, _ = keep(laboratory, content)
    client = client_of(laboratory.owner)
    address = f"/workspaces/lab/runs/{run.public_id}/?tab=log"
    body = client.get(address).content.decode()
    assert 'id="L400000"' in body
    assert body.count('<li id="L') == log_window.LINES
    read: list[int] = []
    stored = log._stored

    def counted(region: str, workspace_id: uuid.UUID, sha256: str, offset: int, limit: int) -> bytes:
        text = stored(region, workspace_id, sha256, offset, limit)
        read.append(len(text))
        return text

    monkeypatch.setattr(log, "_stored", counted)
    for line in (1, 123_456, 399_999):
        read.clear()
        body = client.get(f"{address}&line={line}").content.decode()
        assert f'id="L{line}"' in body
        assert body.count('<li id="L') <= log_window.LINES
        assert sum(read) <= log.PIECE + log_window.WINDOW
    read.clear()
    client.get(address)
    assert sum(read) <= 2 * log.PIECE
