"""A public definition that anyone reads, and frozen copies of it in other workspaces."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs.commands.withdrawal import undo_withdrawal, withdraw
from runs.queries.lineage import Node
from runs.queries.lineage_edges import NodeKind
from tests.factories import make_member, make_workspace
from tests.factories_people import signed_in
from tests.factories_registry import make_agent_version, make_dataset_version
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.benchmark import create_benchmark, publish_contract
from workspaces.commands.benchmark_copy import follow_source, import_benchmark, look_at_sources
from workspaces.commands.share import revoke_share
from workspaces.contract_metrics import Metric
from workspaces.models import AuditEvent, Benchmark, Contract, DatasetVersion, NotFound, Notification, ShareGrant, Workspace

pytestmark = pytest.mark.django_db
DIFFERENCE = "/workspaces/receiver/benchmarks/open-table/source/difference/"
CONTENT_ONLY = "Other metrics"  # a field in which the two differ
PUBLIC = "/public/giver/open-table/"
SYSTEM = Actor.system(job_id="test")
CONTRACT: dict[str, Any] = {
    "metric": "elo", "direction": "maximize", "unit": "Elo", "terms": "Forty games.", "metrics": [Metric("seconds", "s", "minimize")],
    "over_seeds": "mean", "tie_rule": "earlier_first", "counts_all_samples": True,
}  # fmt: skip


@dataclass
class Two:
    giver: Workspace
    owner: Actor
    receiver: Workspace
    reader: Actor


@pytest.fixture
def two(settings: Any, tmp_path: Path) -> Two:
    settings.LABSITE_REGIONS = {"local": tmp_path}
    giver, owner = make_workspace("giver", visibility="public_benchmarks", region="local")
    receiver, reader = make_workspace("receiver", region="local")
    with scope.open_workspace(giver.pk):
        holdout = make_dataset_version(owner, "held", role="holdout")
        judge = make_agent_version(owner, "judge", kind="evaluate")
        parts = {**CONTRACT, "holdout": holdout, "evaluator": judge, "accepts_no_isolation_reason": "ours alone"}
        create_benchmark(actor=owner, slug="open-table", is_public=True, contract=parts)
    return Two(giver, owner, receiver, reader)


def open_to_all(two: Two) -> None:
    """By the page, as an admin does it."""
    answer = signed_in(two.owner).post("/workspaces/giver/benchmarks/open-table/public/", {"reason": "compare"})
    assert answer.status_code == 303, answer.content


def test_the_definition_is_read_by_anyone_once_it_is_opened_and_by_nobody_after(two: Two) -> None:
    assert Client().get(PUBLIC).status_code == 404
    open_to_all(two)
    with scope.open_workspace(two.giver.pk):
        events = AuditEvent.objects.count()
    page = Client().get(PUBLIC)
    assert page.status_code == 200
    text = page.content.decode()
    with scope.open_workspace(two.giver.pk):
        contract = Contract.objects.select_related("holdout").get()
        assert AuditEvent.objects.count() == events  # looking writes nothing
    assert contract.holdout is not None
    for words in ("Forty games.", "seconds", "Elo", contract.content_hash, contract.holdout.content_hash):
        assert words in text
    assert "held" not in text  # the dataset's name is not the public's
    for other in ("/public/giver/own-table/", "/public/receiver/open-table/", "/public/nowhere/open-table/"):
        assert Client().get(other).status_code == 404
    open_to_all(two)  # the same page closes it
    assert Client().get(PUBLIC).status_code == 404


def test_a_copy_has_the_hash_of_its_source_and_none_of_its_data(two: Two) -> None:
    open_to_all(two)
    with scope.open_workspace(two.receiver.pk):
        copy = import_benchmark(actor=two.reader, workspace="giver", benchmark="open-table", slug="theirs")
        mine = Contract.objects.get()
        assert scope.current_id() == two.receiver.pk
        assert (mine.benchmark, mine.version, mine.source_version, mine.all_metrics[1:]) == (
            copy,
            1,
            1,
            (Metric("seconds", "s", "minimize"),),
        )
        assert (mine.over_seeds, mine.tie_rule, mine.counts_all_samples) == ("mean", "earlier_first", True)
        assert (mine.unit, mine.terms) == ("Elo", "Forty games.")
        assert (mine.holdout, mine.evaluator, mine.accepts_no_isolation_reason) == (None, None, "")
        assert [name for name, _ in mine.not_here] == ["holdout", "evaluator"]
        assert (copy.source["workspace"], copy.source["benchmark"]) == (two.giver.name, "open-table")
        with pytest.raises(Refusal, match="is a frozen copy of open-table of"):
            publish_contract(actor=two.reader, benchmark=copy, metric="other", direction="maximize")
    with scope.open_workspace(two.giver.pk):
        assert Contract.objects.get().content_hash == mine.content_hash
        assert AuditEvent.objects.filter(verb="share.read").count() == 1
    page = signed_in(two.reader).get("/workspaces/receiver/benchmarks/theirs/").content.decode()
    assert "Data does not travel" in page
    assert "the same as there" in page


def test_a_holdout_with_the_same_content_stands_in_the_copy(two: Two) -> None:
    open_to_all(two)
    with scope.open_workspace(two.receiver.pk):
        copy = import_benchmark(actor=two.reader, workspace="giver", benchmark="open-table")
        make_dataset_version(two.reader, "trained-on", role="train", content=b"a,b\n5,6\n7,8\n")
        with pytest.raises(Refusal, match="nothing was taken over"):
            follow_source(actor=two.reader, benchmark=copy)
        held = make_dataset_version(two.reader, "brought", role="holdout")
        contract = follow_source(actor=two.reader, benchmark=copy)
        assert (contract.version, contract.holdout, contract.source_version) == (2, held, 1)


def test_no_copy_measures_on_a_holdout_that_is_withdrawn_here(two: Two) -> None:
    open_to_all(two)
    with scope.open_workspace(two.receiver.pk):
        held = make_dataset_version(two.reader, "brought", role="holdout")
        withdrawal = withdraw(actor=two.reader, subject=Node(NodeKind.DATASET_VERSION, held.pk), label="brought@1", reason="Bad games")
        with pytest.raises(Refusal, match="brought@1, which the holdout rests on, was withdrawn: Bad games"):
            import_benchmark(actor=two.reader, workspace="giver", benchmark="open-table")
        assert not Benchmark.objects.exists()
        undo_withdrawal(actor=two.reader, withdrawal=withdrawal, reason="Good.")
        assert import_benchmark(actor=two.reader, workspace="giver", benchmark="open-table")
        assert Contract.objects.get().holdout == held


def test_only_an_admin_takes_over_what_lets_people_ask_for_more(two: Two) -> None:
    def publish(runs: int, period: str) -> None:
        with scope.open_workspace(two.giver.pk):
            publish_contract(
                actor=two.owner, benchmark=Benchmark.objects.get(), runs_per_person=runs, period=period,
                **{**CONTRACT, "holdout": DatasetVersion.objects.get(role="holdout"), "accepts_no_isolation_reason": "ours alone"},
            )  # fmt: skip

    researcher = make_member(two.receiver, "researcher", "rosa")
    open_to_all(two)
    publish(2, "week")
    with scope.open_workspace(two.receiver.pk):
        copy = import_benchmark(actor=researcher, workspace="giver", benchmark="open-table")
    publish(1000, "day")
    with scope.open_workspace(two.receiver.pk):
        with pytest.raises(Refusal, match="lets each person ask for 2 runs a week; only an admin loosens that"):
            follow_source(actor=researcher, benchmark=copy)
        assert Contract.objects.get().runs_per_person == 2
        assert follow_source(actor=two.reader, benchmark=copy).runs_per_person == 1000
    publish(1, "day")
    with scope.open_workspace(two.receiver.pk):
        assert follow_source(actor=researcher, benchmark=copy).runs_per_person == 1, "whoever may edit takes over what is stricter"


def test_it_is_told_when_the_source_moves_on_and_when_it_is_withdrawn(two: Two) -> None:
    open_to_all(two)
    with scope.open_workspace(two.receiver.pk):
        copy = import_benchmark(actor=two.reader, workspace="giver", benchmark="open-table")
        assert look_at_sources(SYSTEM) == 0
    with scope.open_workspace(two.giver.pk):
        publish_contract(actor=two.owner, benchmark=Benchmark.objects.get(), metric="elo", direction="maximize")
    client = signed_in(two.reader)
    with scope.open_workspace(two.receiver.pk):
        assert (look_at_sources(SYSTEM), look_at_sources(SYSTEM)) == (1, 0)
        assert "The source has moved on to version 2." in client.get("/workspaces/receiver/benchmarks/open-table/").content.decode()
        assert Contract.objects.count() == 1
    assert client.post("/workspaces/receiver/benchmarks/open-table/source/").status_code == 303
    with scope.open_workspace(two.receiver.pk):
        copy.refresh_from_db()
        assert (copy.source_state, copy.source_version) == ("current", 2)
        newest = Contract.objects.get(version=2)
        assert (newest.source_version, newest.metrics) == (2, [])
    with scope.open_workspace(two.giver.pk):
        revoke_share(actor=two.owner, grant=ShareGrant.objects.get(), reason="over")
    with scope.open_workspace(two.receiver.pk):
        assert look_at_sources(SYSTEM) == 1
        with pytest.raises(Refusal, match="is public no more; the copy stays as it is"):
            follow_source(actor=two.reader, benchmark=copy)
    assert "The source can be read no more." in client.get("/workspaces/receiver/benchmarks/open-table/").content.decode()


def test_whoever_may_take_it_over_is_told_once_for_each_version_with_what_differs_and_nothing_else(two: Two) -> None:
    open_to_all(two)
    viewer = make_member(two.receiver, "viewer")
    with scope.open_workspace(two.receiver.pk):
        import_benchmark(actor=two.reader, workspace="giver", benchmark="open-table")
    client = signed_in(two.reader)
    assert "The source says the same" in client.get(DIFFERENCE).content.decode()
    with scope.open_workspace(two.giver.pk):
        source = Benchmark.objects.get()
        for terms in ("<b>Fifty games.</b>", "Sixty games."):
            publish_contract(actor=two.owner, benchmark=source, metric="elo", direction="maximize", unit="Elo", terms=terms)
            if terms == "Sixty games.":
                break
            with scope.open_workspace(two.receiver.pk):
                assert (look_at_sources(SYSTEM), look_at_sources(SYSTEM)) == (1, 0)
                told = Notification.objects.get(cause="source_moved")
                assert (told.person, told.words) == (
                    two.reader.user, "It has version 2 of its contract now. The copy says what its version 1 said.",
                )  # fmt: skip
                Notification.objects.update(seen_at=timezone.now())
            page = client.get(DIFFERENCE).content.decode()
            assert "&lt;b&gt;Fifty games.&lt;/b&gt;" in page
            assert "Forty games." in page
            assert "own-table" not in page
            assert "held" not in page, "the dataset's name is not the public's"
            assert CONTENT_ONLY in page
    with scope.open_workspace(two.receiver.pk):
        assert look_at_sources(SYSTEM) == 1
        told = Notification.objects.get(cause="source_moved")
        assert (told.seen_at, "version 3" in told.words) == (None, True), "a further version is news again"
    assert f'href="{DIFFERENCE}"' in client.get("/workspaces/receiver/benchmarks/open-table/").content.decode()
    listed = client.get("/workspaces/receiver/notifications/").content.decode()
    assert "The source of a copied benchmark has changed" in listed
    (url,) = set(re.findall(r'href="([^"]*/source/difference/)"', listed))
    assert "Sixty games." in client.get(url).content.decode()
    assert "Take over" not in signed_in(viewer).get(DIFFERENCE).content.decode()

    assert client.post("/workspaces/receiver/benchmarks/open-table/source/").status_code == 303
    with scope.open_workspace(two.receiver.pk):
        assert not Notification.objects.filter(cause="source_moved").exists(), "who has taken it over needs no telling"
    with scope.open_workspace(two.giver.pk):
        revoke_share(actor=two.owner, grant=ShareGrant.objects.get(), reason="over")
        publish_contract(actor=two.owner, benchmark=source, metric="elo", direction="maximize", unit="Elo", terms="A secret.")
    with scope.open_workspace(two.receiver.pk):
        assert look_at_sources(SYSTEM) == 1
        assert Notification.objects.get(cause="source_moved").words == "It is public no more."
    answer = client.get(DIFFERENCE)
    assert answer.status_code == 200
    assert "can be read no more" in answer.content.decode()
    assert "A secret." not in answer.content.decode()


def test_a_benchmark_of_ones_own_has_no_source_and_leads_to_its_page(two: Two) -> None:
    answer = signed_in(two.owner).get("/workspaces/giver/benchmarks/open-table/source/difference/")
    assert (answer.status_code, answer["Location"]) == (303, "/workspaces/giver/benchmarks/open-table/")


def test_what_is_not_public_is_not_imported_and_its_own_is_no_copy(two: Two) -> None:
    with scope.open_workspace(two.receiver.pk):
        for workspace, benchmark in (("giver", "open-table"), ("giver", "nothing"), ("nowhere", "open-table")):
            with pytest.raises(NotFound):
                import_benchmark(actor=two.reader, workspace=workspace, benchmark=benchmark)
    open_to_all(two)
    with scope.open_workspace(two.giver.pk), pytest.raises(Refusal, match="own"):
        import_benchmark(actor=two.owner, workspace="giver", benchmark="open-table", slug="again")


def test_page_and_api_import(two: Two) -> None:
    client = signed_in(two.reader)
    page = "/workspaces/receiver/benchmarks/import/"
    asked = {"workspace": "giver", "benchmark": "open-table", "slug": ""}
    refused = client.post(page, asked)
    assert refused.status_code == 409
    assert "No public benchmark has this id" in refused.content.decode()
    open_to_all(two)
    assert client.post(page, asked).status_code == 303
    api = "/api/v1/workspaces/receiver/benchmarks"
    answer = client.post(f"{api}/import", json.dumps({**asked, "slug": "second"}), content_type="application/json")
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert (body["source"]["benchmark_slug"], body["source"]["state"], body["contract"]["source_version"]) == ("open-table", "current", 1)
    closed = "/api/v1/workspaces/giver/benchmarks/open-table/public"
    giver = signed_in(two.owner)
    answer = giver.delete(closed)
    assert (answer.status_code, answer.json()["status"]) == (200, "revoked")
    assert giver.delete(closed).status_code == 404
    opened = [giver.post(closed, json.dumps({"reason": "again"}), content_type="application/json").json() for _ in range(2)]
    assert opened[0]["id"] == opened[1]["id"]
    again = client.post(f"{api}/second/source", content_type="application/json")
    assert again.status_code == 409
