"""What a policy does, in one line, for every trigger and every action that a document may name."""

import pytest

from runs.policy.brief import THEN, WHEN, in_brief
from runs.policy.document import ACTIONS, TRIGGERS
from runs.policy.starters import STARTERS


def test_every_trigger_and_every_action_has_words() -> None:
    assert set(WHEN) == set(TRIGGERS)
    assert set(THEN) == set(ACTIONS)


@pytest.mark.parametrize("starter", sorted(STARTERS))
def test_what_the_editor_offers_is_told_in_one_line(starter: str) -> None:
    assert " → " in in_brief(STARTERS[starter])


def test_the_line_names_what_the_document_names() -> None:
    document = {
        "trigger": {"on": "schedule", "every": "week", "weekday": "monday", "at": "09:30"},
        "action": {"do": "write_memory", "kind": "failed_attempt", "collection": "failed-search-configs", "title": "What failed"},
        "limits": {"cooldown_minutes": 60},
    }
    assert in_brief(document) == "every week on Monday at 09:30 → writes a failed attempt to failed-search-configs"


def test_what_is_no_document_has_no_line() -> None:
    assert in_brief({"trigger": {"on": "full moon"}}) == ""
