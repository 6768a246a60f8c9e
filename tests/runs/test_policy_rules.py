"""What a policy's document may say, what its rules choose, and when its schedule falls due. Nothing here asks a database."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from runs.policy.choosing import RULES, Choice
from runs.policy.decide import Outcome, decide
from runs.policy.document import BadPolicy, read_policy
from runs.policy.facts import Facts, Result, facts_from
from runs.policy.replay import Kept, in_words, replay, unasked
from runs.policy.starters import STARTERS
from runs.queries.policy_cause import last_due

HALVING = {
    "rule": "successive_halving", "axes": {"rate": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}, "resource": "epochs", "least": 1, "most": 9, "eta": 3, "first": 6
}  # fmt: skip
DOCUMENT: dict[str, Any] = {
    "trigger": {"on": "manual"},
    "conditions": [{"check": "nothing_under_way"}],
    "action": {"do": "launch_sweep", "agent": "worker", "benchmark": "accuracy", "choose": HALVING},
    "limits": {"gpu_hours": 10},
}
HOUR = 3_600_000


def facts(**known: Any) -> Facts:
    base: dict[str, Any] = {
        "at": "2026-11-29T12:00:00+00:00",
        "cause": {"on": "manual", "type": "person", "id": "0", "label": "somebody"},
        "of": {"agent": "worker", "benchmark": "accuracy"},
        "gpu_ms_each": HOUR,
        "left_gpu_ms": 100 * HOUR,
    }
    return Facts(**{**base, **known})


def results(*values: tuple[float, int, float | None]) -> tuple[Result, ...]:
    return tuple(
        Result(f"run_{place}", f"run {place}", {"rate": rate, "epochs": epochs}, value)
        for place, (rate, epochs, value) in enumerate(values)
    )


def choose(rule: dict[str, Any], **known: Any) -> Choice:
    return RULES[rule["rule"]].choose(rule, facts(**known), lambda point: None)


# --- Documents ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(STARTERS))
def test_what_an_editor_begins_with_is_taken(name: str) -> None:
    assert read_policy(STARTERS[name]).does


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"trigger": {"on": "moon_full"}}, "is none of"),
        ({"trigger": {"on": "schedule"}}, "how often"),
        ({"trigger": {"on": "run_ended", "colour": "red"}}, "'colour' is not known here; it takes agent, benchmark"),
        ({"conditions": [{"check": "gut_feeling"}]}, "there is no check 'gut_feeling'"),
        ({"conditions": [{"check": "budget_left"}]}, "gpu_hours is missing"),
        ({"conditions": [{"check": "budget_left", "gpu_hours": "many"}]}, "is not a number"),
        ({"conditions": [{"check": "nothing_under_way"}] * 21}, "more than 20"),
        ({"action": {"do": "promote_everything"}}, "is none of"),
        ({"action": {"do": "launch_run", "agent": "worker"}}, "benchmark is missing"),
        ({"action": {"do": "launch_run", "agent": "worker", "benchmark": "b", "inputs": [{"file": "/etc/passwd"}]}}, "name one of"),
        ({"action": {**DOCUMENT["action"], "choose": {**HALVING, "rule": "oracle"}}}, "is none of"),
        ({"action": {**DOCUMENT["action"], "choose": {**HALVING, "eta": 1}}}, "below 2"),
        ({"action": {**DOCUMENT["action"], "choose": {**HALVING, "least": 10}}}, "least 10 is above most 9"),
        ({"action": {**DOCUMENT["action"], "choose": {**HALVING, "axes": {"epochs": [1]}}}}, "is the resource"),
        ({"action": {**DOCUMENT["action"], "choose": {"rule": "ucb1", "axes": {"rate": {"low": 0, "high": 1}}}}}, "points of a grid"),
        ({"limits": {"gpu_hours": 0}}, "is not above 0"),
        ({"limits": {"mercy": 1}}, "'mercy' is not known here"),
        ({"extra": 1}, "'extra' is not known here"),
    ],
)
def test_a_document_that_cannot_be_is_told_where_and_why(change: dict[str, Any], words: str) -> None:
    with pytest.raises(BadPolicy) as told:
        read_policy(DOCUMENT | change)
    assert words in str(told.value)


@pytest.mark.parametrize("document", [None, [], "policy", 3])
def test_what_is_no_object_is_no_policy(document: Any) -> None:
    with pytest.raises(BadPolicy, match="JSON object"):
        read_policy(document)


# --- Successive halving -------------------------------------------------------------------------------------------------------------------


def test_halving_begins_with_the_least_and_lets_the_best_third_go_on() -> None:
    first = choose(HALVING)
    assert sorted(point["rate"] for point in first.chosen) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert {point["epochs"] for point in first.chosen} == {1}
    scored = results((0.1, 1, 0.1), (0.2, 1, 0.2), (0.3, 1, 0.9), (0.4, 1, 0.8), (0.5, 1, None), (0.6, 1, 0.4))
    second = choose(HALVING, results=scored)
    assert second.chosen == [{"rate": 0.3, "epochs": 3}], "five have a score, a third of them is one; what failed has none"
    assert [candidate.words for candidate in second.candidates[1:]] == [
        f"{place} of 5 with 1 epochs: not among the best 1" for place in (2, 3, 4, 5)
    ]
    lowest = choose(HALVING, results=scored, direction="minimize")
    assert lowest.chosen == [{"rate": 0.1, "epochs": 3}]
    third = choose(HALVING, results=(*scored, *results((0.3, 3, 0.95))))
    assert third.chosen == [], "one of the second rung is no third of anything, and every point has been tried"


def test_halving_draws_new_points_that_were_not_tried_and_the_same_for_the_same_facts() -> None:
    rule = {**HALVING, "axes": {"rate": {"low": 0.001, "high": 1, "scale": "log"}}, "first": 3, "seed": 7}
    first = choose(rule)
    again = choose(rule)
    assert first == again
    tried = tuple(Result("run", "run", point, None) for point in first.chosen)
    second = choose(rule, results=tried)
    assert len(second.chosen) == 3
    assert not {point["rate"] for point in second.chosen} & {point["rate"] for point in first.chosen}


# --- UCB1 ---------------------------------------------------------------------------------------------------------------------------------


def test_a_bandit_plays_every_arm_once_and_then_the_largest_bounds() -> None:
    rule = {"rule": "ucb1", "axes": {"rate": [0.1, 0.2, 0.3]}, "arms": 1}
    assert choose(rule).chosen == [{"rate": 0.1}]
    played = results((0.1, 1, 0.9), (0.2, 1, 0.1))
    assert choose(rule, results=played).chosen == [{"rate": 0.3}]
    full = results((0.1, 1, 0.6), (0.1, 1, 0.6), (0.2, 1, 0.1), (0.3, 1, 0.2))
    # n = 4, sqrt(2 ln 4) = 1.6651: 0.6 + 1.6651 / sqrt 2 = 1.777; 0.1 + 1.6651 = 1.765; 0.2 + 1.6651 = 1.865 (Auer et al. 2002, figure 1).
    chosen = choose({**rule, "arms": 3}, results=full)
    assert [(candidate.parameters["rate"], candidate.words.split(":")[0]) for candidate in chosen.candidates] == [
        (0.3, "bound 1.865"),
        (0.1, "bound 1.777"),
        (0.2, "bound 1.765"),
    ]
    assert choose(rule, results=full).chosen == [{"rate": 0.3}]


# --- Decisions ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "change", "outcome", "words"),
    [
        ({}, {}, Outcome.ACTS, "6 new configurations"),
        ({"under_way": 1}, {}, Outcome.HOLDS, "1 launch under way"),
        ({"missing": ("table has no version yet.",)}, {}, Outcome.HOLDS, "no version yet"),
        ({"problems": ("There is no agent 'worker'.",)}, {}, Outcome.FAILED, "no agent"),
        (
            {"spent_gpu_ms": 5 * HOUR},
            {},
            Outcome.LIMITED,
            "may use 10 GPU-hours in all, has used 5 GPU-hours, and would ask for 6 GPU-hours",
        ),
        ({}, {"action": {**DOCUMENT["action"], "seeds": [1, 2]}}, Outcome.LIMITED, "and would ask for 12 GPU-hours"),
        ({"week_gpu_ms": 20 * HOUR}, {"limits": {"budget_share_percent": 30}}, Outcome.ACTS, "6 new configurations"),
        (
            {"week_gpu_ms": 20 * HOUR, "spent_week_gpu_ms": HOUR},
            {"limits": {"budget_share_percent": 30}},
            Outcome.LIMITED,
            "may use 6 GPU-hours this week, has used 1 GPU-hour, and would ask for 6 GPU-hours",
        ),
        ({}, {"limits": {"budget_share_percent": 30}}, Outcome.LIMITED, "30 % of the week's GPU hours, of which no hard limit is set"),
        ({"gpu_ms_each": None}, {}, Outcome.LIMITED, "nobody can foresee"),
        ({"left_gpu_ms": None}, {"gate": [{"check": "budget_left", "gpu_hours": 1}]}, Outcome.BARRED, "no limit"),
        ({"left_gpu_ms": HOUR - 1}, {"gate": [{"check": "budget_left", "gpu_hours": 1}]}, Outcome.BARRED, "Budget left"),
        ({"of": {"agent": "another", "benchmark": "accuracy"}}, {}, Outcome.FAILED, "of another agent"),
        ({"acted": 3}, {"limits": {"decisions": 3}}, Outcome.LIMITED, "may act 3 times"),
        ({"failures": 2}, {"limits": {"failures": 2}}, Outcome.LIMITED, "failed 2 times in a row"),
        (
            {"last_acted_at": "2026-11-29T11:30:00+00:00"},
            {"limits": {"cooldown_minutes": 31}},
            Outcome.LIMITED,
            "acts again from 2026-11-29 12:01",
        ),
        ({"last_acted_at": "2026-11-29T11:30:00+00:00"}, {"limits": {"cooldown_minutes": 30}}, Outcome.ACTS, "new configurations"),
    ],
)
def test_a_decision_says_what_it_does_and_why(known: dict[str, Any], change: dict[str, Any], outcome: Outcome, words: str) -> None:
    decided = decide(read_policy(DOCUMENT | change), facts(**known))
    assert decided.outcome == outcome
    assert words in decided.words


def test_lasting_limits_stop_and_passing_ones_do_not() -> None:
    lasting = decide(read_policy(DOCUMENT | {"limits": {"decisions": 1}}), facts(acted=1))
    passing = decide(read_policy(DOCUMENT | {"limits": {"gpu_hours_a_week": 1}}), facts())
    assert (lasting.stops, passing.stops) == (True, False)


def test_a_check_that_is_not_in_the_catalogue_any_more_never_passes() -> None:
    policy = read_policy(DOCUMENT)
    gone = type(policy)(policy.trigger, ({"check": "gone"},), policy.gate, policy.action, policy.limits)
    decided = decide(gone, facts())
    assert (decided.outcome, decided.checks[0].verdict) == (Outcome.FAILED, "unknown")


def test_facts_are_the_same_after_they_were_kept_and_another_form_is_refused() -> None:
    known = facts(results=results((0.1, 1, 0.5)), missing=("a",), datasets=({"id": "1", "label": "table@1"},))
    assert facts_from(known.as_json()) == known
    with pytest.raises(ValueError, match="form 9"):
        facts_from({**known.as_json(), "form": 9})


def test_an_unchanged_version_gives_every_decision_again_and_another_says_where_it_differs() -> None:
    policy = read_policy(DOCUMENT)
    moments = [facts(under_way=place % 2, spent_gpu_ms=place * HOUR // 4) for place in range(40)]
    kept = []
    for number, moment in enumerate(moments, start=1):
        decided = decide(policy, moment).as_json()
        kept.append(
            Kept(f"d{number}", number, decided["outcome"], decided["words"], decided["candidates"], decided["gpu_ms"], moment.as_json())
        )
    same = replay(policy, kept)
    assert (same.count, same.same, same.differences) == (40, 40, ())
    narrower = read_policy(DOCUMENT | {"action": {**DOCUMENT["action"], "choose": {**HALVING, "first": 2}}})
    other = replay(narrower, kept)
    assert other.acted[0] == sum(entry.outcome == "acts" for entry in kept)
    assert other.acted[1] >= other.acted[0], "less at once fits more often"
    assert other.gpu_ms[1] < other.gpu_ms[0]
    changed = other.as_json()["changed"]
    assert {(one["launches_then"], one["launches_now"]) for one in changed} <= {(6, 2), (0, 2)}
    assert len(changed) == other.different
    assert replay(policy, [Kept("d", 1, "acts", "", [], None, {"form": 0})]).unread == 1


def test_what_a_simulation_cannot_tell_it_says() -> None:
    before = read_policy(DOCUMENT)
    seen = replay(before, [])
    seen = replace(seen, count=1, same=1)
    assert "not counted here" not in in_words(seen, 4, unasked=unasked(DOCUMENT, before))
    dearer = read_policy(DOCUMENT | {"action": {**DOCUMENT["action"], "gpu_hours_each": 10, "pool": "large"}})
    assert "It also changes the pool and the hours of each run: what that would have made of it is not in the facts" in in_words(
        seen, 4, unasked=unasked(DOCUMENT, dearer)
    )
    later = read_policy(DOCUMENT | {"trigger": {"on": "schedule", "every": "day"}})
    assert unasked(DOCUMENT, later) == ["the trigger"]
    assert unasked(None, later) == [], "there was no version before"


# --- Schedules ----------------------------------------------------------------------------------------------------------------------------

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("trigger", "now", "due"),
    [
        ({"every": "day", "at": "03:00"}, datetime(2026, 1, 5, 1, 59, tzinfo=UTC), "2026-01-04T03:00:00+01:00"),
        ({"every": "day", "at": "03:00"}, datetime(2026, 1, 5, 2, 0, tzinfo=UTC), "2026-01-05T03:00:00+01:00"),
        ({"every": "week", "at": "08:00", "weekday": "friday"}, datetime(2026, 1, 5, 12, tzinfo=UTC), "2026-01-02T08:00:00+01:00"),
        ({"every": "week"}, datetime(2026, 1, 5, 12, tzinfo=UTC), "2026-01-05T00:00:00+01:00"),
        ({"every": "hour", "at": "00:30"}, datetime(2026, 1, 5, 12, 29, tzinfo=UTC), "2026-01-05T12:30:00+01:00"),
        # The clock goes from 02:00 to 03:00 on 29 March: 02:30 is not there, and falls due at 03:30 as the clock then says.
        ({"every": "day", "at": "02:30"}, datetime(2026, 3, 29, 1, 29, tzinfo=UTC), "2026-03-28T02:30:00+01:00"),
        ({"every": "day", "at": "02:30"}, datetime(2026, 3, 29, 1, 30, tzinfo=UTC), "2026-03-29T03:30:00+02:00"),
        # It goes back from 03:00 to 02:00 on 25 October: 02:30 comes twice, and falls due at its first.
        ({"every": "day", "at": "02:30"}, datetime(2026, 10, 25, 0, 30, tzinfo=UTC), "2026-10-25T02:30:00+02:00"),
        ({"every": "day", "at": "02:30"}, datetime(2026, 10, 25, 1, 45, tzinfo=UTC), "2026-10-25T02:30:00+02:00"),
    ],
)
def test_a_schedule_falls_due_on_the_workspaces_clock(trigger: dict[str, Any], now: datetime, due: str) -> None:
    assert last_due(trigger, BERLIN, now).isoformat() == due


def test_an_hourly_schedule_falls_due_once_each_hour_whatever_the_clock_does() -> None:
    kathmandu = ZoneInfo("Asia/Kathmandu")  # 5:45 ahead
    moments = [datetime(2026, 1, 5, tzinfo=UTC) + timedelta(minutes=minute) for minute in range(0, 24 * 60, 5)]
    assert len({last_due({"every": "hour", "at": "00:15"}, kathmandu, moment) for moment in moments}) == 25
    assert {last_due({"every": "hour", "at": "00:15"}, kathmandu, moment).minute for moment in moments} == {15}
