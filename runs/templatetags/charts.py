"""`{% load charts %}`: charts drawn by the server. Each takes numbers; the markup is in `templates/parts/`."""

from collections.abc import Sequence

from django import template

from runs import charts

register = template.Library()
BYTES, MEBIBYTE = "_bytes", 2**20
Named = tuple[str, Sequence[tuple[str, Sequence[charts.Point]]]]  # a chart: its title and its series


@register.filter
def with_curves(drawn: Sequence[Named]) -> list[Named]:
    """Charts that have a curve to show."""
    return [chart for chart in drawn if any(len(points) > 1 for _, points in chart[1])]


@register.filter
def with_figures(drawn: Sequence[Named]) -> list[Named]:
    """Charts of single points: figures stand closer together than curves."""
    return [chart for chart in drawn if not any(len(points) > 1 for _, points in chart[1])]


@register.inclusion_tag("parts/chart_line.html")
def line_chart(
    series: Sequence[tuple[str, Sequence[charts.Point]]],
    title: str,
    *,
    x: str = "step",
    log: bool = False,
    target: float | None = None,
    height: int = charts.HEIGHT,
    table_url: str = "",
) -> dict[str, object]:
    """Curves over x with axes; `table_url` leads to the same numbers as a table. What a run counts in bytes, by its name, is drawn in MiB."""
    if title.endswith(BYTES):
        title = f"{title.removesuffix(BYTES)}, MiB"
        series = [(name, [(at, value / MEBIBYTE) for at, value in points]) for name, points in series]
    chart = charts.line_chart(series, x_label=x, log=log, target=target, height=height)
    bottom = {"axis_y": height + 16, "full_height": height + 22}
    return {"chart": chart, "title": title, "x": x, "table_url": table_url, "plane": f"0 0 {charts.WIDTH} {height}", **bottom}


@register.inclusion_tag("parts/chart_spark.html")
def sparkline(
    values: Sequence[float | None], title: str, *, target: float | None = None, width: int = 180, height: int = 40
) -> dict[str, object]:
    """The course of a score, with a dotted target."""
    return {"spark": charts.sparkline(values, target=target, width=width, height=height), "title": title}


@register.inclusion_tag("parts/chart_bars.html")
def bars(items: Sequence[tuple[str, float, str]], title: str, *, height: int = 72, table_url: str = "") -> dict[str, object]:
    """Bars of (label, value, tone); tone "" or "attention" or "bad"."""
    return {"bars": charts.bars(items, height=height), "title": title, "height": height, "table_url": table_url}


@register.inclusion_tag("parts/meter.html")
def meter(spent: float, reserved: float, limit: float, label: str, *, pace: float | None = None, small: bool = False) -> dict[str, object]:
    """Spent (solid) and reserved (hatched) of a limit, all in one unit; `label` says it in words; `pace` is 0..1 of the window."""
    return {"meter": charts.meter(spent, reserved, limit, pace), "label": label, "small": small, "height": 8 if small else 14}
