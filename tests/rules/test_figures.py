"""Each script that prints figures is named in the README, and the documents start scripts by make alone, which installs what they need."""

import re
from pathlib import Path

from labsite.embedded.home import CHECKOUT

SCRIPTS = sorted(path.stem for path in (CHECKOUT / "tests" / "bench").glob("*.py"))


def documents() -> list[Path]:
    return sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")])


def test_the_readme_has_one_line_for_each_script_of_figures() -> None:
    named = re.findall(r"\| `make bench BENCH=(\w+)", (CHECKOUT / "README.md").read_text())
    assert sorted(named) == SCRIPTS


def test_no_document_starts_such_a_script_past_make() -> None:
    past = [
        f"{path.name}: {line}"
        for path in documents()
        for line in path.read_text().splitlines()
        if re.search(r"python\b.*tests/bench/", line)
    ]
    assert past == []
