"""A certificate, or the verdict before there is one, as a checklist."""

from typing import Any

from runs.admission import Answer

VERDICTS = {Answer.PASS: "yes", Answer.WARN: "unknown", Answer.WAIT: "unknown", Answer.APPROVAL: "person", Answer.REFUSE: "no"}


def checks(lines: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Lines of `Verdict.as_json()` as `parts/checklist.html` takes them: what stands in the way first, rules before limits."""
    order = list(reversed(Answer))
    return [_check(line) for line in sorted(lines, key=lambda line: order.index(Answer(line["answer"])))]


def _check(line: dict[str, Any]) -> dict[str, str]:
    """The words hold observed and required with their arithmetic, so the figures are not said again beside them."""
    return {
        "name": str(line["name"]),
        "verdict": VERDICTS[Answer(line["answer"])],
        "line": f"{line['words']} {line.get('way_out') or ''}".strip(),
        "observed": "",
        "required": "",
    }
