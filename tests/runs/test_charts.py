"""Charts drawn by the server: what is drawn, at the edges of what a run can report, and that names cannot become markup."""

import math
import re
from html import escape

import pytest
from django.template import Context, Template
from hypothesis import given
from hypothesis import strategies as st

from runs import charts
from runs.templatetags.charts import line_chart as templatetag

HOSTILE = '</title><script>alert(1)</script>" onload="x'
RTL = "הפסד \u202eloss\u202c 损失"
floats = st.floats(allow_nan=True, allow_infinity=True)


def places(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)]


def draw(template: str, **context: object) -> str:
    return Template("{% load charts %}" + template).render(Context(context))


def test_a_hundred_thousand_points_become_two_a_pixel_and_keep_the_spike() -> None:
    points = [(float(step), math.sin(step / 900)) for step in range(100_000)]
    points[70_003] = (70_003.0, 50.0)
    points[20_001] = (20_001.0, -50.0)
    kept = charts.downsample(points)
    assert len(kept) <= 2 * charts.WIDTH
    assert (70_003.0, 50.0) in kept
    assert (20_001.0, -50.0) in kept
    assert [x for x, _ in kept] == sorted(x for x, _ in kept)
    per_column = [int(x) for x, _ in places(charts.line_chart([("loss", points)]).curves[0].path)]
    assert max(per_column.count(column) for column in set(per_column)) <= 3  # two, and one that rounding moves over the border


def test_few_points_are_drawn_as_they_are() -> None:
    points = [(0.0, 1.0), (1.0, 3.0), (2.0, 2.0)]
    assert charts.downsample(points) == points
    drawn = places(charts.line_chart([("loss", points)]).curves[0].path)
    assert [x for x, _ in drawn] == [0, 500, 1000]
    assert drawn[1][1] < drawn[2][1] < drawn[0][1]  # up is more


def test_nan_lifts_the_pen_and_a_lone_point_is_a_dot() -> None:
    points = [(0.0, 1.0), (1.0, math.nan), (2.0, 2.0), (3.0, math.inf), (4.0, 1.0), (5.0, 1.5)]
    drawn = charts.line_chart([("loss", points)]).curves[0].path
    assert drawn.count("M") == 3
    assert drawn.count("h0") == 2
    assert "nan" not in drawn
    assert "inf" not in drawn


@pytest.mark.parametrize("points", [[], [(0.0, math.nan)], [(math.nan, 1.0)]])
def test_nothing_to_draw_says_so(points: list[charts.Point]) -> None:
    assert charts.line_chart([("loss", points)]).is_empty
    html = draw("{% line_chart series 'loss' %}", series=[("loss", points)])
    assert "No numbers yet" in html
    assert "<svg" not in html


def test_one_point_is_a_figure_and_no_curve() -> None:
    html = draw("{% line_chart series 'loss' %}", series=[("loss", [(0.0, 0.69)])])
    assert "0.6900" in html
    assert "at step 0" in html
    assert "<path" not in html
    assert "data-chart\n" not in html
    assert "<path" in draw("{% line_chart series 'loss' %}", series=[("loss", [(0.0, 0.69)]), ("other", [(0.0, 1.0), (1.0, 2.0)])])
    assert [tick.label for tick in charts.line_chart([("loss", [(0.0, 0.69)])]).x_ticks] == ["0"]


def test_one_point_stands_in_the_middle_with_room_around_it() -> None:
    (x, y), *more = places(charts.line_chart([("loss", [(7.0, 3.0)])]).curves[0].path)
    assert not more
    assert x == charts.WIDTH / 2
    assert y == charts.HEIGHT / 2


def test_log_axis_leaves_out_what_is_not_above_zero() -> None:
    chart = charts.line_chart([("loss", [(0.0, 100.0), (1.0, 0.0), (2.0, -1.0), (3.0, 0.01), (4.0, 0.1)])], log=True)
    assert len(places(chart.curves[0].path)) == 3
    assert {"0.1", "1", "10"} <= {tick.label for tick in chart.y_ticks}


def test_ticks_are_round_and_without_binary_dust() -> None:
    assert [f"{tick:g}" for tick in charts.ticks(0, 1)] == ["0", "0.5", "1"]
    assert charts.ticks(0, 9000, 5) == [0, 2000, 4000, 6000, 8000]
    chart = charts.line_chart([("loss", [(0.0, 0.1), (1.0, 0.7)])])
    assert all(len(tick.label) <= 4 for tick in chart.y_ticks)


@given(st.lists(st.tuples(floats, floats), max_size=40), st.booleans(), floats)
def test_whatever_a_run_reports_gives_finite_coordinates(points: list[charts.Point], log: bool, target: float) -> None:
    ordered = sorted((point for point in points if not math.isnan(point[0])), key=lambda point: point[0])
    chart = charts.line_chart([("m", ordered)], log=log, target=target)
    drawn = places(chart.curves[0].path)
    assert all(-1 <= x <= charts.WIDTH + 1 and -1 <= y <= chart.height + 1 for x, y in drawn)
    assert "nan" not in chart.curves[0].path + chart.target
    assert len(chart.x_ticks) <= 21
    assert len(chart.y_ticks) <= 21
    spark = charts.sparkline([y for _, y in ordered], target=target)
    assert "nan" not in spark.path + spark.target + spark.end_y
    assert "inf" not in spark.path + spark.target + spark.end_y


def test_names_stay_text_in_every_chart() -> None:
    series = [(HOSTILE, [(0.0, 1.0), (1.0, 2.0)]), (RTL, [(0.0, 2.0), (1.0, 1.0)])]
    html = draw(
        "{% line_chart series t x=t table_url=t %}{% bars items t %}{% sparkline values t target=2 %}{% meter 1 2 4 t pace=0.5 %}",
        series=series,
        t=HOSTILE,
        items=[(HOSTILE, 1.0, "")],
        values=[1.0, 2.0],
    )
    assert "<script" not in html
    assert RTL in html
    assert "style=" not in html
    attributes = re.findall(r'<[^>"]*(?:"[^"]*"[^>"]*)*>', html)
    assert not [tag for tag in attributes if re.search(r"\son\w+=", re.sub(r'"[^"]*"', '""', tag))]
    assert html.count(f"<title>{escape(HOSTILE)}</title>") == 3


def test_the_curve_is_described_for_those_who_do_not_see_it() -> None:
    html = draw("{% line_chart series 'Loss' %}", series=[("train", [(0.0, 2.5), (10.0, 0.5)])])
    assert "<desc>train: 0.5000 at step 10, between 0.5000 and 2.500.</desc>" in html
    assert 'role="img"' in html


def test_bars_stand_on_zero() -> None:
    low, high, none, broken = charts.bars([("a", 5, ""), ("b", 10, "attention"), ("c", 0, ""), ("d", math.nan, "")], height=80)
    assert (low.height, high.height, none.height, broken.height) == ("40.0", "80.0", "0.0", "0.0")
    assert (low.y, high.y) == ("40.0", "0.0")
    assert charts.bars([]) == ()


@pytest.mark.parametrize(
    ("spent", "reserved", "limit", "expected"),
    [
        (492, 171, 1200, ("41.00%", "14.25%", False)),
        (1000, 400, 1200, ("83.33%", "16.67%", True)),
        (2000, 10, 1200, ("100.00%", "0.00%", True)),
        (0, 0, 0, ("0.00%", "0.00%", False)),
        (5, 5, 0, ("50.00%", "50.00%", True)),
    ],
)
def test_meter_never_runs_over_its_end(spent: int, reserved: int, limit: int, expected: tuple[str, str, bool]) -> None:
    meter = charts.meter(spent, reserved, limit, pace=0.57)
    assert (meter.spent, meter.reserved, meter.is_over) == expected
    assert meter.pace == "57.00%"
    assert charts.meter(1, 1, 2).pace == ""


def test_what_a_run_counts_in_bytes_is_drawn_in_mebibytes() -> None:
    drawn = templatetag([("run", [(0.0, 48 * 2**20)])], "memory_bytes")
    assert drawn["title"] == "memory, MiB"
    assert drawn["chart"].figures[0].value == "48"  # type: ignore[attr-defined]
    assert templatetag([("run", [(0.0, 48.0)])], "loss")["title"] == "loss"
