"""Since when a reader has not looked: this visit to a workspace's home page and the one before it, in a cookie of the reader's browser.

A new visit begins after `PAUSE` without the home page. What is no sound note of this person's visits counts as none.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.http import HttpResponse
from django.urls import reverse

from workspaces.pages import PageRequest

COOKIE = "visits"
PAUSE = timedelta(minutes=30)
WITHOUT = timedelta(hours=24)  # what is compared with where no visit is known
KEPT = timedelta(days=180)
CLOCK = timedelta(minutes=5)  # by which an instant may lie ahead: another server's clock
_FORM = re.compile(r"([0-9a-f]{12})-([0-9]{1,10})-([0-9]{1,10})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Since:
    """`moment` is what changes are counted from: the reader's last visit, or where none is known a day ago."""

    moment: datetime
    is_visit: bool
    previous: int  # seconds since 1970, 0: none
    latest: int


def since_last_visit(request: PageRequest, now: datetime) -> Since:
    """What this request is compared with, and the visits to note in its answer."""
    previous, latest = _noted(request, now)
    at = int(now.timestamp())
    if latest and now - _instant(latest) >= PAUSE:
        previous = latest
    moment = _instant(previous) if previous else now - WITHOUT
    return Since(moment=min(moment, now), is_visit=bool(previous), previous=previous, latest=max(at, latest))


def note_visit(request: PageRequest, response: HttpResponse, since: Since) -> None:
    """Note the visit in the answer, where the page was asked for by its own address."""
    path = reverse("home", args=[request.workspace.slug])
    if request.method != "GET" or request.path != path or request.actor.user is None:
        return
    response.set_cookie(
        COOKIE,
        f"{_reader(request)}-{since.previous}-{since.latest}",
        max_age=KEPT,
        path=path,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _noted(request: PageRequest, now: datetime) -> tuple[int, int]:
    """(the visit before, this visit) as the cookie has them; (0, 0) where it is not there, not sound, of another person or ahead of time."""
    found = _FORM.fullmatch(request.COOKIES.get(COOKIE, ""))
    if found is None or request.actor.user is None or found[1] != _reader(request):
        return 0, 0
    previous, latest = int(found[2]), int(found[3])
    is_sound = previous <= latest and _instant(latest) <= now + CLOCK and (not previous or now - _instant(previous) <= 2 * KEPT)
    return (previous, latest) if is_sound else (0, 0)


def _reader(request: PageRequest) -> str:
    """Enough of the person's id to tell two people at one browser apart."""
    assert request.actor.user is not None
    return request.actor.user.pk.hex[-12:]


def _instant(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
