"""Lines that a run wrote and that were not taken in: its page and the API count them, with their numbers and reasons."""

import pytest

from runs.models import Run
from tests.factories_pages import add_attempt, client_of, see
from tests.factories_runs import Laboratory, launch, make_laboratory

pytestmark = pytest.mark.django_db
TOO_LONG = "more than 128 MB; what follows was not taken in"


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory()


@pytest.fixture
def run(laboratory: Laboratory) -> Run:
    """With two attempts, of which the second has written lines that are none."""
    with laboratory.opened():
        run = launch(laboratory)
        see(add_attempt(actor=laboratory.owner, run=run, status="lost"))
        bad = [
            {"file": "metrics", "number": 7, "reason": "key is not <b>text</b>"},
            {"file": "metrics", "number": None, "reason": TOO_LONG},
            {"file": "events", "number": 3, "reason": "not JSON"},
        ]
        see(add_attempt(actor=laboratory.owner, run=run, number=2), metrics_bad=1, events_bad=41, bad_lines=bad)
        return run


@pytest.mark.parametrize("tab", ["overview", "metrics", "files"])
def test_the_page_counts_them_and_names_the_first(laboratory: Laboratory, run: Run, tab: str) -> None:
    page = client_of(laboratory.owner).get(f"/workspaces/lab/runs/{run.public_id}/?tab={tab}").content.decode()
    assert "42 lines could not be read and were left out" in page
    assert "metrics.jsonl of attempt 2: 1 line<" in page
    assert '<span class="badge">line 7</span> <bdi>key is not &lt;b&gt;text&lt;/b&gt;</bdi>' in page
    assert f"<li><span><bdi>{TOO_LONG}</bdi></span></li>" in page
    assert "events.jsonl of attempt 2: 41 lines" in page


def test_the_api_says_them_too(laboratory: Laboratory, run: Run) -> None:
    answer = client_of(laboratory.owner).get(f"/api/v1/workspaces/lab/runs/{run.public_id}").json()
    first = [{"number": 7, "reason": "key is not <b>text</b>"}, {"number": None, "reason": TOO_LONG}]
    assert answer["bad_lines"] == [
        {"attempt": 2, "name": "metrics.jsonl", "count": 1, "first": first},
        {"attempt": 2, "name": "events.jsonl", "count": 41, "first": [{"number": 3, "reason": "not JSON"}]},
    ]


def test_nothing_is_said_where_every_line_was_taken_in(laboratory: Laboratory) -> None:
    with laboratory.opened():
        run = launch(laboratory)
        see(add_attempt(actor=laboratory.owner, run=run))
    client = client_of(laboratory.owner)
    assert "left out" not in client.get(f"/workspaces/lab/runs/{run.public_id}/").content.decode()
    assert client.get(f"/api/v1/workspaces/lab/runs/{run.public_id}").json()["bad_lines"] == []
