"""Since when the reader has not looked: kept in their browser, never moved by what only follows, and never trusted."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import make_member
from tests.factories_pages import client_of, score_runs
from tests.factories_runs import Laboratory, launch, make_laboratory

HOME = "/workspaces/lab/"
DAY_AGO, VISIT = "compared with 24 hours ago", "since your last visit"
START = datetime.now(UTC).replace(microsecond=0)
BEGIN = int(START.timestamp())

At = Callable[[float], None]


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    made = make_laboratory()
    with made.opened():
        score_runs(actor=made.owner, scores={launch(made): (0.5, None)})
    return made


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> At:
    """Sets the clock to so many minutes after the start."""

    def turn(minutes: float) -> None:
        moment = START + timedelta(minutes=minutes)
        monkeypatch.setattr(timezone, "now", lambda: moment)

    return turn


def look(client: Client) -> str:
    answer = client.get(HOME)
    assert answer.status_code == 200
    return answer.content.decode()


def visits(client: Client) -> tuple[int | None, int]:
    """Minutes from the start of the visit before and of this one, as the browser keeps them; None: no visit before is known."""
    _, previous, latest = client.cookies["visits"].value.split("-")
    return (int(previous) - BEGIN) // 60 if int(previous) else None, (int(latest) - BEGIN) // 60


def test_a_visit_begins_after_half_an_hour_without_the_page(laboratory: Laboratory, at: At) -> None:
    client = client_of(laboratory.owner)
    at(0)
    assert DAY_AGO in look(client)
    at(29)
    assert DAY_AGO in look(client)
    assert visits(client) == (None, 29), "still the first visit"
    at(60)
    assert VISIT in look(client)
    assert visits(client) == (29, 60)
    for minutes in (80, 100, 120):
        at(minutes)
        look(client)
    assert visits(client) == (29, 120), "a visit goes on while the page is looked at"


def test_what_only_follows_the_page_moves_nothing(laboratory: Laboratory, at: At) -> None:
    client = client_of(laboratory.owner)
    at(0)
    look(client)
    for minutes in (20, 45):
        at(minutes)
        for answer in (client.get(HOME, {"part": "live"}), client.head(HOME)):
            assert answer.status_code == 200
            assert "visits" not in answer.cookies
    look(client)
    assert visits(client) == (0, 45)


def test_the_cookie_is_of_this_page_and_of_no_script(laboratory: Laboratory, settings: Any) -> None:
    settings.SESSION_COOKIE_SECURE = True
    client = client_of(laboratory.owner)
    look(client)
    cookie = client.cookies["visits"]
    assert (cookie["path"], cookie["httponly"], cookie["secure"], cookie["samesite"]) == (HOME, True, True, "Lax")


GARBAGE = [
    "",
    "x",
    "0-0",
    "-1-2",
    "{reader}-5",
    "{reader}-12-11",  # the visit before after this one
    "{reader}-0-9999999999",  # ahead of time
    "{reader}-99999999999-99999999999",
    "{reader}-0-1;drop",
    "000000000000-{two_hours_ago}-{hour_ago}",  # of somebody else
    "{reader}-1-{hour_ago}",  # longer ago than a cookie is kept
    "a" * 3000,
]


@pytest.mark.parametrize("value", GARBAGE)
def test_what_is_no_sound_note_counts_as_none(laboratory: Laboratory, at: At, value: str) -> None:
    client = client_of(laboratory.owner)
    assert laboratory.owner.user is not None
    client.cookies["visits"] = value.format(reader=laboratory.owner.user.pk.hex[-12:], hour_ago=BEGIN - 3600, two_hours_ago=BEGIN - 7200)
    at(0)
    assert DAY_AGO in look(client)
    assert visits(client) == (None, 0)


def test_two_people_at_one_browser_have_visits_of_their_own(laboratory: Laboratory, at: At) -> None:
    client, other = client_of(laboratory.owner), client_of(make_member(laboratory.workspace, "viewer", "ada"))
    at(0)
    look(client)
    other.cookies["visits"] = client.cookies["visits"].value
    at(60)
    assert DAY_AGO in look(other)
    assert VISIT in look(client)


def test_by_another_address_nothing_is_noted(laboratory: Laboratory) -> None:
    answer = client_of(laboratory.owner).get(f"/workspaces/{laboratory.workspace.pk.hex}/")
    assert answer.status_code == 200
    assert "visits" not in answer.cookies
