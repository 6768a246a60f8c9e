"""What a run printed is shown as text that hides nothing and imitates nothing."""

from hypothesis import given
from hypothesis import strategies as st

from runs.terminal import LONGEST, lines_of


def text(line: bytes) -> str:
    return "".join(span.text for span in lines_of(line)[0].spans)


def test_lines_are_numbered_from_where_they_stand() -> None:
    assert [line.number for line in lines_of(b"a\nb\n\nc\n", first=120)] == [120, 121, 122, 123]


def test_colours_become_styles_and_other_sequences_vanish() -> None:
    (line,) = lines_of(b"\x1b[32mok\x1b[0m \x1b[1;31mno\x1b[2K\x1b]0;title\x07\x1b[m.")
    assert [(span.text, span.style) for span in line.spans] == [("ok", "ansi-green"), (" ", ""), ("no", "ansi-red ansi-bold"), (".", "")]


def test_binary_and_direction_marks_are_visible() -> None:
    assert text(b"\x00\x07\xff") == "\u2400\u2407\ufffd"
    assert text("ab\u202ecd".encode()) == "ab⟨U+202E⟩cd"


def test_a_progress_bar_shows_its_last_state() -> None:
    assert text(b" 1 %\r 2 %\r 3 %\r\n") == " 3 %"


def test_a_very_long_line_is_cut_and_says_by_how_much() -> None:
    (line,) = lines_of(b"x" * (LONGEST + 7))
    assert len(line.spans[0].text) == LONGEST
    assert line.cut == 7


@given(st.binary(max_size=400))
def test_whatever_is_printed_leaves_no_control_character(printed: bytes) -> None:
    shown = "".join(span.text for line in lines_of(printed) for span in line.spans)
    assert not [character for character in shown if (ord(character) < 32 and character != "\t") or 0x7F <= ord(character) < 0xA0]
