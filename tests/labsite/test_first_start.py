"""The first start makes three people, the engine and the epoch, says the sign-ins once, and never does it again."""

import json
import stat
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client

from labsite.embedded.home import Home
from labsite.management.commands import first_start
from workspaces.models import Engine, Installation, SiteEvent, User


@pytest.fixture(autouse=True)
def quick_hashes(settings: Any) -> None:
    """The slow hash is Django's own matter; here it would only cost a minute."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def environment(db: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any) -> None:
    settings.LABSITE_HOME = tmp_path / "home"
    for name in ("LABSITE_ADMIN_USER", "LABSITE_ADMIN_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


def start() -> tuple[list[dict[str, object]], str]:
    out, errors = StringIO(), StringIO()
    call_command("first_start", "--json", stdout=out, stderr=errors)
    return [json.loads(line) for line in out.getvalue().splitlines()], errors.getvalue()


def test_people_read_a_table_of_who_what_and_what_for() -> None:
    out = StringIO()
    call_command("first_start", stdout=out)
    head, *rows, foot = out.getvalue().splitlines()
    assert head.split() == ["user", "password", "what", "for"]
    assert [row.split()[0] for row in rows] == ["admin", "researcher", "approver"]
    for row, words in zip(rows, ("runs the installation", "launches runs", "decides on requests"), strict=True):
        assert words in row
        assert Client().login(username=row.split()[0], password=row.split()[1])
    assert "once" in foot
    assert not any("{" in line for line in (head, *rows, foot))


def test_the_table_does_not_say_a_password_that_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABSITE_ADMIN_PASSWORD", "a good long password")
    out = StringIO()
    call_command("first_start", stdout=out)
    assert "a good long password" not in out.getvalue()
    assert "the one that you chose" in out.getvalue()


def test_an_empty_installation_gets_people_who_can_sign_in() -> None:
    people, _ = start()
    assert [person["username"] for person in people] == ["admin", "researcher", "approver"]
    for person in people:
        assert Client().login(username=str(person["username"]), password=str(person["password"]))
    assert User.objects.get(username="admin").site_roles == ["create_workspace", "site_operator", "site_auditor"]
    assert User.objects.get(username="researcher").site_roles == []
    assert Engine.objects.get().slug == "local"
    assert SiteEvent.objects.filter(verb="installation.started").count() == 1
    assert str(people[0]["password"]) not in str(list(SiteEvent.objects.values()))


def test_a_start_that_was_ended_before_anybody_saw_the_sign_ins_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(first_start, "sign_in_table", ended)  # the people are made, nothing was said
        with pytest.raises(KeyboardInterrupt):
            call_command("first_start", stdout=StringIO())
    out = StringIO()
    call_command("first_start", stdout=out)
    rows = out.getvalue().splitlines()[1:4]
    assert [row.split()[0] for row in rows] == ["admin", "researcher", "approver"]
    assert all(Client().login(username=row.split()[0], password=row.split()[1]) for row in rows)
    assert not Home(settings.LABSITE_HOME).sign_ins.exists()  # said once


def test_the_sign_ins_are_kept_for_their_owner_only() -> None:
    call_command("first_start", "--keep")
    assert stat.S_IMODE(Home(settings.LABSITE_HOME).sign_ins.stat().st_mode) == 0o600


def test_the_second_start_changes_and_says_nothing() -> None:
    start()
    before = (list(User.objects.values()), Installation.objects.get().epoch, SiteEvent.objects.count())
    assert start() == ([], "")
    assert before == (list(User.objects.values()), Installation.objects.get().epoch, SiteEvent.objects.count())


def test_the_operators_choice_is_used_and_not_said_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABSITE_ADMIN_USER", "root.of-all")
    monkeypatch.setenv("LABSITE_ADMIN_PASSWORD", "a good long password")
    people, errors = start()
    assert (people[0]["username"], people[0]["password"], errors) == ("root.of-all", None, "")
    assert Client().login(username="root.of-all", password="a good long password")


def test_a_weak_choice_is_kept_with_a_warning_that_does_not_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABSITE_ADMIN_PASSWORD", "hunter2")
    _, errors = start()
    assert "weaker" in errors
    assert "hunter2" not in errors
    assert Client().login(username="admin", password="hunter2")


@pytest.mark.parametrize("name", ["Not A Name", "researcher"])
def test_a_name_that_is_none_makes_nothing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("LABSITE_ADMIN_USER", name)
    with pytest.raises(CommandError, match="LABSITE_ADMIN_USER"):
        start()
    assert not User.objects.exists()
    assert not Installation.objects.exists()
