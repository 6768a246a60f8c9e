"""What runs cost is added up, so the pools of a workspace have one currency; what is not about that is never in its way."""

import pytest

from tests.factories_runs import Laboratory, make_laboratory
from workspaces.audit import Refusal
from workspaces.commands.pool import bind_pool, change_pool, unbind_pool
from workspaces.models import Pool

pytestmark = pytest.mark.django_db


def second(laboratory: Laboratory, currency: str) -> Pool:
    return bind_pool(actor=laboratory.owner, engine="local", slug="second", slots=1, isolation=Pool.Isolation.NONE, currency=currency)


def test_a_second_pool_has_the_currency_of_the_first() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        with pytest.raises(Refusal, match="counts in EUR"):
            second(laboratory, "USD")
        pool = second(laboratory, "EUR")
        with pytest.raises(Refusal, match="counts in EUR"):
            change_pool(actor=laboratory.owner, pool=pool, currency="USD")


def test_a_workspace_with_one_pool_may_change_its_currency() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        assert change_pool(actor=laboratory.owner, pool=Pool.objects.get(), currency="USD").currency == "USD"


def test_where_there_are_two_already_everything_else_can_be_changed() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        pool = second(laboratory, "EUR")
        Pool.objects.filter(pk=pool.pk).update(currency="USD")  # bound before the rule
        pool.refresh_from_db()
        assert change_pool(actor=laboratory.owner, pool=pool, slots=2, currency="USD").slots == 2
        assert not unbind_pool(actor=laboratory.owner, pool=pool, reason="not needed").is_accepting
        assert change_pool(actor=laboratory.owner, pool=pool, currency="EUR").currency == "EUR"
