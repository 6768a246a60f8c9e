"""How amounts, times, states and icons are written, and that nobody's text becomes markup."""

import math
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django import forms
from django.template import Context, Template
from django.test import RequestFactory

from workspaces import units
from workspaces.templatetags import lab

HOUR = 3_600_000
NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)  # a Friday
HOSTILE = '"><script>alert(1)</script>'


def draw(template: str, **context: object) -> str:
    return Template("{% load lab %}" + template).render(Context(context))


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "—"),
        (0, "0"),
        (1, "<0.01"),
        (HOUR // 2, "0.50"),
        (int(11.2 * HOUR), "11.2"),
        (24 * HOUR, "24"),
        (int(663.4 * HOUR), "663"),
        (1211 * HOUR, "1,211"),
        (-3 * HOUR, "−3"),
    ],
)
def test_gpu_hours(ms: int | None, text: str) -> None:
    assert draw("{{ ms|gpu_hours }}", ms=ms) == text.replace("<", "&lt;")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "—"),
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1500, "1.5 kB"),
        (999_999, "1.0 MB"),
        (2_147_483_648, "2.1 GB"),
        (10**18, "1,000 PB"),
    ],
)
def test_bytes(count: int | None, text: str) -> None:
    assert draw("{{ count|bytes }}", count=count) == text


@pytest.mark.parametrize(
    ("micros", "text"), [(None, "—"), (0, "0.00 EUR"), (12_340_000, "12.34 EUR"), (3_400, "0.0034 EUR"), (-1_234_500_000, "−1,234.50 EUR")]
)
def test_money(micros: int | None, text: str) -> None:
    assert draw("{{ micros|money:'EUR' }}", micros=micros) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "—"),
        (math.nan, "—"),
        (0, "0 s"),
        (1.25, "1.2 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (2640, "44 min"),
        (3599, "1 h 00"),
        (10_080, "2 h 48"),
        (3720, "1 h 02"),
        (76 * 3600, "3 d 04 h"),
        (-90, "−2 min"),
    ],
)
def test_duration(seconds: float | None, text: str) -> None:
    assert draw("{{ seconds|duration }}", seconds=seconds) == text


@pytest.mark.parametrize(
    ("value", "uncertainty", "text"),
    [
        (1612.3, 18.4, "1612 ± 18"),
        (0.41237, 0.0123, "0.412 ± 0.012"),
        (1612, 123, "1610 ± 120"),
        (5.55, 0.0996, "5.55 ± 0.10"),
        (12345.6, 21, "12,346 ± 21"),
        (-0.001, 2.0, "0.0 ± 2.0"),
        (1612, None, "1612"),
        (1612, 0, "1612"),
        (1612, math.nan, "1612"),
        (0.5, None, "0.5000"),
        (-31.25, None, "−31.25"),
        (1e-9, None, "1.000e-9"),
        (1e300, 1e-5, "1.000e300 ± 0.000010"),
        (math.nan, 1, "NaN"),
        (-math.inf, None, "−∞"),
        (None, 3, "—"),
    ],
)
def test_number_is_rounded_to_its_uncertainty(value: float | None, uncertainty: float | None, text: str) -> None:
    assert draw("{% number value error %}", value=value, error=uncertainty) == text


def test_plural() -> None:
    assert draw('{% count n "run" "runs" %}', n=1) == "1 run"
    assert draw('{% count n "run" "runs" %}', n=0) == "0 runs"
    assert units.plural(1211, "run", "runs") == "1,211 runs"


@pytest.mark.parametrize(
    ("ahead", "text"),
    [
        (timedelta(seconds=-20), "now"),
        (timedelta(minutes=-59), "59 min ago"),
        (timedelta(hours=-2), "2 h ago"),
        (timedelta(hours=3), "in 3 h"),
        (timedelta(days=-3), "3 days ago"),
        (timedelta(days=-40), "18 Oct"),
        (timedelta(days=-400), "23 Oct 2025"),
    ],
)
def test_when_is_relative_and_exact(ahead: timedelta, text: str) -> None:
    html = draw("{% when moment now=now %}", moment=NOW + ahead, now=NOW, workspace=SimpleNamespace(zone="Europe/Berlin"))
    assert f">{text}</time>" in html
    assert f'datetime="{NOW + ahead:%Y-%m-%dT%H:%M:%SZ}"' in html
    assert " UTC · " in html
    assert "Europe/Berlin" in html


def test_clock_is_the_workspaces() -> None:
    berlin = SimpleNamespace(zone="Europe/Berlin")
    sunday = datetime(2026, 11, 29, 6, 40, tzinfo=UTC)
    assert ">Sunday 07:40 Europe/Berlin<" in draw("{% clock t now=now %}", t=sunday, now=NOW, workspace=berlin)
    assert ">today 23:30 UTC<" in draw("{% clock t now=now %}", t=NOW.replace(hour=23, minute=30), now=NOW, workspace=None)
    assert ">15 December 01:00 Europe/Berlin<" in draw(
        "{% clock t now=now %}", t=datetime(2026, 12, 15, tzinfo=UTC), now=NOW, workspace=berlin
    )
    assert ">Sunday 07:40<" in draw("{% clock t now=now zone=False %}", t=sunday, now=NOW, workspace=berlin)
    assert ">4 March 2027 00:00 UTC<" in draw(
        "{% clock t now=now %}", t=datetime(2027, 3, 4, tzinfo=UTC), now=NOW, workspace=SimpleNamespace(zone="Mars/X")
    )


def test_times_without_a_zone_are_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        draw("{% when moment %}", moment=datetime(2026, 1, 1))  # noqa: DTZ001 - the naive time is what the test is about
    assert draw("{% when moment %}", moment=None) == "—"


def test_state_has_shape_word_and_reason() -> None:
    html = draw("{% state s reason %}", s="unknown", reason="since 10:00")
    assert html == '<span class="state tone-attention">not answering</span> <span class="state-reason">since 10:00</span>'
    assert draw("{% state 'awaiting_approval' %}") == '<span class="state tone-person">waits for approval</span>'
    assert draw("{% state 'never_heard_of' %}") == '<span class="state tone-idle">never heard of</span>'
    assert "<script" not in draw("{% state s s word=s tone=s %}", s=HOSTILE)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("run_0190f3c27b7e7000a1b2c3d45e8c41b2", "run_5e8c41b2"),
        ("0190f3c2-7b7e-7000-a1b2-c3d45e8c41b2", "5e8c41b2"),
        ("bench_autogo_fast_learning", "bench_autogo_fast_learning"),
        ("", ""),
        (None, "—"),
    ],
)
def test_short_id(value: str | None, text: str) -> None:
    assert draw("{{ value|short_id }}", value=value) == text


def test_icons_are_hidden_unless_named() -> None:
    assert 'aria-hidden="true"' in draw("{% icon 'check' %}")
    named = draw("{% icon 'check' label=label %}", label=HOSTILE)
    assert 'aria-hidden="false"' in named
    assert 'role="img"' in named
    assert "<script" not in named


@pytest.mark.parametrize(
    ("cookie", "preferred", "shown"), [("dark", "light", "dark"), ("", "light", "light"), (HOSTILE, "light", "light"), ("", "odd", "auto")]
)
def test_theme_of_the_device_before_that_of_the_person(cookie: str, preferred: str, shown: str) -> None:
    request = RequestFactory().get("/")
    request.COOKIES["theme"] = cookie
    actor = SimpleNamespace(user=SimpleNamespace(theme=preferred))
    assert lab.theme(Context({"request": request, "actor": actor})) == shown
    assert lab.theme(Context({})) == "auto"


class Limit(forms.Form):
    hours = forms.DecimalField(label=HOSTILE, help_text=HOSTILE, widget=forms.NumberInput(attrs={"data-unit": "GPU-hours"}))
    notify = forms.BooleanField(label="Notify the owners", required=False)
    mode = forms.ChoiceField(label="Above it", widget=forms.RadioSelect, choices=[("stop", "Refuse")])


def test_a_field_shows_label_unit_hint_and_what_is_missing() -> None:
    html = draw("{{ form }}", form=Limit({"hours": "many"}))
    assert '<span class="field-unit">GPU-hours</span>' in html
    assert 'aria-describedby="id_hours_helptext id_hours_error"' in html
    assert 'id="id_hours_helptext"' in html
    assert 'id="id_hours_error"' in html
    assert "<legend>Above it</legend>" in html
    assert '<label class="field-switch">' in html
    assert "<script" not in html
