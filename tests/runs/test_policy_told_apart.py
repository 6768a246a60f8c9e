"""What a version would have changed says which configurations it would have launched instead."""

import json
import re
from typing import Any

import pytest

from runs.commands.decision import decide_now
from runs.policy.told_apart import LONGEST, MOST, told_apart
from tests.factories_pages import HOSTILE, client_of
from tests.factories_runs import make_laboratory
from tests.runs.test_policy import DOCUMENT, approved


def test_what_differs_stands_first_and_survives_every_cut() -> None:
    many = {f"a{number:02}": "x" * 90 for number in range(30)}
    same, old, new = ({**many, "rate": rate} for rate in (0.1, 0.4, 0.7))
    then, now = told_apart([same, old], [same, new])
    assert [words.partition(",")[0] for words in (*then, *now)] == ["rate: 0.4", "rate: 0.1", "rate: 0.7", "rate: 0.1"]
    assert max(map(len, (*then, *now))) <= LONGEST
    then, now = told_apart([], [{"rate": number, "deep": {"on": True}, "kind": None} for number in range(MOST + 1_001)])
    assert (then, now[0], now[-1], len(now)) == ([], 'rate: 0, deep: {"on": true}, kind: null', "and 1,001 more", MOST + 1)
    assert told_apart([same, old], [same, old]) == ([], [])
    assert told_apart([{"rate": 1}, {"rate": 2}], [{"rate": 2}, {"rate": 1}]) == (["rate: 1", "rate: 2"], ["rate: 2", "rate: 1"]), (
        "the order"
    )


@pytest.mark.django_db(transaction=True)
def test_both_columns_name_what_they_would_launch_and_its_words_stay_words() -> None:
    laboratory = make_laboratory(weekly_gpu_hours=1000)

    def choosing(*rates: float) -> dict[str, Any]:
        choose = DOCUMENT["action"]["choose"] | {"axes": {"rate": list(rates), HOSTILE: [HOSTILE]}, "first": len(rates)}
        return DOCUMENT | {"action": DOCUMENT["action"] | {"choose": choose}}

    with laboratory.opened():
        decide_now(actor=laboratory.owner, policy=approved(laboratory, choosing(0.1, 0.4)))
    client, place = client_of(laboratory.owner), "/workspaces/lab/policies/next-sweep/"
    document = {"document": json.dumps(choosing(0.1, 0.7))}
    seen = client.post(f"{place}propose/", document | {"check": "1"}).content.decode()
    assert client.post(f"{place}propose/", document | {"reason": "Faster"}).status_code == 303
    for page in (seen, client.get(f"{place}versions/2/").content.decode()):
        columns = re.findall(r'<ul class="chosen small" aria-label="Launches">(.*?)</ul>', page)
        first = [re.findall(r"<li><bdi>(rate: [\d.]+)", column) for column in columns]
        assert first == [["rate: 0.4", "rate: 0.1"], ["rate: 0.7", "rate: 0.1"]]
        assert HOSTILE not in page
        assert "<script>alert" not in page
