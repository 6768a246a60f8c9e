"""The editor of policies: a form and the document, either filling the other, each fault beside its field, and nothing lost or written on the way."""

import json
import re
from typing import Any

import pytest

from runs.commands.policy import create_policy
from runs.forms.policy_editor import BOTH, Editor, edited, opened
from runs.models import PolicyVersion
from runs.policy.checks import CHECKS
from runs.policy.document import LIMITS, TRIGGERS
from runs.policy.form import Field, Group, Unshown, draw
from runs.policy.form_read import read_form
from runs.policy.starters import STARTERS
from tests.factories_pages import HOSTILE, client_of
from tests.factories_runs import make_laboratory
from workspaces.models import AuditEvent, Benchmark

Document = dict[str, Any]
STRANGE: Document = {
    "trigger": {"on": "no_such", "dots.in.it": [1, {"a": None}], "agent": "worker"},
    "conditions": [
        {"check": "nothing_under_way", "at_most": 2.5},
        {"check": "gone", "x": True},
        {"check": "cel", "expression": "a\nb < c"},
    ],
    "gate": [{"check": "licence", "allowed": ["mit", HOSTILE]}, {"check": "calibrated_disagreement_gain", "bins": 15, "ece_at_most": 0.05}],
    "action": {
        "do": "launch_sweep",
        "agent": HOSTILE,
        "benchmark": "accuracy",
        "parameters": {"depth": {"of": [1, 2]}},
        "seeds": [1, 2],
        "inputs": [{"dataset": "table"}, {"promoted": "champion", "required": False}, {"windows_of": "games", "newest": 3}],
        "choose": {"rule": "ucb1", "axes": {"rate": [0.1, 1e-5]}, "arms": 2},
    },
    "limits": {"gpu_hours": 0.5, "decisions": 3, "tomorrow": "x"},
}


def sent(document: Document) -> dict[str, str]:
    """What a browser sends of the form of a document, with what was drawn."""
    editor = opened(document, lambda _: [])
    fields = [(one.name, one.value) for group in groups(editor) for one in group.all]
    was = {f"{group.path}.:was": group.was for group in groups(editor) if group.head}
    return {**dict(fields), **was, "document": editor.text, "drawn": editor.drawn, "drawn_text": editor.drawn_text}


def groups(editor: Editor) -> list[Group]:
    return [group for part in editor.parts for group in part.groups]


def one(editor: Editor, name: str) -> Field:
    return next(field for group in groups(editor) for field in group.all if field.name == name)


def look(given: dict[str, str]) -> Editor:
    return edited(given, lambda _: [])


@pytest.mark.parametrize("document", [*STARTERS.values(), STRANGE], ids=[*STARTERS, "strange"])
def test_a_form_says_the_document_that_it_was_drawn_from(document: Document) -> None:
    assert read_form(sent(document)) == document


def test_every_trigger_check_and_limit_of_the_catalogue_is_drawn_by_its_line_alone() -> None:
    document = {
        "trigger": {"on": "manual"},
        "action": {"do": "notify", "words": "x"},
        "gate": [{"check": name} for name in list(CHECKS)[:20]],
    }
    parts = {part.name: part for part in draw(document)}
    assert parts["trigger"].groups[0].head is not None
    assert [value for value, _ in parts["trigger"].groups[0].head.choices] == list(TRIGGERS)
    for group, check in zip(parts["gate"].groups, CHECKS.values(), strict=False):
        assert [field.key for field in group.fields] == list(check.parameters)
        assert {field.key for field in group.fields if field.faults} == set(check.needs), "what must be given is missed beside its field"
    assert [field.key for field in parts["limits"].groups[0].fields] == list(LIMITS)


def test_what_is_wrong_stands_beside_its_field_and_other_parts_stay_as_they_are() -> None:
    given = sent(STARTERS["next-sweep"])
    given |= {
        "limits.decisions": "many",
        "conditions.2.gpu_hours": "-1",
        "choose.least": "100",
        "trigger.agent": "",
        "choose.axes": '{"rate":',
    }
    editor = look(given)
    assert one(editor, "limits.decisions").faults == ['"many" is not a whole number.']
    assert one(editor, "conditions.2.gpu_hours").faults == ["-1 is not above 0."]
    assert one(editor, "choose.axes").faults == ['"{\\"rate\\":" is not an object.']
    assert one(editor, "choose.axes").value == '{"rate":', "what was typed stays"
    assert one(editor, "limits.failures").faults == []
    assert not editor.is_redrawn, "no control is replaced while somebody types"
    assert json.loads(editor.text)["limits"]["decisions"] == "many"
    assert "agent" not in json.loads(editor.text)["trigger"], "an empty field is not named"


def test_what_a_group_is_decides_what_it_takes() -> None:
    given = sent(STARTERS["next-sweep"]) | {"conditions.2.:head": "results_at_least", "action.:head": "launch_run"}
    editor = look(given)
    document = json.loads(editor.text)
    assert document["conditions"][2] == {"check": "results_at_least"}, "what the check before took is gone"
    assert one(editor, "conditions.2.count").faults == ["It is missing."]
    assert document["action"] == {"do": "launch_run", "agent": "worker", "benchmark": "accuracy", "inputs": [{"dataset": "table"}]}
    assert editor.is_redrawn


def test_rows_are_added_and_taken_out_without_a_script() -> None:
    given = sent(STARTERS["next-sweep"])
    added = look(given | {"add": "gate"})
    assert json.loads(added.text)["gate"] == [{"check": ""}]
    assert added.focus == "e-gate-0-head"
    removed = look(given | {"remove": "conditions.0"})
    assert [row["check"] for row in json.loads(removed.text)["conditions"]] == ["target_not_reached", "budget_left"]
    assert "inputs" not in json.loads(look(given | {"remove": "input.0"}).text)["action"]
    for hostile in ("conditions.99", "trigger", "input.-1", HOSTILE, "conditions.0.check"):
        assert json.loads(look(given | {"remove": hostile, "add": ""}).text) == STARTERS["next-sweep"]
    full = {"trigger": {"on": "manual"}, "action": {"do": "notify", "words": "x"}, "gate": [{"check": "target_not_reached"}] * 20}
    assert len(json.loads(look(sent(full) | {"add": "gate"}).text)["gate"]) == 20


def test_answers_are_rows_each_with_its_own_fault() -> None:
    """A choice of a question is typed as it is answered; nobody writes JSON for it."""
    ask: Document = {"trigger": {"on": "manual"}, "action": {"do": "ask", "question": "Again?"}}
    assert [part.name for part in draw(ask)] == ["trigger", "conditions", "gate", "action", "choices", "limits"]
    added = look(sent(ask) | {"add": "choices"})
    assert json.loads(added.text)["action"]["choices"] == ["", ""], "one answer alone is no choice"
    assert (added.focus, added.is_redrawn) == ("e-choices-1-text", True)
    given = sent(json.loads(added.text)) | {"choices.0.:text": "train", "choices.1.:text": HOSTILE}
    typed = look(given)
    assert json.loads(typed.text)["action"]["choices"] == ["train", HOSTILE]
    assert (one(typed, "choices.1.:text").value, typed.is_redrawn) == (HOSTILE, False)
    faulty = look(given | {"choices.0.:text": "two  spaces", "choices.1.:text": ""})
    assert one(faulty, "choices.1.:text").faults, "an answer that is none is said beside it"
    spaced = look(given | {"choices.0.:text": " train"})
    assert "one line of words" in one(spaced, "choices.0.:text").faults[0]
    long = look(given | {"choices.0.:text": HOSTILE + "é" * 100})
    assert "more than 100 characters" in one(long, "choices.0.:text").faults[0], "beside it, though the sentence cuts it short"
    twice = look(given | {"choices.1.:text": "train"})
    [told] = [part.faults for part in twice.parts if part.name == "choices"]
    assert told, "that two are the same is said where the answers stand"
    left = look(given | {"remove": "choices.0"})
    assert json.loads(left.text)["action"]["choices"] == [HOSTILE]
    assert "choices" not in json.loads(look(sent(json.loads(left.text)) | {"remove": "choices.0"}).text)["action"]
    full = {"trigger": {"on": "manual"}, "action": {"do": "ask", "question": "x", "choices": [str(place) for place in range(10)]}}
    assert len(json.loads(look(sent(full) | {"add": "choices"}).text)["action"]["choices"]) == 10
    assert json.loads(look(sent(STARTERS["next-sweep"]) | {"add": "choices"}).text) == STARTERS["next-sweep"]
    assert "choices" not in json.loads(look(given | {"action.:head": "notify"}).text)["action"]


@pytest.mark.parametrize("choices", ["yes", [], [1, 2], ["a\nb", "c"], {"a": 1}, ["x"] * 21])
def test_answers_that_no_row_can_hold_stay_as_they_are(choices: Any) -> None:
    document: Document = {"trigger": {"on": "manual"}, "action": {"do": "ask", "question": "Again?", "choices": choices}}
    editor = opened(document, lambda _: [])
    assert read_form(sent(document)) == document
    assert one(editor, "action.choices").faults or editor.faults or choices == ["a\nb", "c"]


def test_the_side_that_was_changed_holds_and_where_both_were_a_person_says_which() -> None:
    given = sent(STARTERS["next-sweep"])
    other = json.dumps(STARTERS["tell-when-reached"])
    from_text = look(given | {"document": other})
    assert from_text.text == other
    assert one(from_text, "action.words").value == "A score of 0.9 was reached."
    from_form = look(given | {"limits.decisions": "7"})
    assert json.loads(from_form.text)["limits"]["decisions"] == 7
    both = given | {"document": other, "limits.decisions": "7"}
    conflict = look(both)
    assert conflict.is_conflict
    assert conflict.faults[0] == BOTH
    assert (conflict.text, one(conflict, "limits.decisions").value) == (other, "7"), "neither side is lost"
    assert json.loads(look(both | {"fill": "form"}).text)["limits"]["decisions"] == 7
    assert look(both | {"fill": "document"}).text == other
    untouched = look(given)
    assert untouched.text == given["document"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"trigger": []}', '{"gate": {}}', '{"else": 1}', '{"action": {"do": 5}}', "[" * 90_000, '{"trigger": {":was": 1}}',
     '{"trigger": {"on": "manual"}, "limits": {"decisions": 1e999}}', '{"trigger": {"on": "\\u0000\\ud800"}, "action": {}}'],
)  # fmt: skip
def test_a_document_that_is_no_policy_breaks_nothing_and_is_not_lost(text: str) -> None:
    editor = look(sent(STARTERS["next-sweep"]) | {"document": text})
    assert editor.text == text
    assert editor.faults or editor.unshown or any(field.faults for group in groups(editor) for field in group.all)


def test_a_list_that_is_too_long_is_not_drawn() -> None:
    with pytest.raises(Unshown, match="at most 20"):
        draw({"conditions": [{"check": "x"}] * 21})


@pytest.mark.django_db(transaction=True)
def test_the_page_looks_while_one_types_and_proposes_what_the_form_says() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        benchmark = Benchmark.objects.get()
        create_policy(actor=laboratory.owner, slug="told", name="told", benchmark=benchmark.slug)
        events = AuditEvent.objects.count()
    client, path = client_of(laboratory.owner), "/workspaces/lab/policies/told/propose/"
    page = client.get(f"{path}?from=tell-when-reached").content.decode()
    given = {
        "drawn": re.search(r'name="drawn" value="(\w+)"', page)[1],  # type: ignore[index]
        "drawn_text": re.search(r'name="drawn_text" value="(\w+)"', page)[1],  # type: ignore[index]
        **{key: value for key, value in sent(STARTERS["tell-when-reached"]).items() if not key.startswith("drawn")},
    }
    hostile = given | {
        name: f"<script>{HOSTILE}" for name in given if name.partition(".")[0] in ("trigger", "conditions", "action", "limits")
    }
    for extra in ({}, {"add": HOSTILE}, {"remove": HOSTILE}, {"fill": HOSTILE}, {"check": "1"}):
        for fragment in ({}, {"HX-Request": "true"}):
            told = client.post(path, hostile | {"reason": HOSTILE} | extra, headers=fragment)
            assert told.status_code in (200, 422)
            assert "<script>x" not in told.content.decode()
            assert f"<script>{HOSTILE}" not in told.content.decode()
    looked = client.post(path, given | {"trigger.benchmark": "gone", "reason": "why"}, headers={"HX-Request": "true"}).content.decode()
    assert "no benchmark &#x27;gone&#x27; in this workspace" in looked
    assert "<html" not in looked
    with laboratory.opened():
        assert (PolicyVersion.objects.count(), AuditEvent.objects.count()) == (0, events), "a look writes nothing"
    seen = client.post(path, given | {"limits.decisions": "2", "check": "1"}).content.decode()
    assert "Nothing was decided in the last 4 weeks" in seen
    assert client.post(path, given | {"limits.decisions": "2", "reason": "Tell us"}).status_code == 303
    with laboratory.opened():
        assert PolicyVersion.objects.get().document["limits"] == {"decisions": 2}, "the form was changed, so the form holds"
