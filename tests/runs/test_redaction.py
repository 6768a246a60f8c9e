"""Every spelling of a value is found, across pieces, lines and neighbours, and what is blotted out keeps its length. Without a database."""

import json
import random
import time
from typing import Any

import pytest

from runs.pools.events import Artifact, Note, Unknown
from runs.redaction import Redactor
from tests.factories_secrets import CANARY, PLAIN, SPELLINGS, traces
from workspaces.secret_value import MOST_LINES

KEY = """-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
QyNTUxOQAAACDXy1qz9iVvJq0x6cM2jQeTb5Xw3lN8aR4sKpYhUtGf1AAAAJgQ8m2cEPJt
-----END OPENSSH PRIVATE KEY-----
"""
VALUES = [
    CANARY,
    PLAIN,
    KEY,
    "aaaaaaaa",
    "пароль-семь",
    "two\nlines of it\tand more",
    "quote\"d'both",
    "S3cr&t/Val+ue=\"x'y%z_ABC",
    "P@ss(word)!2026*x",
]


def spellings(value: str) -> list[str]:
    found: dict[str, Any] = {}
    exec(SPELLINGS, found)  # noqa: S102  # our own text, as the program of a run has it
    return list(found["spellings"](value))


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("width", [0, 7, 76])
def test_every_spelling_is_blotted_out(value: str, width: int) -> None:
    redactor = Redactor({"HF_TOKEN": value})
    for spelled in spellings(value):
        told = "\r\n".join(spelled[place : place + width] for place in range(0, len(spelled), width)) if width else spelled
        before = f"before {told} after\nnext line\n".encode()
        after = redactor.blot_out(before)
        assert len(after) == len(before)
        assert [place for place, byte in enumerate(after) if byte in b"\r\n"] == [
            place for place, byte in enumerate(before) if byte in b"\r\n"
        ]
        flat = after.translate(None, b"\r\n")
        assert not [trace for trace in traces(value) if trace.translate(None, b"\r\n") in flat], spelled
        assert flat.startswith(b"before ") and flat.endswith(b" afternext line")
        after.decode()


@pytest.mark.parametrize(
    ("value", "spelled"),  # as the programs named print them, character by character
    [
        ("a&b<c>d'e\"f/g", r"a\u0026b\u003cc\u003ed'e\"f/g"),  # Go: json.Marshal
        ("a&b<c>d'e\"f/g", r"a\u0026b\u003Cc\u003Ed'e\"f/g"),  # Django: json_script
        ("ä&ö<ü>\u2028long", r"ä\u0026ö\u003cü\u003e\u2028long"),  # Go
        ("a&b<c>d'e\"f/g", "a&amp;b&lt;c&gt;d&#39;e&#34;f/g"),  # Jinja; Go: html.EscapeString
        ("a&b+c>d'e\"f/g", "a&amp;b&#43;c&gt;d&#39;e&#34;f/g"),  # Go: html/template
        ("P@ss(word)!2026*x", "P%40ss(word)!2026*x"),  # JavaScript: encodeURIComponent
        ("ü/k?a=b&c'd <e>#f", "%C3%BC%2Fk%3Fa%3Db%26c'd%20%3Ce%3E%23f"),  # encodeURIComponent
        ("ü/k?a=b&c'd <e>#f", "%C3%BC/k?a=b&c'd%20%3Ce%3E#f"),  # encodeURI
        ("пароль 7'x", r"\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb\xd1\x8c 7'x"),  # repr(bytes)
        ("пароль 7'x", r"\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb\xd1\x8c 7\'x"),  # repr(bytes) of more, with both quotes in it
        ("tab\there'n \\", r"tab\there\'n \\"),  # repr(str) of more
    ],
)
def test_spellings_of_other_languages(value: str, spelled: str) -> None:
    assert Redactor({"A": value}).blot_text(f"<{spelled}>") == "<" + "[secret A]".ljust(len(spelled), "*") + ">"


def test_a_value_of_as_many_lines_as_may_be_takes_a_bounded_search() -> None:
    drawn = random.Random(2)  # noqa: S311  # a test's draw
    lines = ["".join(drawn.choices("abcdefgh&<>'\"+/é!", k=500)) for _ in range(MOST_LINES)]
    redactor = Redactor({"MANY": "\n".join(lines)})
    began = time.monotonic()
    log = b"step 12 loss 0.123456 accuracy 0.93\n" * 3_000
    assert redactor.blot_out(log + lines[-1].encode()).startswith(log)
    assert redactor.blot_out(log + lines[-1].encode()).endswith(b"*")
    assert redactor.withheld(log) == 0
    assert time.monotonic() - began < 3


def test_what_stands_there_instead() -> None:
    redactor = Redactor({"HF_TOKEN": PLAIN, "B": "12345678"})
    assert redactor.blot_text(f"a {PLAIN}.") == "a [secret HF_TOKEN]**."
    assert redactor.blot_text("a 12345678.") == "a [secret]."
    assert redactor.blot_text("nothing of it") == "nothing of it"
    assert redactor.blot_text(f"{PLAIN}12345678") == "[secret HF_TOKEN]**[secret]"


def test_base64_leaves_no_bits_at_its_edges() -> None:
    assert Redactor({"A": "12345678"}).blot_text("x=eHgxMjM0NTY3OHl5;") == "x=eH[secret A]**l5;"  # of `xx12345678yy`


def test_a_line_of_a_key_is_found_by_itself_and_its_frame_is_not() -> None:
    redactor = Redactor({"KEY": KEY})
    second = KEY.splitlines()[2]
    assert second not in redactor.blot_text(f"only {second}")
    assert redactor.blot_text("-----BEGIN OPENSSH PRIVATE KEY-----") == "-----BEGIN OPENSSH PRIVATE KEY-----"


def test_json_events_and_keys() -> None:
    redactor = Redactor({"A": PLAIN})
    assert redactor.blot_fields(Note(f"say {PLAIN}")) == Note("say [secret A]" + "*" * (len(PLAIN) - 10))
    unknown = redactor.blot_fields(Unknown(PLAIN, {"deep": [{PLAIN: (PLAIN, 1, None, True)}]}))
    hidden = "[secret A]" + "*" * (len(PLAIN) - 10)
    assert unknown == Unknown(hidden, {"deep": [{hidden: [hidden, 1, None, True]}]})
    named = redactor.blot_fields(Artifact(f"a/{PLAIN}", PLAIN, "", {}))
    assert named.path.startswith("a/[secret A]") and named.name.startswith("[secret A]")


def test_lines_that_cannot_tell_are_known() -> None:
    redactor = Redactor({"A": PLAIN})
    assert not redactor.may_be_in(b'{"type": "note", "text": "fine"}')
    assert redactor.may_be_in(f'{{"a": "{PLAIN}"}}'.encode())
    assert redactor.may_be_in(b'{"a": "\\u0068f_"}'), "an escape may hide anything"
    assert not Redactor({}).blot_out(b"").strip() and Redactor({}).blot_out(b"as it is") == b"as it is"


@pytest.mark.parametrize("seed", range(8))
def test_pieces_give_what_the_whole_gives(seed: int) -> None:
    drawn = random.Random(seed)  # noqa: S311  # a test's draw
    redactor = Redactor({"HF_TOKEN": CANARY, "B": PLAIN})
    told = [told.encode() for value in (CANARY, PLAIN) for told in spellings(value)]
    noise = [b"x", b"\n", b"line of a log\n", b"\xff\x00", b"QUJD"]
    whole = b"".join(drawn.choice(told) if drawn.random() < 0.2 else drawn.choice(noise) for _ in range(400))
    pieces, place = [], 0
    while place < len(whole):
        size = drawn.choice([1, 3, 100, 5000])
        pieces.append(whole[place : place + size])
        place += size
    streamed = b"".join(redactor.blot_stream(pieces))
    assert streamed == redactor.blot_out(whole)
    for start in (drawn.randrange(len(whole)) for _ in range(20)):  # as a log is read: a piece with what stands around it
        before, limit = min(start, redactor.overlap), 500
        window = whole[start - before : start + limit + redactor.overlap]
        assert redactor.blot_out(window)[before : before + limit] == streamed[start : start + limit]


def test_the_beginning_of_a_value_waits_for_its_rest() -> None:
    redactor = Redactor({"A": PLAIN})
    for length in range(1, len(PLAIN)):
        grown = f"loss 1\nkey: {PLAIN[:length]}".encode()
        assert grown[: len(grown) - redactor.withheld(grown)] in (b"loss 1\nkey: ", b"loss 1\nkey:")
    assert redactor.withheld(b"loss 1\n") == redactor.withheld(f"{PLAIN}.\n".encode()) == 0
    assert redactor.withheld(f"{PLAIN[:12]}\n".encode()) == 13, "so much of it may go on in the next line"
    assert redactor.withheld(f"{PLAIN[:3]}\n".encode()) == 0, "a last line is not kept back for its last character"


def test_a_large_value_and_a_large_log_take_a_moment() -> None:
    value = "".join(random.Random(1).choices('abcdefgh+/"é', k=60_000))  # noqa: S311  # a test's draw
    redactor = Redactor({"BIG": value})
    began = time.monotonic()
    log = b"step 12 loss 0.123456 accuracy 0.93\n" * 60_000
    assert redactor.blot_out(log + json.dumps(value).encode()).startswith(log)
    assert redactor.withheld(log + value.encode()[:-1]) == len(value.encode()) - 1
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("value", ["паролипароли", "密码密码密码密码", "🔑🗝🔑🗝🔑🗝🔑🗝"])
def test_text_in_which_a_value_stands_backwards_across_characters_stays_text(value: str) -> None:
    backwards = value.encode()[::-1]  # begins and ends within a character of the text around it
    text = f"<{(value[0].encode()[:1] + backwards + value[-1].encode()[1:]).decode()}>"
    blotted = Redactor({"A": value}).blot_text(text)
    assert blotted.startswith("<[secret") and blotted.endswith(">")
    assert len(blotted) == len(text)


def test_what_is_blotted_out_of_text_has_no_more_characters_than_before() -> None:
    assert Redactor({"A": "п" * 200}).blot_text("k" + "п" * 200) == "k" + "[secret A]".ljust(200, "*")
