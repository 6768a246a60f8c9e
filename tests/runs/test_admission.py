"""Admission is pure: the same facts give the same verdict, every line shows its arithmetic, and every no its way out."""

import pytest

from runs.admission import Answer, Facts, LimitFacts, Rule, decide

HOUR = 3_600_000


def limit(**changed: object) -> LimitFacts:
    facts = {
        "name": "GPU-hours a week", "unit": "gpu_ms", "window": "week", "amount": 1200 * HOUR, "mode": "stop", "used": 1000 * HOUR,
        "reserved": 187 * HOUR, "asked": 24 * HOUR, "until": "Monday 00:00 Europe/Berlin",
    }  # fmt: skip
    return LimitFacts(**{**facts, **changed})  # type: ignore[arg-type]  # test input


def test_a_refusal_names_the_limit_the_arithmetic_and_the_way_out() -> None:
    verdict = decide(Facts(rules=(), limits=(limit(),)))
    assert verdict.answer == Answer.REFUSE
    assert verdict.reasons == [
        "24 GPU-hours more would make 1,211 of 1,200 this week. "
        "Free up 11 GPU-hours, wait until Monday 00:00 Europe/Berlin, or ask for an increase."
    ]


@pytest.mark.parametrize(
    ("mode", "answer"), [("stop", Answer.REFUSE), ("approval", Answer.APPROVAL), ("warn", Answer.PASS)], ids=["stop", "approval", "warn"]
)  # fmt: skip
def test_the_mode_decides_what_an_excess_means(mode: str, answer: Answer) -> None:
    assert decide(Facts((), (limit(mode=mode),))).answer == answer


def test_exactly_the_limit_passes_and_one_more_does_not() -> None:
    room = limit(used=0, reserved=0, amount=24 * HOUR)
    assert decide(Facts((), (room,))).answer == Answer.PASS
    assert decide(Facts((), (limit(used=0, reserved=1, amount=24 * HOUR),))).answer == Answer.REFUSE


def test_an_approval_lifts_only_limits_that_ask_for_one() -> None:
    assert decide(Facts((), (limit(mode="approval"),)), approved=True).answer == Answer.PASS
    assert decide(Facts((), (limit(mode="approval"), limit())), approved=True).answer == Answer.REFUSE


def test_a_refusal_outranks_an_approval() -> None:
    assert (
        decide(Facts((Rule("Pool takes work", False, "It is closed.", "Choose another."),), (limit(mode="approval"),))).answer
        == Answer.REFUSE
    )


def test_too_many_at_once_wait_and_are_not_refused() -> None:
    at_once = limit(name="Runs at once", unit="runs", window="now", amount=4, used=4, reserved=0, asked=1, until="")
    verdict = decide(Facts((), (at_once,)))
    assert (verdict.answer, verdict.lines[0].answer) == (Answer.PASS, Answer.WAIT)
    assert verdict.lines[0].words == "1 run more would make 5 of 4 at once."


def test_a_rule_that_resolves_by_itself_waits() -> None:
    verdict = decide(Facts((Rule("Pool is free", False, "All slots are taken.", "It starts when one is free.", waits=True),), ()))
    assert (verdict.answer, verdict.lines[0].answer) == (Answer.PASS, Answer.WAIT)


def test_what_is_not_asked_for_is_said_once() -> None:
    spend = limit(name="API spend a week", unit="api_micros", amount=20_000_000, used=1_500_000, reserved=0, asked=0)
    assert decide(Facts((), (spend,))).lines[0].words == "1.50 of 20.00 this week; it asks for none."
