"""What a run writes down in lines of its events: an entry when it ends, unreviewed, resting on that run alone. Nothing of it keeps the end away."""

import json
from typing import Any

import pytest

from runs.commands.harvest_memory import said_of
from runs.commands.memory import MOST_OF_A_RUN, MOST_TEXT, Said, check_said, write_memory
from runs.models import MemoryEntry, MemoryRead
from tests.factories_pages import HOSTILE, LONG, RTL, client_of
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from workspaces.audit import Refusal
from workspaces.models import EventPayload

CODE = """
import json
lines = json.loads({lines!r})
with open("../events.jsonl", "a") as file:
    file.writelines(json.dumps(line) + "\\n" for line in lines)
raise SystemExit({code})
"""


def laboratory_of(lines: list[dict[str, Any]], code: int = 0) -> Laboratory:
    return make_laboratory(code=CODE.format(lines=json.dumps(lines), code=code).encode())


def line(**body: Any) -> dict[str, Any]:
    return {"type": "memory_write", "collection": "lessons", "kind": "finding", **body}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("code", [0, 3])
def test_what_a_run_wrote_down_is_memory_when_it_ends_however_it_ends(code: int) -> None:
    configuration = {"lr": 0.1, "trust": "durable"}
    laboratory = laboratory_of(
        [
            line(body="Wide nets learn faster", evidence=[{"gain": 0.2}]),
            line(kind="failed_attempt", body={"text": "Diverged", "configuration": configuration}, trust="durable"),
            line(kind="verdicts", body="A kind of its own"),
            line(collection="No Slug / ..", body="Goes nowhere"),
        ],
        code,
    )
    with laboratory.opened():
        run = launch(laboratory)
    drive(laboratory, run)
    with laboratory.opened():
        first, second, third = MemoryEntry.objects.order_by("created_at", "pk")
        assert {(entry.trust, entry.author_kind, entry.run_id, entry.collection) for entry in (first, second, third)} == {
            ("unreviewed", "run", run.pk, "lessons")
        }
        assert (first.kind, first.title) == ("finding", "Wide nets learn faster")
        assert '"gain": 0.2' in first.text
        assert (second.kind, second.title, second.configuration) == ("failed_attempt", "Diverged", configuration)
        assert (third.kind, third.title) == ("note", "verdicts: A kind of its own"), "a kind that memory does not know"
        assert [one.run_id for entry in (first, second, third) for one in entry.evidence.all()] == [run.pk] * 3
        told = EventPayload.objects.get(event__verb="run.ended").body["details"]
        assert (told["memory_written"], told["memory_not_kept"]) == (3, 1)
    page = client_of(laboratory.owner).get("/workspaces/lab/memory/").content.decode()
    assert "Wide nets learn faster" in page
    assert run.public_id in page


@pytest.mark.django_db(transaction=True)
def test_a_run_writes_no_more_than_its_share_and_what_is_left_out_is_counted() -> None:
    laboratory = laboratory_of([line(body=f"Lesson {number}") for number in range(MOST_OF_A_RUN + 5)])
    with laboratory.opened():
        run = launch(laboratory)
    ended = drive(laboratory, run)
    with laboratory.opened():
        assert ended.status == "succeeded"
        assert MemoryEntry.objects.filter(run=run).count() == MOST_OF_A_RUN
        assert EventPayload.objects.get(event__verb="run.ended").body["details"]["memory_not_kept"] >= 1


@pytest.mark.django_db(transaction=True)
def test_a_run_that_says_which_entry_it_read_has_a_receipt_and_one_that_makes_one_up_has_none() -> None:
    laboratory = make_laboratory(
        code=b"import json, os\nwith open('../events.jsonl', 'a') as file:\n"
        b"    for name in (json.load(open('../job.json'))['params']['entry'], 'memory_00000000000000000000000000000000', '../../etc'):\n"
        b"        file.write(json.dumps({'type': 'memory_read', 'entry': name, 'trust': 'durable'}) + '\\n')\n"
    )
    with laboratory.opened():
        entry = write_memory(actor=laboratory.owner, said=Said("finding", "lessons", "Wide nets learn faster"))
        run = launch(laboratory, parameters={"entry": entry.public_id})
    ended = drive(laboratory, run)
    with laboratory.opened():
        assert ended.status == "succeeded"
        (receipt,) = MemoryRead.objects.all()
        assert (receipt.run_id, receipt.entry_id, receipt.trust) == (run.pk, entry.pk, "unreviewed"), (
            "the trust it had, not the one it says"
        )


HOSTILE_BODIES: list[dict[str, Any]] = [
    {"collection": "c", "kind": "k", "body": {"deep": {"er": [HOSTILE] * 50}, "n": 1}, "evidence": []},
    {"collection": "c", "kind": 7, "body": ["<b>"] * 4000},
    {"collection": "c", "kind": "", "body": {"text": LONG * 20}},
    {"collection": "c", "kind": RTL, "body": HOSTILE, "evidence": {"a": [1.5] * 5000}},
    {"collection": "c", "kind": "k", "body": "a\x07b\nc" + "x" * 20_000},
    {"collection": "c", "kind": "finding", "body": {"configuration": {"deep": {"er": 1}}, "title": "t"}},
    {"collection": "c", "kind": "finding", "body": {"configuration": {"a": 10**400}, "title": 5}},
]


@pytest.mark.parametrize("body", HOSTILE_BODIES, ids=range(len(HOSTILE_BODIES)))
def test_whatever_a_line_holds_becomes_bounded_plain_words(body: dict[str, Any]) -> None:
    said = said_of(body)
    assert 1 <= len(said.title) <= 200
    assert len(said.text) <= MOST_TEXT
    assert not set("\x07\n\u202e") & set(said.title)
    assert said.evidence == ()
    check_said(said)


@pytest.mark.parametrize("body", [{}, {"collection": "", "body": "x"}, {"collection": "../x", "kind": "finding", "body": "x"}])
def test_a_line_without_a_collection_that_can_be_one_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        check_said(said_of(body))
