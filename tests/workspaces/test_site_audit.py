"""The installation's record: one event a site command, one chain, nothing written where the command is refused."""

import threading

import pytest
from django.db import ProgrammingError, connection, transaction

from tests.factories import make_user
from tests.factories_people import make_operator
from workspaces.access import Actor, SiteRole
from workspaces.audit import Denied, Refusal
from workspaces.commands.engine import add_engine, change_engine
from workspaces.commands.preferences import set_preferences
from workspaces.commands.user import create_user, deactivate_user, set_site_roles
from workspaces.models import Engine, SiteEvent, User
from workspaces.queries.site import first_broken, site_events
from workspaces.queries.site_chain import verify_site_chain
from workspaces.site_audit import SiteVerb


@pytest.mark.django_db
def test_each_site_command_writes_one_linked_event() -> None:
    operator = make_operator()
    add_engine(actor=operator, slug="big", slots=4)
    change_engine(actor=operator, slug="big", is_accepting=False, reason="New disks")
    create_user(actor=operator, username="ada")
    verbs = list(SiteEvent.objects.order_by("sequence").values_list("verb", flat=True))
    assert verbs[-3:] == [SiteVerb.ENGINE_ADDED, SiteVerb.ENGINE_CHANGED, SiteVerb.USER_CREATED]
    assert SiteEvent.objects.get(verb=SiteVerb.ENGINE_CHANGED).details == {
        "changed": {"is_accepting": [True, False]},
        "reason": "New disks",
    }
    assert verify_site_chain().is_whole


@pytest.mark.django_db
def test_a_refused_command_leaves_neither_row_nor_event() -> None:
    operator, before = make_operator(), SiteEvent.objects.count()
    for slug, slots in (("Big Engine", 4), ("new", 1), ("ok", 0), ("ok", 10_000_000)):
        with pytest.raises(Refusal):
            add_engine(actor=operator, slug=slug, slots=slots)
    with pytest.raises(Denied):
        add_engine(actor=Actor.of(make_user("nobody")), slug="ok", slots=1)
    assert (Engine.objects.count(), SiteEvent.objects.count()) == (0, before)


@pytest.mark.django_db
def test_the_serving_role_cannot_change_or_remove_an_event() -> None:
    add_engine(actor=make_operator(), slug="big", slots=4)
    for change in (lambda: SiteEvent.objects.update(verb="other"), lambda: SiteEvent.objects.all().delete()):
        with pytest.raises(ProgrammingError), transaction.atomic():
            change()


@pytest.mark.django_db
def test_a_changed_event_is_found() -> None:
    operator = make_operator()
    for number in range(3):
        add_engine(actor=operator, slug=f"e{number}", slots=1)
    rows, _ = site_events()
    assert first_broken(rows) is None
    rows[1].actor_label = "someone else"
    assert first_broken(rows) == rows[1].sequence
    rows, _ = site_events()
    assert first_broken([rows[0], rows[2]]) == rows[0].sequence


@pytest.mark.django_db
def test_one_operator_always_stays() -> None:
    operator = make_operator()
    with pytest.raises(Refusal, match="at least one site operator"):
        set_site_roles(actor=operator, username="operator", roles=[])
    with pytest.raises(Refusal, match="yourself"):
        deactivate_user(actor=operator, username="operator")


@pytest.mark.django_db
def test_unknown_site_roles_and_roles_for_programs_are_refused() -> None:
    operator = make_operator()
    make_user("bot", kind=User.Kind.SERVICE)
    with pytest.raises(Refusal):
        set_site_roles(actor=operator, username="operator", roles=["superuser"])
    with pytest.raises(Refusal, match="Only people"):
        set_site_roles(actor=operator, username="bot", roles=[SiteRole.SITE_OPERATOR])


@pytest.mark.django_db
@pytest.mark.parametrize("username", ["", "Ada", "a b", "new", "-a", "a@b", "x" * 65, "ä", "a\x00"])
def test_user_names_that_are_none_are_refused(username: str) -> None:
    with pytest.raises(Refusal) as refused:
        create_user(actor=make_operator(), username=username)
    assert refused.value.field == "username"


@pytest.mark.django_db
def test_preferences_are_ones_own() -> None:
    operator = make_operator()
    set_preferences(actor=operator, display_name="Op", theme="dark", density="compact", zone="Europe/Berlin", has_shortcuts=False)
    user = User.objects.get(username="operator")
    assert (user.theme, user.density, user.zone, user.has_shortcuts) == ("dark", "compact", "Europe/Berlin", False)
    with pytest.raises(Refusal) as refused:
        set_preferences(actor=operator, display_name="Op", theme="dark", density="compact", zone="Mars/Olympus", has_shortcuts=False)
    assert refused.value.field == "zone"
    with pytest.raises(Refusal) as refused:
        set_preferences(actor=operator, display_name="Op", theme="dark", density="dense", zone="", has_shortcuts=False)
    assert refused.value.field == "density"


@pytest.mark.django_db(transaction=True)
def test_many_at_once_make_one_chain_without_gaps() -> None:
    operator, start = make_operator(), threading.Barrier(4)

    def add(number: int) -> None:
        try:
            start.wait(10)
            for turn in range(5):
                add_engine(actor=operator, slug=f"e{number}-{turn}", slots=1)
        finally:
            connection.close()

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert list(SiteEvent.objects.order_by("sequence").values_list("sequence", flat=True)) == list(range(1, 21))
    assert verify_site_chain().is_whole
