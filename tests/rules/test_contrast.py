"""Every pair of colours that carries text reaches 4.5:1, every shape 3:1, in both themes (WCAG 2.2, 1.4.3 and 1.4.11)."""

import re
from pathlib import Path

import pytest

CSS = Path(__file__).resolve().parents[2] / "static" / "css"
TOKEN = re.compile(r"--([\w-]+):\s*light-dark\((#[0-9a-f]{6}),\s*(#[0-9a-f]{6})\);")
COLOURS = {name: {"light": light, "dark": dark} for name, light, dark in TOKEN.findall((CSS / "tokens.css").read_text())}

STATES = ("running", "good", "attention", "bad", "person")
TEXT = [
    *((colour, ground) for colour in ("ink", "muted", "accent") for ground in ("paper", "surface", "sunk")),
    *((colour, ground) for colour in STATES for ground in ("paper", "surface", "sunk")),
    *((colour, "accent-soft") for colour in ("ink", "muted", "accent")),
    ("on-accent", "accent"),
    ("on-accent", "accent-strong"),
    ("on-state", "person"),
    ("bad", "bad-soft"),
    ("good", "good-soft"),
]
SHAPES = [
    *((colour, ground) for colour in ("field-line", "accent", "muted", *STATES) for ground in ("paper", "surface")),
    ("accent", "sunk"),
    ("bad", "sunk"),
]


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_measure_itself() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("colour", "ground"), TEXT)
def test_text_can_be_read(theme: str, colour: str, ground: str) -> None:
    assert contrast(COLOURS[colour][theme], COLOURS[ground][theme]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("colour", "ground"), SHAPES)
def test_shapes_can_be_seen(theme: str, colour: str, ground: str) -> None:
    assert contrast(COLOURS[colour][theme], COLOURS[ground][theme]) >= 3


def test_colours_stand_only_in_the_tokens() -> None:
    for sheet in CSS.glob("*.css"):
        if sheet.name != "tokens.css":
            assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[^{]*;)", sheet.read_text()) in ([], ["#000"]), sheet.name


def test_every_token_in_use_is_declared() -> None:
    declared = set(re.findall(r"--([\w-]+):", (CSS / "tokens.css").read_text()))
    for sheet in CSS.glob("*.css"):
        assert set(re.findall(r"var\(--([\w-]+)", sheet.read_text())) <= declared, sheet.name
