"""A withdrawal's preview ranks a board as the board itself does: over seeds where the contract says so."""

from collections.abc import Iterator

import pytest

from runs.commands.withdrawal import undo_withdrawal, withdraw
from runs.models import Run
from runs.queries.withdrawal import BoardChange, find_subject, radius
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, make_laboratory
from tests.runs.test_home_seeds import STEADY, publish, score, the_board

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    made = make_laboratory()
    with made.opened():
        publish(made)
        yield made


def change_by(run: Run) -> BoardChange:
    (change,) = radius(*find_subject("run", run.public_id)).boards
    return change


def values(change: BoardChange) -> tuple[float | None, float | None]:
    return tuple(lead and round(lead.value, 9) for lead in (change.leader, change.next_leader))  # type: ignore[return-value]  # two


def test_the_mean_that_leads_changes_with_a_seed_that_goes(laboratory: Laboratory) -> None:
    score(laboratory, 1, STEADY)  # 0.81
    strong = score(laboratory, 2, (0.99, 0.70))  # 0.845, with the best single score
    change = change_by(strong[0])
    assert (change.over, change.withdrawn, change.left) == ("mean", 1, 3)
    assert change.is_led_by_another
    assert values(change) == (0.845, 0.81)
    weak = change_by(strong[1])
    assert not weak.is_led_by_another, "one lucky run alone still leads"
    assert (weak.is_led_otherwise, values(weak)) == (True, (0.845, 0.99))


def test_what_the_preview_says_is_what_the_board_shows_then(laboratory: Laboratory) -> None:
    score(laboratory, 1, STEADY)
    strong = score(laboratory, 2, (0.99, 0.70, 0.95))
    for run in strong:
        before = the_board()
        said = change_by(run)
        assert before.leader is not None and said.leader is not None and said.next_leader is not None
        assert said.leader.pk == before.leader.pk
        node, label = find_subject("run", run.public_id)
        withdrawal = withdraw(actor=laboratory.owner, subject=node, label=label, reason="Bad.")
        after = the_board()
        assert after.leader is not None
        assert (said.next_leader.pk, said.next_leader.value, said.left) == (after.leader.pk, after.leader.value, after.total)
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="Good.")
        assert the_board() == before


def test_page_and_api_name_the_rows(laboratory: Laboratory) -> None:
    score(laboratory, "<b>one</b>", STEADY)
    strong = score(laboratory, 2, (0.99, 0.70))
    client = client_of(laboratory.owner)
    page = client.get(f"/workspaces/lab/withdrawals/new/?kind=run&id={strong[0].public_id}").content.decode()
    assert "rate &lt;b&gt;one&lt;/b&gt;" in page
    assert "mean of 2 runs" in page
    asked = {"kind": "run", "id": strong[0].public_id}
    (board,) = client.get("/api/v1/workspaces/lab/withdrawals/preview", asked).json()["boards"]
    assert (board["over_seeds"], board["led_by"], board["would_be_led_by"]) == ("mean", None, None)
    assert (board["led_by_row"]["parameters"], board["would_be_led_by_row"]["parameters"]) == ({"rate": 2}, {"rate": "<b>one</b>"})
    assert (board["led_by_row"]["runs"], round(board["would_be_led_by_row"]["value"], 9)) == (2, 0.81)
