"""Per-sample results, from the file that a run leaves beside its score to the page, and two evaluations held against each other."""

import json
import re
from typing import Any

import pytest
from django.test import Client

from runs.commands.artifact import delete_artifact
from runs.commands.artifact_dataset import import_artifact
from runs.models import Artifact, Evaluation, Run
from tests.factories import make_user
from tests.factories_pages import HOSTILE, client_of
from tests.factories_registry import make_agent_version, make_dataset_version
from tests.factories_runs import HOUR, Laboratory, drive, launch, make_laboratory
from workspaces.access import Actor, Kind
from workspaces.audit import Refusal
from workspaces.commands.benchmark import publish_contract
from workspaces.commands.dataset import create_dataset
from workspaces.commands.member import add_member
from workspaces.contract_metrics import Metric
from workspaces.models import Benchmark

pytestmark = pytest.mark.django_db(transaction=True)
HERE = "/workspaces/lab"
API = "/api/v1/workspaces/lab"

JUDGE = """
import json
job = json.load(open("../job.json"))["params"]
with open("../outputs/samples.jsonl", "w") as file:
    file.write(job["content"])
with open("../events.jsonl", "a") as lines:
    score = {"type": "score", "benchmark": "accuracy", "metric": job.get("metric", "accuracy"), "samples": job["samples"]}
    score |= {"value": job.get("value", 0.5), **job.get("counts", {})}
    lines.write(json.dumps({**score, "samples_file": job.get("file", "outputs/samples.jsonl")}) + "\\n")
"""


@pytest.fixture
def laboratory() -> Laboratory:
    made = make_laboratory()
    with made.opened():
        make_agent_version(made.owner, "judge", code=JUDGE.encode(), kind="evaluate", wall_seconds=60)
    return made


def lines(*samples: dict[str, Any]) -> str:
    return "".join(json.dumps(sample) + "\n" for sample in samples)


def results(*scores: float) -> str:
    return lines(*({"id": f"s{number}", "truth": 1, "output": score, "score": score} for number, score in enumerate(scores)))


def judged(laboratory: Laboratory, content: str, *, samples: int, **more: Any) -> Evaluation:
    with laboratory.opened():
        run = launch(laboratory, agent="judge", gpu_ms=HOUR, parameters={"content": content, "samples": samples, **more})
    ended = drive(laboratory, run)
    assert ended.status == "succeeded", ended.reason
    with laboratory.opened():
        return Evaluation.objects.select_related("samples_artifact", "run").get(run=run)


def read(client: Client, address: str, **asked: str) -> str:
    answer = client.get(f"{HERE}/evaluations/{address}", asked)
    assert answer.status_code == 200, address
    return str(answer.content.decode())


def test_a_run_leaves_its_samples_and_the_page_shows_them(laboratory: Laboratory) -> None:
    content = lines(
        {"id": "first", "truth": "yes", "output": HOSTILE, "score": 1},
        {"id": "second", "truth": "no", "output": "yes", "score": 0},
        {"id": "third", "status": "errored"},
    )
    evaluation = judged(laboratory, content, samples=3)
    assert evaluation.samples_artifact is not None
    assert evaluation.samples_read == {
        "path": "outputs/samples.jsonl", "counts": {"ok": 2, "errored": 1, "abstained": 0}, "scored": 2, "mean": 0.5, "fault_count": 0, "faults": [],
    }  # fmt: skip
    client = client_of(laboratory.owner)
    page = read(client, f"{evaluation.public_id}/")
    assert "3 samples, mean score 0.5000 of the 2 that were scored" in page
    assert "notice-attention" not in page
    table = read(client, f"{evaluation.public_id}/samples/")
    assert all(name in table for name in ("first", "second", "third"))
    assert "<script>alert" not in table
    assert "&lt;script&gt;alert(1)" in table
    errored = read(client, f"{evaluation.public_id}/samples/", status="errored")
    assert ("third" in errored, "second" in errored) == (True, False)
    answer = client.get(f"{API}/evaluations/{evaluation.public_id}/samples", {"status": "ok"}).json()
    assert [item["id"] for item in answer["items"]] == ["first", "second"]
    assert answer["next"] is None


def test_a_hundred_are_shown_and_the_rest_is_reached(laboratory: Laboratory) -> None:
    evaluation = judged(laboratory, results(*[1.0] * 250), samples=250)
    client = client_of(laboratory.owner)
    shown: list[str] = []
    asked: dict[str, str] = {}
    for _ in range(3):
        page = read(client, f"{evaluation.public_id}/samples/", **asked)
        shown += re.findall(r"<bdi>(s\d+)</bdi>", page)
        following = re.search(r'href="\?from=(\d+)"', page)
        asked = {"from": following[1]} if following else {}
    assert shown == [f"s{number}" for number in range(250)]
    assert asked == {}
    for strange in ("-1", "x", "9" * 30, "²"):
        assert "s0" in read(client, f"{evaluation.public_id}/samples/", **{"from": strange})
    told: list[str] = []
    cursor: dict[str, str] = {}
    while not told or cursor:
        answer = client.get(f"{API}/evaluations/{evaluation.public_id}/samples", {"limit": "60", **cursor}).json()
        told += [item["id"] for item in answer["items"]]
        cursor = {"cursor": answer["next"]} if answer["next"] else {}
    assert told == shown
    assert client.get(f"{API}/evaluations/{evaluation.public_id}/samples", {"cursor": "x"}).status_code == 422


def test_a_file_that_lies_is_told_and_loses_nothing(laboratory: Laboratory) -> None:
    content = results(1.0, 0.0) + "{oops\n" + '{"id": "s0", "score": 1}\n' + '{"id": "n", "score": NaN}\n' + "x" * 70_000 + "\n"
    evaluation = judged(laboratory, content, samples=400)
    client = client_of(laboratory.owner)
    page = read(client, f"{evaluation.public_id}/")
    assert "The score is said to be of 400 samples; 2 can be read in the file." in page
    assert "4 things in it could not be read as a sample." in page
    for told in ("line 3: not JSON", "line 4: its id stands above already", "line 5: NaN is not JSON", "line 6: longer than 64 KB"):
        assert told in page, told
    assert read(client, f"{evaluation.public_id}/samples/", status="fault").count("not read: ") == 4
    assert evaluation.value == 0.5
    assert evaluation.samples_artifact is not None
    with laboratory.opened():
        assert Artifact.objects.get(pk=evaluation.samples_artifact.pk).blob.bytes == len(content)


def test_a_file_that_the_run_did_not_leave_is_told(laboratory: Laboratory) -> None:
    evaluation = judged(laboratory, results(1.0), samples=1, file="outputs/other.jsonl")
    client = client_of(laboratory.owner)
    assert "The run left no file outputs/other.jsonl." in read(client, f"{evaluation.public_id}/")
    assert client.get(f"{HERE}/evaluations/{evaluation.public_id}/samples/").status_code == 404
    assert client.get(f"{API}/evaluations/{evaluation.public_id}").json()["samples_file"]["artifact_id"] is None


def test_a_path_out_of_the_folder_makes_it_no_score_line(laboratory: Laboratory) -> None:
    with laboratory.opened():
        asked = {"content": results(1.0), "samples": 1, "file": "../../etc/passwd"}
        run = launch(laboratory, agent="judge", gpu_ms=HOUR, parameters=asked)
    assert drive(laboratory, run).status == "succeeded"
    with laboratory.opened():
        assert not Evaluation.objects.exists()


def test_two_are_held_against_each_other_sample_by_sample(laboratory: Laboratory) -> None:
    better = judged(laboratory, results(*[1.0] * 60, *[0.0] * 20), samples=80)
    worse = judged(laboratory, results(*[1.0] * 40, *[0.0] * 40), samples=80)
    client = client_of(laboratory.owner)
    assert f"against={worse.public_id}" in read(client, f"{better.public_id}/compare/")
    found = client.get(f"{API}/evaluations/{better.public_id}/comparison", {"against": worse.public_id}).json()
    assert (found["gain"], found["difference"]["better"], found["difference"]["worse"], found["difference"]["equal"]) == (0.25, 20, 0, 60)
    assert 0.1 < found["gain_at_least"] < 0.25
    page = read(client, f"{better.public_id}/compare/", against=worse.public_id)
    assert "Better</span> by 0.25" in page
    assert "Worse</span> by 0.25" in read(client, f"{worse.public_id}/compare/", against=better.public_id)


def publish(laboratory: Laboratory, direction: str = "maximize", **parts: Any) -> None:
    with laboratory.opened():
        publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction=direction, **parts)


def test_the_mean_counts_every_sample_where_the_contract_says_so_and_doubts_are_shown(laboratory: Laboratory) -> None:
    content = results(*[1.0] * 9) + lines({"id": "e", "status": "errored"})
    publish(laboratory, counts_all_samples=True)
    left_out = judged(laboratory, content, samples=10, value=1.0)
    client = client_of(laboratory.owner)
    words = "The score is the mean of the 9 samples that were scored; over all, as the contract counts, it is 0.9."
    silent = "The score does not say how many samples errored; in the file there are 1, and the contract counts all."
    page = read(client, f"{left_out.public_id}/")
    assert "10 samples, mean score 0.9000 over all of them, as the contract counts" in page
    assert words in page and silent in page
    told = client.get(f"{API}/evaluations/{left_out.public_id}").json()["samples_file"]
    assert (told["mean_score"], told["scored"], told["samples"], told["doubts"]) == (0.9, 9, 10, [silent, words])

    def board() -> tuple[str, Any]:
        found = client.get(f"{API}/benchmarks/accuracy/scoreboard").json()
        return client.get(f"{HERE}/benchmarks/accuracy/").content.decode(), found

    page, answer = board()
    assert "its samples say otherwise" in page and words in page
    assert [item["doubts"] for item in answer["items"]] == [[silent, words]]
    assert b"over all, as the contract counts" in b"".join(client.get(f"{HERE}/benchmarks/accuracy/csv/"))
    (check,) = [check for check in answer["checks"] if check["name"] == "Its file of samples says the same"]
    assert (check["verdict"], check["observed"], check["line"]) == ("no", "2 doubts", silent)
    publish(laboratory, counts_all_samples=True, over_seeds="mean")
    judged(laboratory, content, samples=10, value=0.9, counts={"errored": 1})
    page, answer = board()
    assert "Its file of samples says the same" in page
    assert answer["checks"][-1]["verdict"] == "yes"
    assert [(item["value"], item["contract_version"], item["doubts"]) for item in answer["older"]] == [(1.0, 2, [silent, words])]


@pytest.mark.parametrize("metric", ["accuracy", "loss"])
def test_where_lower_is_better_the_gain_is_turned(laboratory: Laboratory, metric: str) -> None:
    if metric == "loss":
        publish(laboratory, metrics=(Metric("loss", "", "minimize"),))
    else:
        publish(laboratory, "minimize")
    low = judged(laboratory, results(*[0.1] * 30), samples=30, metric=metric)
    high = judged(laboratory, results(*[0.4] * 30), samples=30, metric=metric)
    client = client_of(laboratory.owner)
    found = client.get(f"{API}/evaluations/{low.public_id}/comparison", {"against": high.public_id}).json()
    assert found["gain"] == pytest.approx(0.3)
    errored = judged(laboratory, lines({"id": "s0", "status": "errored"}, {"id": "s1", "score": 1}), samples=2, metric=metric)
    told = client.get(f"{API}/evaluations/{errored.public_id}/comparison", {"against": high.public_id}).json()
    assert (told["gain"], told["refusal"]) == (None, "1 sample has no score, and lower is better: nothing says what they count.")


def test_what_does_not_compare_says_why(laboratory: Laboratory) -> None:
    first = judged(laboratory, results(1.0, 0.0), samples=2)
    other_metric = judged(laboratory, results(1.0), samples=1, metric="recall")
    apart = judged(laboratory, lines({"id": "else", "score": 1}), samples=1)
    client = client_of(laboratory.owner)

    def told(other: Evaluation) -> Any:
        return client.get(f"{API}/evaluations/{first.public_id}/comparison", {"against": other.public_id}).json()

    assert told(first)["refusal"] == "It is the same evaluation."
    assert "same metric under the same contract version" in told(other_metric)["refusal"]
    assert (told(apart)["refusal"], told(apart)["only_candidate"]) == (
        "They cannot be held against each other: they have no sample in common.",
        2,
    )
    assert "They do not compare" in read(client, f"{first.public_id}/compare/", against=apart.public_id)
    assert client.get(f"{HERE}/evaluations/{first.public_id}/compare/", {"against": "eval_" + "0" * 32}).status_code == 404


def test_the_file_stays_while_its_score_rests_on_it(laboratory: Laboratory) -> None:
    evaluation = judged(laboratory, results(1.0), samples=1)
    assert evaluation.samples_artifact is not None
    with laboratory.opened(), pytest.raises(Refusal, match="It holds the samples of a score"):
        delete_artifact(actor=laboratory.owner, artifact=Artifact.objects.get(pk=evaluation.samples_artifact.pk), reason="room")


def test_who_may_not_see_artifacts_sees_no_sample(laboratory: Laboratory) -> None:
    evaluation = judged(laboratory, results(1.0), samples=1)
    user = make_user("narrowed")
    with laboratory.opened():
        add_member(actor=laboratory.owner, user=user, role="viewer", kinds=(Kind.EVALUATION,))
        assert Run.objects.count() == 1
    client = client_of(Actor.of(user))
    assert "samples/" not in read(client, f"{evaluation.public_id}/")
    for part in ("samples", "compare"):
        assert client.get(f"{HERE}/evaluations/{evaluation.public_id}/{part}/").status_code == 403
    assert client.get(f"{API}/evaluations/{evaluation.public_id}/samples").status_code == 403


def test_what_tells_the_truth_of_a_holdout_trains_nobody(laboratory: Laboratory) -> None:
    """Per-sample results show people what a holdout holds; given to an agent as an artifact they would be its answers."""
    with laboratory.opened():
        frozen = make_dataset_version(laboratory.owner, "held-out", role="holdout")
        publish_contract(
            actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize", holdout=frozen,
            accepts_no_isolation_reason="a test",
        )  # fmt: skip
    artifact = judged(laboratory, results(1.0), samples=1).samples_artifact
    assert artifact is not None
    with laboratory.opened():
        with pytest.raises(Refusal, match=r"kind train reads samples\.jsonl of judge-\d+, which tells the truth of held-out@1\."):
            launch(laboratory, artifacts=(artifact.public_id,))
        assert (
            launch(laboratory, agent="judge", artifacts=(artifact.public_id,), parameters={"content": "", "samples": 0}).kind == "evaluate"
        )
        answers = create_dataset(actor=laboratory.owner, slug="answers")
        with pytest.raises(Refusal, match="freeze it as a holdout"):
            import_artifact(actor=laboratory.owner, dataset=answers, artifact=artifact, role="train")
        kept = import_artifact(actor=laboratory.owner, dataset=answers, artifact=artifact, role="holdout")
        with pytest.raises(Refusal, match="reads answers@1"):
            launch(laboratory, datasets=(kept.public_id,))
