"""Search: everything of every workspace that one may list, and nothing else; ids lead straight to their things."""

import re
import uuid
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.models import Run
from runs.queries import search as search_query
from runs.queries.search import NOUNS, search_all
from tests.factories import make_member, make_workspace
from tests.factories_pages import CJK, HOSTILE, RTL, add_artifact, add_attempt, client_of, copy_runs, set_run
from tests.factories_people import bearer, make_token
from tests.factories_registry import make_agent_version, make_benchmark, make_dataset_version
from tests.factories_resources import ask, remove_member
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.walls.rows import fill
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.commands.member import add_member, change_member
from workspaces.models import AgentVersion, AuditEvent, Benchmark, Contract, Dataset, DatasetVersion, Membership, Pool
from workspaces.search_text import read


def found(actor: Actor, q: str, **more: str) -> dict[str, list[str]]:
    """Names on the page, by noun."""
    body = client_of(actor).get("/search/?" + urlencode({"q": q} | more)).content.decode()
    groups: dict[str, list[str]] = {}
    for section in re.findall(r"<section class=\"card found\".*?</section>", body, re.DOTALL):
        title = re.search(r"<h2[^>]*>\s*(.*?)\s*</h2>", section, re.DOTALL)
        assert title is not None
        rows = re.findall(r"<h3>.*?<bdi>(.*?)</bdi>.*?</h3>", section, re.DOTALL)
        groups[title[1]] = [re.sub(r"</?mark>", "", row) for row in rows]
    return groups


def goes_to(actor: Actor, q: str, **more: str) -> str:
    """Where a search leads straight to; empty where it shows a page."""
    answer = client_of(actor).get("/search/?" + urlencode({"q": q} | more))
    return str(answer.get("Location", ""))


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    made = make_laboratory()
    with made.opened():
        copy_runs(actor=made.owner, pattern=launch(made, name="swift-0001"), count=3)
    return made


def named(laboratory: Laboratory, name: str) -> Run:
    with laboratory.opened():
        return copy_runs(actor=laboratory.owner, pattern=Run.objects.earliest("number"), count=1, name=name)[0]


# --- What is found ------------------------------------------------------------------------------------------------------------------------


def test_each_noun_is_found_by_its_name(laboratory: Laboratory) -> None:
    owner = laboratory.owner
    with laboratory.opened():
        make_benchmark(owner, "swift-board")
        make_dataset_version(owner, "swift-table")
        make_agent_version(owner, "swift-agent")
        add_artifact(actor=owner, run=Run.objects.get(name="swift-0001"), path="out/swift.bin", content=b"weights")
        set_run(actor=owner, run=Run.objects.get(name="swift-0001"), reason="x")
    make_member(laboratory.workspace, Role.VIEWER, "swift-person")
    assert found(owner, "SWIFT") == {
        "Runs": ["swift-0001"],
        "Benchmarks": ["swift-board"],
        "Datasets": ["swift-table"],
        "Agents": ["swift-agent"],
        "Artifacts": ["swift.bin"],
        "People": ["Swift-Person"],
    }
    assert found(owner, "local") == {"Pools": ["local"]}
    assert found(owner, "budg") == {"Pages": ["Budget"]}
    with laboratory.opened():
        ask(actor=owner, content={"asks": "x"})
    assert found(owner, "big-run") == {"Approvals": ["big-run"]}


def test_numbers_ids_and_hashes_are_found(laboratory: Laboratory) -> None:
    owner = laboratory.owner
    with laboratory.opened():
        run, version = Run.objects.get(number=3), DatasetVersion.objects.get()
        artifact = add_artifact(actor=owner, run=run, path="model.bin", content=b"weights")
        sha256 = artifact.blob.sha256
    assert found(owner, "#3") == {"Runs": [run.name]}
    assert found(owner, f"run_{run.pk.hex[-8:]}") == {"Runs": [run.name]}  # as pages show it
    assert found(owner, run.pk.hex[-10:]) == {"Runs": [run.name]}
    assert found(owner, version.content_hash[:9].upper()) == {"Dataset versions": ["table, version 1"]}
    assert found(owner, sha256[:12]) == {"Artifacts": ["model.bin"]}
    assert found(owner, sha256) == {"Artifacts": ["model.bin"]}


def test_wildcards_are_letters(laboratory: Laboratory) -> None:
    for name in ("50%-off", "a_b", "a\\b", "axb"):
        named(laboratory, name)
    assert found(laboratory.owner, "50%") == {"Runs": ["50%-off"]}
    assert found(laboratory.owner, "a_b") == {"Runs": ["a_b"]}
    assert found(laboratory.owner, "a\\b") == {"Runs": ["a\\b"]}
    assert found(laboratory.owner, "%") == {"Runs": ["50%-off"]}


def test_exact_names_come_first_then_beginnings_then_the_newest(laboratory: Laboratory) -> None:
    for name in ("old swan", "swan lake", "swan", "new swan"):
        named(laboratory, name)
    with laboratory.opened():
        order = list(Run.objects.filter(name__in=["old swan", "new swan"]).order_by("-created_at").values_list("name", flat=True))
    assert found(laboratory.owner, "Swan")["Runs"] == ["swan", "swan lake", *order]


def test_eight_are_shown_and_the_rest_is_in_the_list(laboratory: Laboratory) -> None:
    with laboratory.opened():
        copy_runs(actor=laboratory.owner, pattern=Run.objects.earliest("number"), count=30, name="crowd")
    body = client_of(laboratory.owner).get("/search/?q=crowd").content.decode()
    assert len(found(laboratory.owner, "crowd")["Runs"]) == 8
    assert 'href="/workspaces/lab/runs/?q=crowd"' in body
    assert "All 30" in body
    assert "30 things found" in " ".join(body.split())


def test_what_people_wrote_is_text_and_the_match_is_marked(laboratory: Laboratory) -> None:
    for name in (HOSTILE, RTL, CJK):
        named(laboratory, name)
    body = client_of(laboratory.owner).get("/search/?" + urlencode({"q": "script>"})).content.decode()
    assert "<script>alert" not in body
    assert "&lt;/title&gt;&lt;<mark>script&gt;</mark>alert(1)" in body
    body = client_of(laboratory.owner).get("/search/?" + urlencode({"q": '"><script>alert(1)</script>'})).content.decode()
    assert "<script>alert" not in body
    assert found(laboratory.owner, "初めて") == {"Runs": [CJK]}
    assert len(found(laboratory.owner, "ראשונה")["Runs"]) == 1


@pytest.mark.parametrize(
    ("q", "status", "words"),
    [("", 200, "Type a part of a name"), ("a\x00b", 400, "NUL"), ("x" * 1_000_000, 422, "up to 200 characters"),
     ("no such thing", 200, "Nothing is called")],
)  # fmt: skip
def test_odd_texts_are_answered_in_words(laboratory: Laboratory, q: str, status: int, words: str) -> None:
    answer = client_of(laboratory.owner).get("/search/", {"q": q})
    assert answer.status_code == status
    assert words in answer.content.decode()
    assert len(answer.content) < 100_000


def test_a_stranger_signs_in_first_and_a_person_without_workspaces_is_told_so(db: None) -> None:
    workspace, _ = make_workspace("lab")
    nobody = make_member(workspace, Role.VIEWER, "nobody")
    with scope.open_workspace(workspace.pk):
        remove_member(actor=Actor.of(Membership.objects.get(role=Role.OWNER).user), username="nobody")  # type: ignore[arg-type]  # a person
    assert "none is open to you yet" in client_of(nobody).get("/search/?q=lab").content.decode()
    client = client_of(nobody)
    client.logout()
    assert client.get("/search/?q=lab").status_code == 302


# --- Whose it is --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_what_belongs_to_others_is_never_found() -> None:
    """Every noun of a workspace that the reader is not a member of, by name, slug, number, hash and id."""
    mine, theirs = make_laboratory("mine"), make_laboratory("theirs")
    rows: dict[str, Any] = fill(theirs.workspace)
    with theirs.opened():
        run = launch(theirs, name="covert-run")
        make_benchmark(theirs.owner, "covert-board")
        make_dataset_version(theirs.owner, "covert-table", content=b"s,e\n1,2\n")
        make_agent_version(theirs.owner, "covert-agent")
        artifact = add_artifact(actor=theirs.owner, run=run, path="covert.bin", content=b"covert weights")
        sha256, version = artifact.blob.sha256, DatasetVersion.objects.latest("created_at").content_hash
        names = {str(row.public_id) for row in rows.values()} | {row.pk.hex for row in rows.values()} | {str(run.pk), run.public_id}
    assert set(found(theirs.owner, "covert")) == {"Runs", "Benchmarks", "Datasets", "Agents", "Artifacts"}
    for q in ("covert", run.pk.hex[-8:], sha256[:12], version[:12], "theirs-owner"):
        assert found(mine.owner, q) == {}, q
        assert found(mine.owner, q, **{"from": "theirs"}) == {}, q
    for q in names | {theirs.workspace.public_id, str(theirs.workspace.pk)}:
        assert "/theirs/" not in goes_to(mine.owner, q), q
        assert "theirs" not in str(found(mine.owner, q)), q
    assert client_of(mine.owner).get("/search/?q=covert&workspace=theirs").status_code == 404
    assert client_of(mine.owner).get("/search/?q=covert&workspace=nowhere").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_a_workspace_is_left_out_from_the_moment_one_has_left_it() -> None:
    mine, other = make_laboratory("mine"), make_laboratory("other")
    with other.opened():
        launch(other, name="swift-0001")
        add_member(actor=other.owner, role=Role.VIEWER, user=mine.owner.user)
    assert found(mine.owner, "swift") == {"Runs": ["swift-0001"]}
    with other.opened():
        remove_member(actor=other.owner, username="mine-owner")
    assert found(mine.owner, "swift") == {}
    assert search_all(read("swift"), mine.owner, [other.workspace]) == []  # even where it is asked to look there


@pytest.mark.django_db(transaction=True)
def test_the_workspace_one_comes_from_stands_first_and_one_can_look_in_one_only() -> None:
    here, there = make_laboratory("here"), make_laboratory("there")
    with there.opened():
        launch(there, name="swan")
        add_member(actor=there.owner, role=Role.VIEWER, user=here.owner.user)
    with here.opened():
        launch(here, name="a black swan")
    assert found(here.owner, "swan", **{"from": "here"})["Runs"] == ["a black swan", "swan"]
    assert found(here.owner, "swan", **{"from": "there"})["Runs"] == ["swan", "a black swan"]
    assert found(here.owner, "swan", workspace="here") == {"Runs": ["a black swan"]}
    body = client_of(here.owner).get("/search/?q=swan&from=there").content.decode()
    assert 'href="/workspaces/there/runs/"' in body  # the frame of the workspace that one comes from
    assert not scope.is_open()


def test_only_what_ones_rights_let_one_list_is_found(laboratory: Laboratory) -> None:
    viewer = make_member(laboratory.workspace, Role.VIEWER, "viewer")
    with laboratory.opened():
        event = AuditEvent.objects.latest("sequence")
        narrow = make_member_of_kind(laboratory, "narrow", ["benchmark"])
    assert "Pages" in found(laboratory.owner, "audit")
    assert found(viewer, "audit") == {}
    assert goes_to(laboratory.owner, event.public_id) == f"/workspaces/lab/audit/{event.public_id}/"
    assert goes_to(viewer, event.public_id) == ""
    assert found(viewer, "swift") == {"Runs": ["swift-0001"]}
    assert found(narrow, "swift") == {}
    assert found(narrow, "accuracy") == {"Benchmarks": ["accuracy"]}
    with laboratory.opened():
        run = Run.objects.get(name="swift-0001")
    assert goes_to(narrow, run.public_id) == ""


def make_member_of_kind(laboratory: Laboratory, username: str, kinds: list[str]) -> Actor:
    member = make_member(laboratory.workspace, Role.VIEWER, username)
    row = Membership.objects.get(user=member.user)
    change_member(actor=laboratory.owner, member=row.public_id, role=Role.VIEWER, kinds=kinds)
    return member


# --- Ids ----------------------------------------------------------------------------------------------------------------------------------


def test_an_id_leads_straight_to_its_thing(laboratory: Laboratory) -> None:
    owner = laboratory.owner
    with laboratory.opened():
        run, benchmark, pool = Run.objects.get(name="swift-0001"), Benchmark.objects.get(), Pool.objects.get()
        attempt = add_attempt(actor=owner, run=run)
        artifact = add_artifact(actor=owner, run=run, path="model.bin", content=b"weights")
        approval = ask(actor=owner, content={"asks": "x"})
        version, contract, agent = DatasetVersion.objects.get(), Contract.objects.get(), AgentVersion.objects.get()
        expected = {
            run.public_id: f"runs/{run.public_id}/",
            str(run.pk): f"runs/{run.public_id}/",
            run.pk.hex: f"runs/{run.public_id}/",
            f"  {run.public_id} ": f"runs/{run.public_id}/",
            attempt.public_id: f"runs/{run.public_id}/",
            artifact.public_id: f"artifacts/{artifact.public_id}/",
            benchmark.public_id: "benchmarks/bench_accuracy/",
            benchmark.pk.hex: "benchmarks/bench_accuracy/",
            contract.public_id: "benchmarks/bench_accuracy/",
            Dataset.objects.get().public_id: "datasets/ds_table/",
            version.public_id: "datasets/ds_table/?version=1",
            agent.public_id: "agents/agent_worker/?version=1",
            pool.public_id: "pools/pool_local/",
            approval.public_id: f"approvals/{approval.public_id}/",
            laboratory.workspace.public_id: "",
            str(laboratory.workspace.pk): "",
        }
    client = client_of(owner)
    for text, path in expected.items():
        answer = client.get("/search/?" + urlencode({"q": text}))
        assert (answer.status_code, answer["Location"]) == (302, f"/workspaces/lab/{path}"), text
        assert client.get(answer["Location"]).status_code == 200, text
    assert goes_to(owner, f"run_{uuid.uuid4().hex}") == ""
    assert goes_to(owner, "run_swift-0001") == ""


@pytest.mark.django_db(transaction=True)
def test_a_slug_that_several_workspaces_have_leads_to_the_one_that_one_comes_from() -> None:
    here, there = make_laboratory("here"), make_laboratory("there")
    make_workspace("bare", owner=here.owner.user)
    with there.opened():
        add_member(actor=there.owner, role=Role.VIEWER, user=here.owner.user)
    assert goes_to(here.owner, "pool_local", **{"from": "there"}) == "/workspaces/there/pools/pool_local/"
    assert goes_to(here.owner, "pool_local", **{"from": "here"}) == "/workspaces/here/pools/pool_local/"
    assert goes_to(here.owner, "pool_local", **{"from": "bare"}) == ""  # two have it: the reader chooses
    assert goes_to(here.owner, "pool_local", workspace="there") == "/workspaces/there/pools/pool_local/"


# --- Cost, and the API --------------------------------------------------------------------------------------------------------------------


def test_a_noun_is_one_query_however_many_rows(laboratory: Laboratory) -> None:
    with laboratory.opened():
        for noun in NOUNS:
            with CaptureQueriesContext(connection) as asked:
                noun.find(read("e"), "lab")
            assert len(asked) <= 1, noun.name


@pytest.mark.django_db(transaction=True)
def test_at_most_so_many_workspaces_are_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_query, "MOST_WORKSPACES", 2)
    first, owner = make_workspace("first")
    others = [make_workspace(slug, owner=owner.user)[0] for slug in ("second", "third")]
    groups = search_all(read("owner"), owner, [first, *others])
    assert {workspace.slug for group in groups for _, workspace in group.hits} == {"first", "second"}


def test_the_api_finds_in_one_workspace_within_a_tokens_scopes(laboratory: Laboratory) -> None:
    _, secret = make_token(laboratory.workspace, laboratory.owner, "workspace:read", "run:read")
    client = bearer(secret)
    body = client.get("/api/v1/workspaces/lab/search?q=swift").json()
    assert (body["totals"], body["next"]) == ({"runs": 1}, None)
    (item,) = body["items"]
    assert (item["noun"], item["name"], item["status"]) == ("runs", "swift-0001", "queued")
    assert item["url"] == f"/workspaces/lab/runs/{item['id']}/"
    assert client.get("/api/v1/workspaces/lab/search", {"q": item["id"]}).json()["totals"] == {"runs": 1}
    assert client.get("/api/v1/workspaces/lab/search?q=accuracy").json()["items"] == []  # the token reads runs only
    for query in ({"q": ""}, {"q": "  "}, {"q": "x" * 201}, {}, {"q": "a", "more": "b"}):
        assert client.get("/api/v1/workspaces/lab/search", query).status_code == 422, query


def test_the_bar_looks_from_the_workspace_that_one_is_in(laboratory: Laboratory) -> None:
    body = client_of(laboratory.owner).get("/workspaces/lab/approvals/").content.decode()
    assert body.count('action="/search/"') == 2  # the bar, and the menu of a small screen
    assert body.count('name="from" value="lab"') == 2
