"""A decision's lines as `parts/checklist.html` takes them: certificates, verdicts before there is one, and the copy that an approver reads. Pure."""

from collections.abc import Iterable
from typing import Any

VERDICTS = {"pass": "yes", "warn": "unknown", "wait": "unknown", "approval": "person", "refuse": "no"}  # of runs.admission.Answer
FACT_VERDICTS = {"pass": "yes", "fail": "no", "unknown": "unknown"}  # of runs.eligibility.Verdict
REVIEWS = ("reviewer_approval", "site_reviewer_approval")  # of a policy's gate, and of the site's
SHOWN_LINKS = 5  # of a fact's evidence at once; the others unfold
URGENCY = ("no", "person", "unknown", "yes")


def checks(lines: Iterable[Any]) -> list[dict[str, str]]:
    """Lines of `Verdict.as_json()`, what stands in the way first, else in their order: rules before limits. The words hold observed and
    required with their arithmetic, so the figures are not said again beside them."""
    found = [_check(line) for line in lines if isinstance(line, dict)]
    return sorted(found, key=lambda check: URGENCY.index(check["verdict"]))


def fact_checks(facts: Iterable[Any]) -> list[dict[str, Any]]:
    """Facts of a promotion as their row or an approval keeps them, what stands in the way first. `links` and `other_links` are their evidence, `more`
    how many things there are beside."""
    found = [_fact(entry) for entry in facts if isinstance(entry, dict)]
    return sorted(found, key=lambda check: URGENCY.index(check["verdict"]))


def _fact(entry: dict[str, Any]) -> dict[str, Any]:
    links = [_link(link) for link in entry.get("evidence", ()) if isinstance(link, dict)]
    waits = entry.get("verdict") == "unknown" and entry.get("key") in REVIEWS  # a check that a person's word settles
    return {
        "name": str(entry.get("name", "")),
        "verdict": "person" if waits else FACT_VERDICTS.get(str(entry.get("verdict")), "unknown"),
        "line": str(entry.get("words", "")),
        "note": str(entry.get("note", "")),
        "observed": str(entry.get("observed", "")),
        "required": "",  # the words say it; beside the figure it would read as a share
        "demanded": str(entry.get("required", "")),
        "links": links[:SHOWN_LINKS],
        "other_links": links[SHOWN_LINKS:],
        "more": entry.get("more", 0),
    }


def _link(link: dict[str, Any]) -> dict[str, Any]:
    """With the `query` of its address: a dataset's page shows the newest version, and it was the one of the label (`slug@2`) that was judged."""
    version = str(link.get("label", "")).rpartition("@")[2]
    return link | {"query": f"?version={version}" if link.get("page") == "dataset" and version.isascii() and version.isdecimal() else ""}


def _check(line: dict[str, Any]) -> dict[str, str]:
    return {
        "name": str(line.get("name", "")),
        "verdict": VERDICTS.get(str(line.get("answer")), "unknown"),
        "line": f"{line.get('words', '')} {line.get('way_out') or ''}".strip(),
        "observed": "",
        "required": "",
    }
