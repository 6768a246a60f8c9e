"""Which runs deserve a person: what is found of them, in which order, who sees it, and how a person takes one off the list."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from runs.commands.overlap import Finding as Overlap
from runs.commands.overlap import overrule_verdict, record_index, record_overlap
from runs.commands.review import review_run, take_back_review
from runs.models import Review, Run
from runs.queries.review import Found, deserving, findings_of
from runs.review import Cost, Reason, contaminated, costly, surprising, undeclared
from tests.factories import make_user
from tests.factories_pages import add_artifact, client_of, copy_runs, fail_run, score_runs, set_run
from tests.factories_registry import make_agent_version, make_dataset_version, stored
from tests.factories_resources import join
from tests.factories_runs import HOUR, Laboratory, launch, make_laboratory
from workspaces.access import Actor, Kind, Role
from workspaces.audit import Denied, Refusal
from workspaces.commands.agent import publish_agent_version
from workspaces.commands.member import add_member
from workspaces.models import AgentVersion, AuditEvent, DatasetVersion
from workspaces.units import gpu_time

EARLIER = [0.70, 0.71, 0.69, 0.72, 0.70, 0.71]


def everything(kind: Kind) -> bool:
    return True


# --- Rules --------------------------------------------------------------------------------------------------------------------------------


def test_a_score_far_outside_the_ones_before_it_surprises_with_its_arithmetic() -> None:
    found = surprising(0.93, None, EARLIER)
    assert found is not None
    assert found.words == (
        "Its score is 0.9300; the 6 before it have the median 0.7050 and the MAD 0.005000: 30.4 robust deviations away, where 3.5 are the bound"
    )
    below = surprising(0.4, None, EARLIER)
    assert below is not None, "worse than ever wants a person as much as better than ever"


@pytest.mark.parametrize(
    ("value", "error", "earlier"),
    [
        (0.73, None, EARLIER),  # 3.4 deviations
        (0.93, None, EARLIER[:4]),  # too few to tell
        (0.93, 0.1, EARLIER),  # not more than its own standard error explains
        (0.7, None, [0.7] * 6),
        (0.7 + 1e-13, None, [0.7] * 6),  # the last digit of arithmetic
        (0.93, None, [float("nan")] * 10 + EARLIER[:4]),  # what is no number is held against nothing
    ],
)
def test_a_score_like_the_ones_before_it_does_not_surprise(value: float, error: float | None, earlier: list[float]) -> None:
    assert surprising(value, error, earlier) is None


def test_one_outlier_among_the_earlier_hides_no_other() -> None:
    """Mean and standard deviation of these would let 0.93 pass: that is why the rule is a robust one."""
    assert surprising(0.93, None, [*EARLIER, 5.0]) is not None


def test_only_the_last_twenty_scores_count() -> None:
    assert surprising(0.93, None, [0.1] * 50 + [0.93] * 19 + [0.92]) is None


@pytest.mark.parametrize(("value", "words"), [(float("nan"), "NaN"), (float("inf"), "∞"), (float("-inf"), "\u2212∞")])
def test_what_is_no_number_surprises_without_any_history(value: float, words: str) -> None:
    found = surprising(value, None, [])
    assert found is not None
    assert found.words == f"Its score is {words}"


def test_scores_that_were_all_alike_make_any_other_surprising() -> None:
    found = surprising(0.71, None, [0.7] * 5)
    assert found is not None
    assert "they are all alike" in found.words


@pytest.mark.parametrize("value", [1e308, -1e308, 5e-324])
def test_the_largest_and_smallest_numbers_break_no_rule(value: float) -> None:
    surprising(value, 1e308, [1e308, -1e308] * 5)
    assert surprising(value, None, EARLIER) is not None


def hours(spent: float, *like: float, succeeded: bool = True) -> str:
    cost = Cost("GPU time", int(spent * HOUR), [int(one * HOUR) for one in like], 36_000, gpu_time)
    found = costly([cost], succeeded=succeeded)
    return found.words if found else ""


def test_a_cost_far_from_its_estimate_is_told_with_both() -> None:
    assert (
        hours(3.2, 0.4, 0.4, 0.4)
        == "GPU time 3.2 GPU-hours, estimate 0.40 GPU-hours from 3 like runs: 8 times as much, 4 times is the bound"
    )
    assert hours(0.1, 0.4, 0.4, 0.5).endswith("4 times less, 4 times is the bound")
    assert hours(1.5, 0.4, 0.4, 0.4) == "", "less than four times"
    assert hours(3.2, 0.4, 0.4) == "", "two like runs make no estimate"
    assert hours(0.1, 0.4, 0.4, 0.4, succeeded=False) == "", "a run that failed cost little for that reason"
    assert hours(0.005, 0.0, 0.0, 0.0) == "", "less than a hundredth of an hour is no difference"
    assert "immeasurably" in hours(1, 0, 0, 0)


def test_nothing_read_and_nothing_undeclared_is_no_finding() -> None:
    assert contaminated([]) is None
    assert undeclared(0) is None


# --- The list -----------------------------------------------------------------------------------------------------------------------------

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lab() -> Laboratory:
    return make_laboratory()


def scored(lab: Laboratory, values: list[float], **more: Any) -> list[Run]:
    """Ended runs, the oldest first, with these scores."""
    pattern = Run.objects.first() or launch(lab)
    made = copy_runs(actor=lab.owner, pattern=pattern, count=len(values), **more)[::-1]
    for run in made:
        set_run(actor=lab.owner, run=run, spent_gpu_ms=HOUR)
    score_runs(actor=lab.owner, scores={run: (value, None) for run, value in zip(made, values, strict=True)})
    return made


def reasons(found: Found) -> dict[str, list[Reason]]:
    return {row.run.name: [finding.reason for finding in row.findings] for row in found.items}


def listed(may_see: Any = everything, reason: Reason | None = None) -> Found:
    return deserving(timezone.now(), may_see=may_see, reason=reason)


def test_each_reason_is_found_and_the_weightiest_stands_first(lab: Laboratory) -> None:
    with lab.opened():
        runs = scored(lab, [*EARLIER, 0.99, 0.7, 0.71])
        set_run(actor=lab.owner, run=runs[7], spent_gpu_ms=8 * HOUR)
        for run in copy_runs(actor=lab.owner, pattern=runs[0], count=3, statuses=("failed",), name="failing"):
            failed = run
            fail_run(actor=lab.owner, run=run, lines=["ValueError: nan"])
        found = listed()
        told = reasons(found)
        assert told[runs[6].name] == [Reason.SURPRISING]
        assert told[runs[7].name] == [Reason.COST]
        assert told[failed.name] == [Reason.FAILING]
        first = min(Run.objects.exclude(started_at=None), key=lambda run: run.started_at or run.created_at)
        assert told[first.name] == [Reason.FIRST], "the first run of an agent"
        assert [row.weight for row in found.items] == sorted((row.weight for row in found.items), reverse=True)
        assert (found.total, found.counts[Reason.SURPRISING], found.runs) == (4, 1, 12)
        assert [row.run.pk for row in listed(reason=Reason.COST).items] == [runs[7].pk]


def test_scores_of_another_agent_or_contract_are_no_measure(lab: Laboratory) -> None:
    with lab.opened():
        scored(lab, EARLIER)
        version = make_agent_version(lab.owner, "other", wall_seconds=60)
        (run,) = scored(lab, [0.99], agent_id=version.agent_id, agent_version_id=version.pk)
        assert reasons(listed()).get(run.name) == [Reason.FIRST]


def test_what_a_judge_measures_is_held_against_the_scores_of_the_agent_that_made_it(lab: Laboratory) -> None:
    with lab.opened():
        judge, weak, strong = (make_agent_version(lab.owner, slug, wall_seconds=60) for slug in ("judge", "weak", "strong"))
        pattern = launch(lab)
        made = {
            version: [
                add_artifact(actor=lab.owner, run=run, path="model.pt", content=version.agent.slug.encode())
                for run in copy_runs(
                    actor=lab.owner, pattern=pattern, count=8, agent_id=version.agent_id, agent_version_id=version.pk
                )
            ]
            for version in (weak, strong)
        }  # fmt: skip

        def judged(version: AgentVersion, at: int, value: float, hours: int) -> Run:
            (run,) = copy_runs(
                actor=lab.owner, pattern=pattern, count=1, kind="evaluate", agent_id=judge.agent_id, agent_version_id=judge.pk,
            )  # fmt: skip
            set_run(actor=lab.owner, run=run, ended_at=timezone.now() - timedelta(hours=hours))
            score_runs(actor=lab.owner, scores={run: (value, None)}, subject_artifact=made[version][at])
            return run

        for at, value in enumerate(EARLIER):
            judged(strong, at, value, 50 - at)
        first = judged(weak, 0, 0.1, 40)
        for at in range(1, 6):
            judged(weak, at, 0.1 + at / 100, 40 - at)
        alike, far = judged(strong, 6, 0.72, 20), judged(weak, 6, 0.7, 10)
        told = reasons(listed(reason=Reason.SURPRISING))
        assert told == {far.name: [Reason.SURPRISING]}, "0.7 is as the judge's other scores are, and not as those of what this agent makes"
        assert not {first.name, alike.name} & told.keys()


def test_only_the_first_run_that_ever_began_is_a_first_one(lab: Laboratory) -> None:
    """Also where the one before it is not among the runs that are looked at, or goes on still."""
    with lab.opened():
        (run,) = scored(lab, [0.7])
        version = make_agent_version(lab.owner, "second", wall_seconds=60)
        files = [stored("main.py", b"print(2)")]
        other = publish_agent_version(actor=lab.owner, agent=version.agent, argv=["python", "main.py"], files=files, wall_seconds=60)
        (old,) = copy_runs(actor=lab.owner, pattern=run, count=1, agent_id=version.agent_id, agent_version_id=version.pk)
        (new,) = copy_runs(actor=lab.owner, pattern=run, count=1, agent_id=version.agent_id, agent_version_id=version.pk)
        (changed,) = copy_runs(actor=lab.owner, pattern=run, count=1, agent_id=other.agent_id, agent_version_id=other.pk)
        found = {row.run.pk: [one.words for one in row.findings] for row in listed().items}
        assert found[old.pk] == ["It is the first run of second"]
        assert (new.pk in found, found[changed.pk]) == (False, ["It is the first run of second version 2"])
        long_ago = timezone.now() - timedelta(days=400)
        set_run(actor=lab.owner, run=old, started_at=long_ago, ended_at=long_ago)
        found = {row.run.pk: [one.words for one in row.findings] for row in listed().items}
        assert (new.pk in found, found[changed.pk]) == (False, ["It is the first run of second version 2"])


def test_what_was_contaminated_is_told_until_somebody_overrules_it(lab: Laboratory) -> None:
    with lab.opened():
        run = launch(lab)
        set_run(actor=lab.owner, run=run, status="succeeded", ended_at=timezone.now())
        version, held_out = DatasetVersion.objects.get(), make_dataset_version(lab.owner, "unseen", role="holdout")
        assert findings_of(run, timezone.now(), may_see=everything) == ()
        for side in (version, held_out):
            record_index(actor=Actor.system(job_id="test"), version=side, file=None)
        record_overlap(actor=Actor.system(job_id="test"), version=version, holdout=held_out, finding=Overlap(exact=1))
        (finding,) = findings_of(run, timezone.now(), may_see=everything)
        assert finding.words == f"It has read {version.label} (contaminated)"
        assert findings_of(run, timezone.now(), may_see=lambda kind: kind != Kind.DATASET) == ()
        link = f'<a href="/workspaces/lab/datasets/{version.dataset.slug}/?version={version.number}"><bdi>{version.label}</bdi></a> (contaminated)'
        assert link in client_of(lab.owner).get("/workspaces/lab/reviews/").content.decode()
        overrule_verdict(actor=lab.owner, version=version, verdict="clean", reason="The record is the licence text")
        assert findings_of(run, timezone.now(), may_see=everything) == ()


def test_a_persons_word_that_data_is_contaminated_is_told(lab: Laboratory) -> None:
    with lab.opened():
        run = launch(lab)
        set_run(actor=lab.owner, run=run, status="succeeded", ended_at=timezone.now())
        version = DatasetVersion.objects.get()
        record_index(actor=Actor.system(job_id="test"), version=version, file=None)
        overrule_verdict(actor=lab.owner, version=version, verdict="contaminated", reason="I know these games")
        (finding,) = findings_of(run, timezone.now(), may_see=everything)
        assert finding.words == f"It has read {version.label} (contaminated)"


def test_a_run_that_was_seen_comes_back_for_something_new_only(lab: Laboratory) -> None:
    with lab.opened():
        run = scored(lab, [*EARLIER, 0.99])[-1]
        owner = lab.owner
        seen = findings_of(run, timezone.now(), may_see=everything)
        with pytest.raises(Refusal, match="Say what came of it"):
            review_run(actor=owner, run=run, findings=seen, comment=" ")
        with pytest.raises(Denied):
            review_run(actor=join(owner, "viewer", Role.VIEWER), run=run, findings=seen, comment="x")
        review = review_run(actor=owner, run=run, findings=seen, comment="A better tokenizer")
        assert run.name not in reasons(listed())
        event = AuditEvent.objects.latest("sequence")
        assert (event.verb, event.subject_id) == ("run.reviewed", run.pk)
        with pytest.raises(Refusal, match="somebody has seen it meanwhile"):
            review_run(actor=owner, run=run, findings=findings_of(run, timezone.now(), may_see=everything), comment="x")
        set_run(actor=owner, run=run, spent_gpu_ms=9 * HOUR)
        assert reasons(listed())[run.name] == [Reason.COST], "what was seen stays seen, what is new is told"
        take_back_review(actor=owner, review=review)
        assert reasons(listed())[run.name] == [Reason.SURPRISING, Reason.COST]
        with pytest.raises(Refusal, match="taken back already"):
            take_back_review(actor=owner, review=review)


def test_the_page_takes_a_run_off_and_keeps_what_was_typed(lab: Laboratory) -> None:
    with lab.opened():
        run = scored(lab, [*EARLIER, 0.99])[-1]
        browser = client_of(lab.owner)
        page = browser.get("/workspaces/lab/reviews/").content.decode()
        assert "2 runs deserve a person" in page
        assert "robust deviations away" in page
        (finding,) = findings_of(run, timezone.now(), may_see=everything)
        url = f"/workspaces/lab/runs/{run.public_id}/review/"
        assert browser.post(url, {"comment": "", "finding": [finding.key]}).status_code == 422
        other = browser.post(url, {"comment": "typed words", "finding": ["surprising:0.5"]})
        assert (other.status_code, "typed words" in other.content.decode()) == (409, True), "what was not shown is not seen"
        assert browser.post(url, {"comment": "Looked at its games", "finding": [finding.key]}).status_code == 303
        page = browser.get("/workspaces/lab/reviews/?reason=surprising").content.decode()
        assert "No run deserves a person for this reason" in page
        assert "Looked at its games" in page
        assert browser.post(f"/workspaces/lab/reviews/{Review.objects.get().public_id}/take-back/").status_code == 303
        assert "Looked at its games" not in browser.get("/workspaces/lab/reviews/").content.decode()


def test_the_api_tells_the_same(lab: Laboratory) -> None:
    with lab.opened():
        run = scored(lab, [*EARLIER, 0.99])[-1]
        browser = client_of(lab.owner)
        listing = browser.get("/api/v1/workspaces/lab/reviews?reason=surprising").json()
        (row,) = listing["items"]
        assert (row["run_id"], row["weight"], listing["total"], listing["days"]) == (run.public_id, 60, 1, 30)
        assert browser.get("/api/v1/workspaces/lab/reviews?reason=nothing").status_code == 422
        made = browser.post(
            f"/api/v1/workspaces/lab/runs/{run.public_id}/review", {"comment": "Seen"}, content_type="application/json"
        ).json()
        assert made["keys"] == [finding["key"] for finding in row["findings"]]
        assert browser.get("/api/v1/workspaces/lab/reviews?reason=surprising").json()["items"] == []
        back = browser.post(f"/api/v1/workspaces/lab/reviews/{made['id']}/take-back", content_type="application/json")
        assert back.json()["taken_back_at"] is not None


def test_a_reader_of_runs_alone_is_told_of_no_score(lab: Laboratory) -> None:
    with lab.opened():
        run = scored(lab, [*EARLIER, 0.99])[-1]
        user = make_user("narrowed")
        add_member(actor=lab.owner, user=user, role="researcher", kinds=[Kind.RUN])
        browser = client_of(Actor.of(user))
        page = browser.get("/workspaces/lab/reviews/").content.decode()
        assert "robust deviations" not in page
        assert run.name not in page
        assert "0.99" not in browser.get("/api/v1/workspaces/lab/reviews").content.decode()
        (finding,) = findings_of(run, timezone.now(), may_see=everything)
        url = f"/workspaces/lab/runs/{run.public_id}/review/"
        assert browser.post(url, {"comment": "x", "finding": [finding.key]}).status_code == 409
        assert not Review.objects.exists(), "what somebody may not see, they cannot have seen"
        review = review_run(actor=lab.owner, run=run, findings=[finding], comment="Seen")
        back = browser.post(f"/api/v1/workspaces/lab/reviews/{review.public_id}/take-back", content_type="application/json")
        assert back.json()["keys"] == [], "its key has the score in it"


def test_as_many_statements_for_many_runs_as_for_one(lab: Laboratory, django_assert_max_num_queries: Any) -> None:
    with lab.opened():
        scored(lab, [*EARLIER, 0.99] * 10)
        listed()
        with django_assert_max_num_queries(14):
            listed()
