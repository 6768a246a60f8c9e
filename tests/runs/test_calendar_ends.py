"""What a person may enter that breaks later: instants at the ends of the calendar fall off it on another clock, NUL reaches a look-up."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from runs.commands.artifact import set_keep_until
from runs.models import Artifact
from tests.factories_pages import client_of
from tests.factories_promotions import make_candidate
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.factories_seed import Caller, caller_for
from workspaces.audit import Refusal
from workspaces.models import Benchmark, Objective

pytestmark = pytest.mark.django_db
W = "/workspaces/lab"
API = f"/api/v1{W}"
ENDS = ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "2200-01-01T00:00:00Z")
DAYS = ("9999-12-31", "0001-01-01", "2200-01-01")


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


@pytest.fixture
def artifact(laboratory: Laboratory) -> Artifact:
    with laboratory.opened():
        return make_candidate(laboratory)


@pytest.fixture
def caller(laboratory: Laboratory) -> Caller:
    return caller_for(laboratory, scopes=("artifact:write", "benchmark:write", "budget:write", "workspace:write"))


@pytest.mark.parametrize("end", ENDS)
def test_the_api_takes_no_instant_that_a_clock_cannot_show(laboratory: Laboratory, artifact: Artifact, caller: Caller, end: str) -> None:
    def sent(path: str, body: dict[str, Any]) -> int:
        return int(caller.post(f"{API}/{path}", json.dumps(body)).status_code)

    assert sent(f"artifacts/{artifact.public_id}/keep", {"until": end}) == 422
    for field in ("opens_at", "closes_at"):
        contract = {"metric": "accuracy", "direction": "maximize", field: end}
        assert sent("benchmarks", {"slug": "late", "contract": contract}) == 422
    assert sent("ledger/spend", {"amount_micros": 1, "currency": "EUR", "what": "labels", "spent_at": end}) == 422
    assert sent("objectives", {"statement": "by then", "due_on": end[:10]}) == 422
    assert caller.get(f"{API}/ledger/burn?since={end.replace('+', '%2B')}").status_code == 422
    with laboratory.opened():
        assert not Benchmark.objects.filter(slug="late").exists()


def test_forms_take_no_day_that_a_clock_cannot_show(laboratory: Laboratory, artifact: Artifact) -> None:
    client = client_of(laboratory.owner)
    page = f"{W}/artifacts/{artifact.public_id}/"
    for day in DAYS:
        answer = client.post(f"{page}keep/", {"until": day, "reason": "for good"})
        assert answer.status_code == 422
        assert "1900 to 2199" in answer.content.decode()
        assert client.post(f"{W}/objective/set/", {"statement": "by then", "due_on": day}).status_code == 422
    with laboratory.opened():
        benchmark = Benchmark.objects.get().slug
    for end in ENDS:
        contract = {"metric": "accuracy", "direction": "maximize", "closes_at": end}
        answer = client.post(f"{W}/benchmarks/{benchmark}/contracts/new/", contract)
        assert answer.status_code == 422
        assert "1900 to 2199" in answer.content.decode() or "Write it as" in answer.content.decode()
    with laboratory.opened():
        assert not Objective.objects.filter(statement="by then").exists()


def test_what_is_kept_the_longest_is_shown_on_every_clock(laboratory: Laboratory, artifact: Artifact, caller: Caller) -> None:
    client = client_of(laboratory.owner)
    kept = caller.post(f"{API}/artifacts/{artifact.public_id}/keep", json.dumps({"until": "2199-12-31T23:59:59-12:00"}))
    assert kept.status_code == 422
    kept = caller.post(f"{API}/artifacts/{artifact.public_id}/keep", json.dumps({"until": "2199-12-31T23:59:59Z"}))
    assert kept.status_code == 200
    for path in ("", "keep/"):
        assert client.get(f"{W}/artifacts/{artifact.public_id}/{path}").status_code == 200


def test_a_name_with_nul_is_told_so(laboratory: Laboratory, artifact: Artifact) -> None:
    answer = client_of(laboratory.owner).post(f"{W}/artifacts/{artifact.public_id}/promote/", {"name": "a\0b", "reason": "why"})
    assert answer.status_code == 422


def test_what_was_kept_before_that_rule_is_shown_all_the_same(laboratory: Laboratory, artifact: Artifact) -> None:
    """An installation may hold instants from before 1900 to 2199 was demanded; its pages are drawn on the clock of Berlin, an hour ahead."""
    with laboratory.opened():
        set_keep_until(actor=laboratory.owner, artifact=artifact, until=datetime.max.replace(tzinfo=UTC), reason="before the rule")
    for path in ("", "keep/"):
        assert client_of(laboratory.owner).get(f"{W}/artifacts/{artifact.public_id}/{path}").status_code == 200
    assert client_of(laboratory.owner).get(f"{W}/audit/").status_code == 200


@pytest.mark.parametrize("day", ["9999-12-31", "9999-12-31T23:59:59-12:00"])
def test_a_filter_beyond_the_calendar_says_so(laboratory: Laboratory, day: str) -> None:
    body = client_of(laboratory.owner).get(f"{W}/audit/", {"to": day}).content.decode()
    assert "1900 to 2199" in body


@pytest.mark.parametrize("strange", ["\x1b[2Jclean", "ring\a", "two\u2028lines", "two\nlines"])
def test_a_name_that_no_page_could_show_as_it_stands_is_refused(laboratory: Laboratory, caller: Caller, strange: str) -> None:
    """A run's name goes to terminals and logs, where control characters act."""
    with laboratory.opened(), pytest.raises(Refusal, match=r"U\+[0-9A-F]{4}, which cannot be shown"):
        launch(laboratory, name=strange)
    body = {"slug": "other", "name": strange, "contract": {"metric": "accuracy", "direction": "maximize"}}
    if "\n" not in strange:
        assert caller.post(f"{API}/benchmarks", json.dumps(body)).status_code == 422
    entry = {"kind": "finding", "collection": "notes", "title": strange}
    assert caller_for(laboratory, scopes=("memory:write",)).post(f"{API}/memory", json.dumps(entry)).status_code == 422
    with laboratory.opened():
        assert not Benchmark.objects.filter(slug="other").exists()
