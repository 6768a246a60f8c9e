"""The inbox: every kind in one list, with its evidence, by kind and by whose it is."""

import importlib
import pkgutil
import uuid

import pytest

import runs.approvals
import workspaces.approvals
from tests.factories import make_workspace
from tests.factories_approvals import CONTENTS, fill_inbox
from tests.factories_pages import client_of
from tests.factories_resources import ask, join, vote
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.asked_kinds import asked_kinds, evidence_of, page_of

URL = "/workspaces/lab/approvals/"


def lab() -> tuple[Actor, Actor, Actor, uuid.UUID]:
    workspace, owner = make_workspace("lab")
    with scope.open_workspace(workspace.pk):
        return owner, join(owner, "researcher"), join(owner, "approver", Role.APPROVER), workspace.pk


@pytest.mark.django_db
def test_every_kind_stands_in_one_list_with_its_evidence() -> None:
    _, researcher, approver, workspace = lab()
    with scope.open_workspace(workspace):
        fill_inbox(askers=[researcher], count=4)
    page = client_of(approver).get(URL).content.decode()
    for words in (
        "4 requests wait",
        "40 reserved + 24 asked = 64 of 50.",  # the limit's arithmetic
        "48.00 EUR at most",
        "10 of 10 checks hold: evaluation, contract, holdout, contamination,",
        "7 would have been others",  # what a policy would have changed
        "Priority 80, now 0; up to 50",
    ):
        assert words in page, words
    assert "24 of 30." not in page  # what holds anyway stands on the request's page


@pytest.mark.django_db
def test_filters_by_kind_and_by_whose_and_pages_leave_nothing_out() -> None:
    owner, researcher, approver, workspace = lab()
    with scope.open_workspace(workspace):
        fill_inbox(askers=[researcher, owner], count=100)

    def titles(client: Actor, query: str) -> set[str]:
        browser, after, found = client_of(client), "", set()
        while True:
            page = browser.get(f"{URL}?{query}{after}").context
            found |= {entry.title for entry in page["rows"]}
            if not page["next_cursor"]:
                return found
            after = f"&after={page['next_cursor']}"

    assert len(titles(approver, "")) == 100
    assert titles(approver, "kind=policy") == {f"Decide on policy {number}" for number in range(2, 100, 4)}
    assert (len(titles(owner, "whose=mine")), len(titles(owner, "whose=own"))) == (52, 48)
    assert titles(owner, "whose=mine").isdisjoint(titles(owner, "whose=own"))
    assert titles(researcher, "whose=mine") == set()
    assert titles(approver, "kind=nothing&status=nothing&whose=nothing") == titles(approver, "")


@pytest.mark.django_db
def test_mine_to_decide_leaves_out_what_one_has_decided_on() -> None:
    owner, researcher, approver, workspace = lab()
    with scope.open_workspace(workspace):
        approval = ask(actor=researcher, content=CONTENTS["run"], quorum=2)
        assert len(client_of(approver).get(f"{URL}?whose=mine").context["rows"]) == 1
        vote(actor=approver, approval=approval, approves=True)
    assert client_of(approver).get(f"{URL}?whose=mine").context["rows"] == []
    assert len(client_of(owner).get(f"{URL}?whose=mine").context["rows"]) == 1


def test_a_file_is_a_kind() -> None:
    packages = (runs.approvals, workspaces.approvals)
    files = [f"{package.__name__}.{module.name}" for package in packages for module in pkgutil.iter_modules(package.__path__)]
    named = {importlib.import_module(file).KIND.name for file in files}
    assert set(asked_kinds()) == named
    assert len(named) == len(files)


@pytest.mark.parametrize("kind", [*CONTENTS, "gone"])
@pytest.mark.parametrize("content", [[], "text", {}, {"certificate": 3, "facts": "a", "changes": {}, "policy": ["x"], "version": {}}])
def test_whatever_a_request_holds_its_evidence_breaks_no_page(kind: str, content: object) -> None:
    evidence_of(kind, content)
    assert all(isinstance(part, str) for part in page_of(kind, uuid.uuid4(), content))
