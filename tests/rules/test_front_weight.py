"""What a first page costs, and that nothing on it would need the content security policy to be loosened."""

import gzip
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


def test_styles_and_scripts_stay_light() -> None:
    assert len(gzip.compress(b"".join(sheet.read_bytes() for sheet in (ROOT / "static" / "css").glob("*.css")))) < 25_000
    assert sum(module.stat().st_size for module in (ROOT / "static" / "js").glob("*.js")) < 10_000


def test_every_sheet_is_linked() -> None:
    head = (ROOT / "templates" / "parts" / "head.html").read_text()
    assert {sheet.name for sheet in (ROOT / "static" / "css").glob("*.css")} == set(re.findall(r"css/([\w-]+\.css)", head))


def test_no_template_carries_inline_style_or_script() -> None:
    assert TEMPLATES
    for template in TEMPLATES:
        text = template.read_text()
        assert not re.search(r"\sstyle\s*=|<style|\son\w+\s*=|hx-on|javascript:", text), template
        assert not re.search(r"<script(?![^>]*\bsrc=)", text), template
