"""An evaluation as a thing of its own: what was measured, on what, by what; and every other time that the same was measured."""

import re
from typing import Any

import pytest
from django.test import Client

from runs.commands.harvest import evaluate
from runs.commands.withdrawal import withdraw
from runs.models import Artifact, Evaluation, Run
from runs.pools.events import Score
from runs.queries.withdrawal import find_subject
from tests.factories import make_user
from tests.factories_pages import HOSTILE, add_artifact, client_of, copy_runs, score_runs
from tests.factories_registry import make_agent_version, make_dataset_version, stored
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.access import Actor, Kind
from workspaces.audit import Draft, command
from workspaces.commands.agent import publish_agent_version
from workspaces.commands.benchmark import publish_contract
from workspaces.commands.member import add_member
from workspaces.models import Agent, Benchmark, Dataset
from workspaces.verbs import Verb

HERE = "/workspaces/lab"
API = "/api/v1/workspaces/lab"


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    made = make_laboratory()
    with made.opened():
        holdout = make_dataset_version(made.owner, "unseen", role="holdout")
        publish_contract(
            actor=made.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize", holdout=holdout,
            accepts_no_isolation_reason="a test",
        )  # fmt: skip
        schema = {"type": "object", "properties": {"limit": {"type": "integer"}}}
        make_agent_version(made.owner, "judge", kind="evaluate", wall_seconds=60, parameter_schema=schema)
    return made


@pytest.fixture
def model(laboratory: Laboratory) -> Artifact:
    with laboratory.opened():
        return add_artifact(actor=laboratory.owner, run=launch(laboratory, name="trained"), path="outputs/model.json", content=b"{}")


def measure(laboratory: Laboratory, model: Artifact, *values: float, name: str = "judged", **more: Any) -> list[Evaluation]:
    """An evaluation of the model by a run of its own for each value; the scope must be open."""
    asked = {"agent": "judge", "datasets": ("unseen",), "artifacts": (model.pk.hex,), "parameters": {"limit": 10}}
    runs = [launch(laboratory, name=f"{name}-{number}", **asked) for number, _ in enumerate(values)]
    for run, value in zip(runs, values, strict=True):
        score_runs(actor=laboratory.owner, scores={run: (value, 0.02)}, subject_artifact=model, **more)
    found = {row.run_id: row for row in Evaluation.objects.select_related("run")}
    return [found[run.pk] for run in runs]


def read(client: Client, evaluation: Evaluation, **asked: str) -> str:
    answer = client.get(f"{HERE}/evaluations/{evaluation.public_id}/", asked)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_its_page_says_of_what_on_what_and_by_what(laboratory: Laboratory, model: Artifact) -> None:
    with laboratory.opened():
        (evaluation,) = measure(laboratory, model, 0.8125, samples=400)
        holdout = Dataset.objects.get(slug="unseen").versions.get()
        code = evaluation.run.agent_version.content_hash
    body = read(client_of(laboratory.owner), evaluation)
    assert "0.812 ± 0.020" in body
    assert "400 samples" in body
    for link in (
        f"{HERE}/artifacts/{model.public_id}/",
        f"{HERE}/runs/{model.run.public_id}/",
        f"{HERE}/runs/{evaluation.run.public_id}/",
        f"{HERE}/datasets/unseen/?version=1",
        f"{HERE}/evaluations/{evaluation.public_id}/lineage/",
        f"{HERE}/agents/judge/#version-1",
    ):
        assert f'href="{link}"' in body, link
    assert holdout.content_hash in body
    assert code in body
    assert "limit: 10" in body


def test_an_evaluation_made_again_stands_beside_the_first(laboratory: Laboratory, model: Artifact) -> None:
    with laboratory.opened():
        first, second = measure(laboratory, model, 0.81, 0.79)
        other = add_artifact(actor=laboratory.owner, run=model.run, path="outputs/other.json", content=b"[]")
        measure(laboratory, other, 0.5, name="of another")
    client = client_of(laboratory.owner)
    body = read(client, first)
    table = body.partition("Every time it was measured")[2].partition("</table>")[0]
    assert re.findall(r"(0\.\d+) ± 0\.020", table) == ["0.790", "0.810"]
    assert f"{HERE}/evaluations/{second.public_id}/" in table
    history = client.get(f"{API}/evaluations/{first.public_id}/history").json()
    assert [item["id"] for item in history["items"]] == [second.public_id, first.public_id]


def test_a_long_history_is_paged(laboratory: Laboratory, model: Artifact) -> None:
    with laboratory.opened():
        (evaluation,) = measure(laboratory, model, 0.5)
        runs = copy_runs(actor=laboratory.owner, pattern=evaluation.run, count=30)
        score_runs(
            actor=laboratory.owner, scores={run: (0.5 + number / 100, None) for number, run in enumerate(runs)}, subject_artifact=model
        )
    client = client_of(laboratory.owner)
    body = read(client, evaluation)
    after = re.search(r'href="\?after=([^"]+)"', body)
    assert after is not None
    older = read(client, evaluation, after=after[1])
    assert body.count('<th class="figure" scope="row">') == 20
    assert older.count('<th class="figure" scope="row">') == 11
    assert client.get(f"{HERE}/evaluations/{evaluation.public_id}/?after=x").status_code == 404


def test_what_a_run_said_of_itself_and_what_others_measured_of_it_are_one_history(laboratory: Laboratory, model: Artifact) -> None:
    with laboratory.opened():
        score_runs(actor=laboratory.owner, scores={model.run: (0.9, None)})
        own = Evaluation.objects.get()
        measure(laboratory, model, 0.7)
    body = read(client_of(laboratory.owner), own)
    assert "the run’s own work, by the run itself" in body
    assert body.count('<th class="figure" scope="row">') == 2


def test_a_withdrawn_one_says_so_on_its_page_and_in_the_history(laboratory: Laboratory, model: Artifact) -> None:
    with laboratory.opened():
        first, second = measure(laboratory, model, 0.81, 0.79)
        subject, label = find_subject("artifact", model.public_id)
        withdraw(actor=laboratory.owner, subject=subject, label=label, reason="Trained on the wrong labels")
    client = client_of(laboratory.owner)
    body = read(client, first)
    assert "Trained on the wrong labels" in body
    assert body.count("rests on something withdrawn") == 2
    answer = client.get(f"{API}/evaluations/{second.public_id}").json()
    assert len(answer["withdrawn_by"]) == 1


def test_the_answer_of_the_api_says_what_the_page_says(laboratory: Laboratory, model: Artifact) -> None:
    with laboratory.opened():
        (evaluation,) = measure(laboratory, model, float("nan"))
        holdout = Dataset.objects.get(slug="unseen").versions.get()
    found = client_of(laboratory.owner).get(f"{API}/evaluations/{evaluation.public_id}").json()
    assert (found["value"], found["subject_artifact_id"]) == ("NaN", model.public_id)
    assert found["holdout"] == {"dataset": "unseen", "version": 1, "sha256": holdout.content_hash}
    assert found["measured_by"]["parameters"] == {"limit": 10}
    assert found["measured_by"]["agent_version"] == 1


def test_who_may_see_scores_alone_is_not_told_of_runs_and_data(laboratory: Laboratory, model: Artifact) -> None:
    with laboratory.opened():
        (evaluation,) = measure(laboratory, model, 0.8, name="a-secret-name")
        user = make_user("narrowed")
        add_member(actor=laboratory.owner, user=user, role="viewer", kinds=(Kind.EVALUATION,))
    client = client_of(Actor.of(user))
    body = read(client, evaluation)
    assert "0.800" in body
    for hidden in ("a-secret-name", "datasets/unseen", "model.json", f"/runs/{evaluation.run.public_id}/"):
        assert hidden not in body, hidden
    answer = client.get(f"{API}/evaluations/{evaluation.public_id}").json()
    assert (answer["holdout"], answer["measured_by"]) == (None, None)


def test_names_meant_ill_are_shown_as_text(laboratory: Laboratory, model: Artifact) -> None:
    with laboratory.opened():
        (evaluation,) = measure(laboratory, model, 0.8, name=HOSTILE, metric=HOSTILE)
    body = read(client_of(laboratory.owner), evaluation)
    assert "<script>alert" not in body
    assert "&lt;script&gt;alert(1)" in body


def test_pages_that_show_a_score_lead_to_it(laboratory: Laboratory, model: Artifact) -> None:
    with laboratory.opened():
        (evaluation,) = measure(laboratory, model, 0.8)
        assert Run.objects.count() == 2
    client = client_of(laboratory.owner)
    for page in ("benchmarks/accuracy/", f"runs/{evaluation.run.public_id}/", f"artifacts/{model.public_id}/"):
        assert f"{HERE}/evaluations/{evaluation.public_id}/" in client.get(f"{HERE}/{page}").content.decode(), page


def test_evaluate_again_asks_for_the_same_under_the_same_contract(laboratory: Laboratory, model: Artifact) -> None:
    with laboratory.opened():
        (evaluation,) = measure(laboratory, model, 0.8)
        judge = Agent.objects.get(slug="judge")
        publish_agent_version(
            actor=laboratory.owner, agent=judge, argv=["python", "main.py"], files=[stored("main.py", b"print(2)")], kind="evaluate"
        )
        publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize")
    client = client_of(laboratory.owner)
    address = f"{HERE}/runs/launch/?again={evaluation.public_id}"
    for page in (read(client, evaluation), client.get(f"{HERE}/artifacts/{model.public_id}/").content.decode()):
        assert f'href="{address}"' in page
    form = client.get(address)
    assert form.status_code == 200
    given = {name: form.context["form"][name].value() for name in ("benchmark", "contract", "agent", "version", "datasets", "artifacts")}
    assert given == {
        "benchmark": "accuracy", "contract": "2", "agent": "judge", "version": "1", "datasets": ["unseen@1"], "artifacts": [model.pk.hex],
    }  # fmt: skip
    shown = {bound.name: bound.value() for bound in form.context["form"] if bound.value() is not None}
    answer = client.post(f"{HERE}/runs/launch/", {**shown, "act": "launch", "once": form.context["once"]})
    assert answer.status_code == 303, answer.content.decode()
    with laboratory.opened():
        again = Run.objects.select_related("contract", "agent_version").latest("number")
        assert (again.contract.version, again.agent_version.number, again.parameters) == (2, 1, {"limit": 10})
        assert [entry.sha256 for entry in again.inputs.order_by("slug")] == [
            entry.sha256 for entry in evaluation.run.inputs.order_by("slug")
        ]


def test_a_launch_names_no_contract_unless_it_is_asked_for(laboratory: Laboratory) -> None:
    client = client_of(laboratory.owner)
    assert "Contract version" not in client.get(f"{HERE}/runs/launch/").content.decode()
    assert client.get(f"{HERE}/runs/launch/?again=eval_{'0' * 32}").status_code == 404
    strange = client.post(
        f"{HERE}/runs/launch/", {"benchmark": "accuracy", "agent": "judge", "contract": "77", "act": "launch", "once": "0" * 32}
    )
    assert strange.status_code in (409, 422)


@command(Verb.RUN_ENDED, needs=None, by_system=True)
def report(event: Draft, *, actor: Actor, run: Run, scores: list[Score]) -> dict[str, Any]:
    """What collecting score lines does, without the run; what its event says of it."""
    evaluate(event, run, scores, {})
    return dict(event.details)


def test_a_run_has_one_score_of_a_metric_and_says_whose_made_way(laboratory: Laboratory, model: Artifact) -> None:
    with laboratory.opened():
        other = add_artifact(actor=laboratory.owner, run=model.run, path="outputs/other.json", content=b"[]")
        keys = (model.pk.hex, other.pk.hex)
        run = launch(laboratory, agent="judge", datasets=("unseen",), artifacts=keys)
        first, last = run.inputs.filter(kind="artifact").order_by("slug").values_list("slug", flat=True)
        scores = [Score("accuracy", "accuracy", value, None, 9, subject=subject) for value, subject in ((0.9, first), (0.2, last))]
        details = report(actor=Actor.system(job_id="test"), run=run, scores=scores)
        kept = Evaluation.objects.get(run=run)
    assert (kept.value, details["scores_replaced_by_those_of_another_artifact"]) == (0.2, [f"accuracy of {first}"])
