"""What a contract may say beside its metric and limits: kept, hashed only where said, refused where it cannot be."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.factories import make_workspace, scope
from tests.factories_registry import make_agent_version, make_benchmark, make_dataset_version
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.canonical import digest
from workspaces.commands.benchmark import publish_contract
from workspaces.contract_metrics import MOST_METRICS, Metric
from workspaces.models import Benchmark, Contract

pytestmark = pytest.mark.django_db
PAGE = "/workspaces/lab/benchmarks/accuracy/contracts/new/"
API = "/api/v1/workspaces/lab/benchmarks"
PLAIN: dict[str, Any] = {"metric": "accuracy", "direction": "maximize"}
OPENS, CLOSES = datetime(2027, 1, 1, 9, tzinfo=UTC), datetime(2027, 2, 1, 9, tzinfo=UTC)


@pytest.fixture
def owner(settings: Any, tmp_path: Path, client: Client) -> Iterator[Actor]:
    settings.LABSITE_REGIONS = {"local": tmp_path}
    workspace, actor = make_workspace("lab", region="local")
    assert actor.user is not None
    client.force_login(actor.user)
    with scope.open_workspace(workspace.pk):
        yield actor


def test_a_contract_without_new_parts_has_the_hash_that_it_always_had(owner: Actor) -> None:
    make_benchmark(owner, unit="share", wall_seconds=60, terms="As ever.", runs_per_person=3, period="week")
    contract = Contract.objects.get()
    # Of the content as it was hashed before there were such parts, computed once and written down.
    assert contract.content_hash == "020417efb971dd07e7721b6a251f1a86631c9a3e3aebb1a5c3b81b718c4dde51"
    assert contract.content_hash == digest(contract.content)
    # Nor does it change the hash to say what held before: so a copy of an older contract is not told apart from its source.
    assert contract.tie_rule == "shared_rank"
    with pytest.raises(Refusal, match="says already"):
        publish_contract(
            actor=owner, benchmark=contract.benchmark, metric=contract.metric, direction=contract.direction, unit="share", wall_seconds=60,
            terms="As ever.", runs_per_person=3, period="week", tie_rule="shared_rank",
        )  # fmt: skip


def test_each_part_that_is_said_changes_the_hash(owner: Actor) -> None:
    benchmark = make_benchmark(owner)
    parts: list[dict[str, Any]] = [
        {"metrics": [Metric("recall")]}, {"metrics": [Metric("recall", "", "minimize")]}, {"over_seeds": "mean"},
        {"tie_rule": "earlier_first"}, {"opens_at": OPENS},
        {"closes_at": CLOSES}, {"memory_bytes": 2**30}, {"counts_all_samples": True},
        {"evaluator": make_agent_version(owner, "judge", kind="evaluate")},
        {"train": make_dataset_version(owner)}, {"validation": make_dataset_version(owner, "tune", role="validation", content=b"a\n9\n")},
    ]  # fmt: skip
    made = [publish_contract(actor=owner, benchmark=benchmark, **PLAIN, **part) for part in parts]
    assert len({contract.content_hash for contract in Contract.objects.all()}) == len(made) + 1
    assert all(contract.content_hash == digest(contract.content) for contract in Contract.objects.all())


@pytest.mark.parametrize(
    ("part", "field", "words"),
    [
        ({"metrics": [Metric("accuracy")]}, "metrics", "named twice"),
        ({"metrics": [Metric(f"m{at}") for at in range(MOST_METRICS + 1)]}, "metrics", "At most 20"),
        ({"over_seeds": "mode"}, "over_seeds", "mean and median"),
        ({"tie_rule": "dense"}, "tie_rule", "shared_rank and earlier_first"),
        ({"opens_at": CLOSES, "closes_at": OPENS}, "closes_at", "closes before it opens"),
        ({"opens_at": datetime(2027, 1, 1)}, "opens_at", "zone"),  # noqa: DTZ001  # an instant without a zone is the point
        ({"memory_bytes": 0}, "memory_bytes", "bytes"),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(owner: Actor, part: dict[str, Any], field: str, words: str) -> None:
    benchmark = make_benchmark(owner)
    with pytest.raises(Refusal, match=words) as refused:
        publish_contract(actor=owner, benchmark=benchmark, **PLAIN, **part)
    assert refused.value.field == field


def test_rows_have_the_role_in_which_they_are_named(owner: Actor) -> None:
    benchmark = make_benchmark(owner)
    holdout, table, worker = make_dataset_version(owner, "held", role="holdout"), make_dataset_version(owner), make_agent_version(owner)
    for part, words in (
        ({"train": holdout}, "not Train"),
        ({"validation": table}, "not Validation"),
        ({"evaluator": worker}, "kind evaluate"),
    ):
        with pytest.raises(Refusal, match=words):
            publish_contract(actor=owner, benchmark=benchmark, **PLAIN, **part)
    copy = make_dataset_version(owner, "copy", role="any", content=b"a,b\n5,6\n7,8\n")
    with pytest.raises(Refusal, match="same content as the holdout"):
        publish_contract(actor=owner, benchmark=benchmark, **PLAIN, holdout=holdout, train=copy)


def test_the_api_takes_and_answers_all_of_it(owner: Actor, client: Client) -> None:
    make_benchmark(owner)
    make_agent_version(owner, "judge", kind="evaluate")
    make_dataset_version(owner)
    body = {
        **PLAIN, "metrics": [{"metric": "seconds", "unit": "s", "direction": "minimize"}], "over_seeds": "median",
        "tie_rule": "earlier_first", "opens_at": "2027-01-01T10:00:00+01:00",
        "closes_at": "2027-02-01T09:00:00Z", "memory_bytes": 2**30, "counts_all_samples": True, "evaluator": "judge@1", "train": "table@1",
    }  # fmt: skip
    answer = client.post(f"{API}/accuracy/contracts", json.dumps(body), content_type="application/json")
    assert answer.status_code == 201, answer.content
    contract = client.get(f"{API}/accuracy").json()["contract"]
    kept = Contract.objects.get(version=2)
    assert (kept.opens_at, kept.closes_at) == (OPENS, CLOSES)
    assert contract["metrics"] == body["metrics"]
    assert (contract["over_seeds"], contract["memory_bytes"], contract["counts_all_samples"]) == ("median", 2**30, True)
    assert (contract["tie_rule"], kept.tie_rule, contract["content"]["tie_rule"]) == ("earlier_first",) * 3
    assert (contract["evaluator"], contract["train"], contract["validation"]) == (
        kept.evaluator.public_id if kept.evaluator else "", kept.train.public_id if kept.train else "", None,
    )  # fmt: skip
    for wrong in ({"opens_at": "2027-01-01T10:00:00"}, {"metrics": [{"metric": "m", "direction": "up"}]}, {"evaluator": "nobody"}):
        answer = client.post(f"{API}/accuracy/contracts", json.dumps({**PLAIN, **wrong}), content_type="application/json")
        assert answer.status_code in (404, 422), wrong


def test_the_form_takes_it_and_the_next_one_begins_with_it(owner: Actor, client: Client) -> None:
    make_benchmark(owner)
    judge, table = make_agent_version(owner, "judge", kind="evaluate"), make_dataset_version(owner)
    sent = {
        **PLAIN, "metrics": "seconds | s | minimize\nrecall", "over_seeds": "mean",
        "tie_rule": "earlier_first", "opens_at": "2027-01-01 09:00", "closes_at": "2027-02-01T10:00+01:00",
        "memory": "512", "counts_all_samples": "on", "evaluator": str(judge.pk), "train": str(table.pk),
    }  # fmt: skip
    assert client.post(PAGE, sent).status_code == 303
    contract = Contract.objects.get(version=2)
    assert contract.all_metrics[1:] == (Metric("seconds", "s", "minimize"), Metric("recall", "", "maximize"))
    assert (contract.opens_at, contract.closes_at, contract.memory_bytes) == (OPENS, CLOSES, 512 * 2**20)
    assert (contract.evaluator, contract.train, contract.counts_all_samples) == (judge, table, True)
    assert contract.tie_rule == "earlier_first"
    page = client.get(PAGE).content.decode()
    assert "seconds | s | minimize" in page
    assert '<option value="earlier_first" selected>' in page
    assert 'value="2027-01-01T09:00:00Z"' in page
    for wrong in ({"metrics": "seconds | s | faster"}, {"opens_at": "tomorrow"}):
        answer = client.post(PAGE, {**sent, **wrong})
        assert answer.status_code == 422
    shown = client.get(f"/workspaces/lab/benchmarks/{Benchmark.objects.get().slug}/").content.decode()
    assert "lower is better" in shown
    assert "mean over seeds" in shown
