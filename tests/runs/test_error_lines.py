"""Runs that fail alike have one fingerprint, whatever differs between them; runs that fail otherwise have another."""

import pytest

from runs.error_lines import LINES_KEPT, LONGEST_LINE, TAIL_BYTES, alike, cause_of, error_lines

TRACE = b"""epoch 3 of 40
Traceback (most recent call last):
  File "/runs/ab12/code/train.py", line 12, in <module>
    main()
  File "/runs/ab12/code/train.py", line 9, in main
    raise ValueError(f"loss is {loss} at step {step}")
ValueError: loss is nan at step 1200
cleaning up
"""


def fingerprint(tail: bytes, *, code: int | None = 1, signal: int | None = None, reason: str = "exit_code") -> str:
    return cause_of(reason_code=reason, exit_code=code, exit_signal=signal, words="", lines=error_lines(tail)).fingerprint


@pytest.mark.parametrize(
    ("tail", "lines"),
    [
        (TRACE, ("ValueError: loss is nan at step 1200",)),
        (TRACE + TRACE.replace(b"ValueError", b"KeyError"), ("KeyError: loss is nan at step 1200",)),
        (b"start\nerror: no GPU\nbye\n", ("error: no GPU",)),
        (b"start\njust this\n", ("just this",)),
        (b"\x1b[31mFatal\x1b[0m: disk\n", ("Fatal: disk",)),
        (b"10 %\r20 %\rcannot open table\r", ("cannot open table",)),
        (b"", ()),
        (b"\n \n", ()),
        (b"\xff\xfe error \x00 here\n", ("\ufffd\ufffd error   here",)),
        (b"Traceback (most recent call last):\n  File", ("Traceback (most recent call last):",)),
    ],
)
def test_the_lines_that_say_what_went_wrong(tail: bytes, lines: tuple[str, ...]) -> None:
    assert error_lines(tail) == lines


def test_what_is_read_and_kept_is_bounded() -> None:
    lines = error_lines(b"error " + b"x" * 10_000 + b"\n" + b"error\n" * 100_000)
    assert len(lines) == LINES_KEPT
    assert error_lines(b"error: first\n" + b"y" * TAIL_BYTES) == ("y" * LONGEST_LINE,)


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("at 2026-11-28T12:00:01.5Z", "at 2026-11-29 00:10"),
        ("took 12:13:14.5", "took 01:02:03"),
        ("no such file: '/runs/ab/inputs/table.csv'", "no such file: '/runs/cd/inputs/other.csv'"),
        ("no such file: ./a/b", "no such file: ../c"),
        ("object at 0x7f3a22", "object at 0xdeadbeef"),
        ("run 01a22249-7838-727a-aad0-dc15a09cdda6", "run 01a22249-247b-7476-8910-42a7d42557f0"),
        ("commit 7db49f6a", "commit a370895b"),
        ("loss 1.5e-7 at step 1,200", "loss -3 at step 7"),
        ("  two   blanks", "two blanks"),
    ],
)
def test_what_differs_from_run_to_run_is_taken_out(line: str, same: str) -> None:
    assert alike(line) == alike(same)


@pytest.mark.parametrize(("line", "other"), [("KeyError: 'lr'", "KeyError: 'l2'"), ("added face", "added deed"), ("conv2d", "conv1d")])
def test_words_stay(line: str, other: str) -> None:
    assert alike(line) != alike(other)


def test_alike_is_one_fingerprint_and_otherwise_another() -> None:
    assert fingerprint(TRACE) == fingerprint(TRACE.replace(b"1200", b"7").replace(b"ab12", b"ff00").replace(b"epoch 3", b"epoch 9"))
    assert fingerprint(TRACE) != fingerprint(TRACE.replace(b"ValueError", b"KeyError"))
    assert fingerprint(TRACE) != fingerprint(TRACE, code=2)
    assert fingerprint(b"", code=None, signal=9, reason="signal") != fingerprint(b"", code=None, signal=11, reason="signal")


def test_a_limit_is_a_cause_whatever_the_program_was_saying() -> None:
    assert fingerprint(TRACE, reason="budget_exceeded") == fingerprint(b"error: other\n", code=0, reason="budget_exceeded")


def test_the_title_says_it_in_words() -> None:
    lines = error_lines(TRACE)
    assert cause_of(reason_code="exit_code", exit_code=1, exit_signal=None, words="", lines=lines).title == (
        "ValueError: loss is nan at step … (exit code 1)"
    )
    silent = cause_of(reason_code="wall_limit", exit_code=None, exit_signal=None, words="The wall limit was reached.", lines=())
    assert silent.title == "The wall limit was reached."
    long = cause_of(reason_code="exit_code", exit_code=1, exit_signal=None, words="", lines=("error " + "x" * 399,))
    assert len(long.title) < 230
