"""Signing in: by name or address, guarded by counters that never lock the owner out from elsewhere; no open sign-up."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from labsite.logs import without_secrets
from tests.factories import make_user
from tests.factories_runs import make_laboratory
from workspaces.access import Role
from workspaces.commands.member import add_member
from workspaces.models import SiteEvent, User

PASSWORD = "correct horse battery staple"
LOGIN = "/accounts/login/"


@pytest.fixture(autouse=True)
def quick_hashes(settings: Any) -> None:
    """The slow hash is Django's own matter; here it would only cost a minute."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def ada(db: None) -> Iterator[User]:
    cache.clear()
    user = make_user("ada")
    user.email = "ada@example.org"
    user.set_password(PASSWORD)
    user.save()
    yield user
    cache.clear()


def attempt(client: Client, login: str, password: str, address: str = "127.0.0.1") -> int:
    return client.post(LOGIN, {"login": login, "password": password}, REMOTE_ADDR=address).status_code


@pytest.mark.parametrize("login", ["ada", "ada@example.org", "ADA@example.org"])
def test_by_user_name_or_address(ada: User, login: str) -> None:
    client = Client()
    assert attempt(client, login, PASSWORD) == 302
    assert client.get("/workspaces/").status_code == 200
    event = SiteEvent.objects.get(verb="sign_in.done")
    assert (event.actor_id, event.details) == (ada.pk, {"address": "127.0.0.1"})


def test_the_form_says_what_it_wants_and_where_a_forgotten_password_leads_once(ada: User) -> None:
    body = Client().get(LOGIN).content.decode()
    assert "User name or mail</label>" in body
    assert body.count('href="/accounts/password/reset/"') == 1


def test_who_has_one_workspace_lands_on_its_home_and_others_on_the_list(ada: User) -> None:
    def landing() -> str:
        client = Client()
        assert client.post(LOGIN, {"login": "ada", "password": PASSWORD})["Location"] == "/"
        return str(client.get("/")["Location"])

    assert landing() == "/workspaces/"
    for slug, leads_to in (("first", "/workspaces/first/"), ("second", "/workspaces/")):
        laboratory = make_laboratory(slug)
        with laboratory.opened():
            add_member(actor=laboratory.owner, user=ada, role=Role.VIEWER)
        assert landing() == leads_to


def test_guesses_from_elsewhere_do_not_lock_the_owner_out(ada: User) -> None:
    for _ in range(8):
        attempt(Client(), "ada", "wrong", "192.0.2.7")
    assert attempt(Client(), "ada", PASSWORD, "192.0.2.7") == 200
    assert attempt(Client(), "ada", PASSWORD, "192.0.2.8") == 302


def test_guessing_is_slowed_and_leaves_traces_without_what_was_typed(ada: User) -> None:
    answers = [Client().post(LOGIN, {"login": "ada", "password": f"guess-{number}"}, REMOTE_ADDR="192.0.2.9") for number in range(7)]
    assert "Too many" in answers[-1].content.decode()
    events = SiteEvent.objects.filter(verb="sign_in.failed")
    assert 0 < events.count() <= 5
    assert events[0].subject_label == "Ada"
    assert "guess-" not in str(list(SiteEvent.objects.values()))


def test_a_password_typed_as_a_name_is_not_kept(ada: User) -> None:
    attempt(Client(), PASSWORD, "x")
    event = SiteEvent.objects.get(verb="sign_in.failed")
    assert PASSWORD not in str(event.__dict__)


def test_failures_cannot_fill_the_record(ada: User) -> None:
    for number in range(40):
        attempt(Client(), f"nobody{number}", "x", f"192.0.2.{number}")
    assert SiteEvent.objects.filter(verb="sign_in.failed").count() == 30


def test_a_name_that_exists_and_one_that_does_not_get_the_same_answer(ada: User) -> None:
    texts = []
    for login in ("ada", "nobody"):
        text = Client().post(LOGIN, {"login": login, "password": "wrong"}).content.decode().replace(login, "·")
        texts.append([line for line in text.splitlines() if "csrf" not in line])
    assert texts[0] == texts[1]


def test_nobody_signs_up_by_themselves(ada: User) -> None:
    fields = {"username": "eve", "password1": PASSWORD, "password2": PASSWORD, "email": "eve@example.org"}
    for answer in (Client().get("/accounts/signup/"), Client().post("/accounts/signup/", fields)):
        assert b"invitation" in answer.content
    assert not User.objects.filter(username="eve").exists()


def test_deactivated_accounts_and_service_accounts_do_not_sign_in(ada: User) -> None:
    ada.is_active = False
    ada.save()
    client = Client()
    attempt(client, "ada", PASSWORD)
    assert client.get("/workspaces/").status_code == 302
    make_user("bot", kind=User.Kind.SERVICE)
    assert attempt(Client(), "bot", "") == 200


def test_a_new_password_keeps_the_rules_and_ends_other_sessions(ada: User) -> None:
    here, there = Client(), Client()
    here.force_login(ada)
    there.force_login(ada)
    weak = {"oldpassword": PASSWORD, "password1": "short", "password2": "short"}
    assert here.post("/accounts/password/change/", weak).status_code == 200
    strong = {"oldpassword": PASSWORD, "password1": "another good long one", "password2": "another good long one"}
    assert here.post("/accounts/password/change/", strong).status_code == 302
    assert there.get("/workspaces/").status_code == 302


def test_signing_out_is_recorded(ada: User) -> None:
    client = Client()
    client.force_login(ada)
    client.post("/accounts/logout/")
    assert SiteEvent.objects.filter(verb="sign_in.ended", actor_id=ada.pk).count() == 1


def test_links_are_kept_out_of_the_log() -> None:
    secret = "5e" * 32
    line = without_secrets(logging.getLogger(), "warning", {"event": f"Not Found: /workspaces/lab/invitations/0a/{secret}/", "code": 404})
    assert line == {"event": "Not Found: /workspaces/lab/invitations/0a/…/", "code": 404}
    line = without_secrets(logging.getLogger(), "warning", {"request": "GET /accounts/password/reset/key/1-abc-def/"})
    assert "abc" not in str(line)
