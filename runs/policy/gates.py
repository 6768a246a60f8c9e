"""Gates of what a candidate was made of, what that cost, and who has approved it. Pure over what `runs.checks.gate_chain` has found out.

Of a policy that launches, the same gates ask about the datasets that the launch would read.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from runs.eligibility import NAMED, Link
from runs.policy.check import HOURS, Check, Seen, SeenWith
from runs.policy.facts import Facts
from workspaces.licences import is_allowed, is_known
from workspaces.units import MS_PER_HOUR, gpu_time, plural

REVIEW = "reviewer_approval"
NOT_LOOKED = "What it was made of is not among the facts."
TOO_MUCH = "It rests on more than can be looked at."
CLASSES = ("public", "internal", "restricted")  # of egress, the openest first


def _contamination(given: dict[str, Any], facts: Facts) -> Seen | SeenWith:
    required = "each dataset under it clean"
    chain = facts.gates.get("chain")
    if chain is None:
        return None, "not looked at", required, NOT_LOOKED
    datasets = chain["datasets"]
    if not chain["is_whole"]:
        return None, "too much", required, TOO_MUCH, _links(datasets)
    doubts = chain.get("artifacts", [])  # that a run read as they are, and that are a holdout's or may be; facts of before name none
    bad = [entry for entry in datasets if entry["state"] != "clean"]
    if not bad and not doubts:
        words = "" if datasets else "It was made of no dataset."
        return (
            True,
            plural(len(datasets), "version clean", "versions clean") if datasets else "no dataset",
            required,
            words,
            _links(datasets),
        )
    said = [*bad, *doubts]
    words = " ".join(f"{entry['label']} is {entry['state']}: {entry['reason']}" for entry in said[:NAMED])
    is_known_bad = any(entry["state"] in ("contaminated", "suspicious") for entry in said)
    links = (*_links(bad), *(Link("artifact", entry["id"], entry["label"]) for entry in doubts))
    return (False if is_known_bad else None), f"{len(said)} of {len(datasets) + len(doubts)} not clean", required, words, links


def _cost_ceiling(given: dict[str, Any], facts: Facts) -> Seen | SeenWith:
    most = round(given["gpu_hours"] * MS_PER_HOUR)
    required, chain = f"at most {gpu_time(most)}", facts.gates.get("chain")
    if chain is None:
        return None, "not looked at", required, NOT_LOOKED
    words = f"{plural(chain['runs'], 'run', 'runs')} behind it used {gpu_time(chain['gpu_ms'])}."
    if chain["open_runs"]:
        words = f"{plural(chain['open_runs'], 'run', 'runs')} behind it has not ended, so it may cost more yet. {words}"
    is_over = chain["gpu_ms"] > most
    if not is_over and (chain["open_runs"] or not chain["is_whole"]):
        return None, gpu_time(chain["gpu_ms"]), required, words if chain["is_whole"] else f"{TOO_MUCH} {words}"
    return not is_over, gpu_time(chain["gpu_ms"]), required, words


def _licence(given: dict[str, Any], facts: Facts) -> Seen | SeenWith:
    allowed = given["allowed"]
    required, chain = f"of each dataset one of {', '.join(allowed)}"[:300], facts.gates.get("chain")
    if chain is None:
        return None, "not looked at", required, NOT_LOOKED
    datasets = chain["datasets"]
    if not chain["is_whole"]:
        return None, "too much", required, TOO_MUCH, _links(datasets)
    unknown = [entry for entry in datasets if not is_known(entry["licence"])]
    refused = [entry for entry in datasets if is_known(entry["licence"]) and not is_allowed(entry["licence"], allowed)]
    if refused:
        named = (f"{entry['label']} ({entry['licence']})" for entry in refused)
        words = f"Not among them: {_named(named, len(refused))}."
        return False, f"{len(refused)} of {len(datasets)} not allowed", required, words, _links(refused)
    if unknown:
        words = f"Of {_named((entry['label'] for entry in unknown), len(unknown))} the licence is not known."
        return None, f"{len(unknown)} of {len(datasets)} not known", required, words, _links(unknown)
    found = ", ".join(sorted({entry["licence"] for entry in datasets}))[:200]
    return True, found or "no dataset", required, "" if datasets else "It was made of no dataset.", _links(datasets)


def _undeclared_input(given: dict[str, Any], facts: Facts) -> Seen | SeenWith:
    required, chain = "none, and none possible", facts.gates.get("chain")
    if chain is None:
        return None, "not looked at", required, NOT_LOOKED
    found = chain["undeclared"]
    if found["count"]:
        words = f"Runs behind it have read what they had not declared: {_named(found['named'], found['count'])}."
        return False, f"{found['count']} not declared", required, words
    if not chain["is_whole"]:
        return None, "too much", required, TOO_MUCH
    if found["open"]:
        stood = "run" if found["open"] == 1 else "runs"
        words = f"{found['open']} {stood} behind it could read anything on the machine, and no owner answers for that."
        return None, "cannot be told", required, words, tuple(Link("run", entry["id"], entry["label"]) for entry in found["examples"])
    return True, f"none of {plural(chain['runs'], 'run', 'runs')}", required, ""


def _egress(given: dict[str, Any], facts: Facts) -> Seen | SeenWith:
    required, chain = f"at most {given['at_most']}", facts.gates.get("chain")
    if chain is None or chain["egress"] not in CLASSES:
        return None, "not looked at", required, NOT_LOOKED
    words = f"The strictest thing that it was made of, however far back, is {chain['egress']}."
    if CLASSES.index(chain["egress"]) > CLASSES.index(given["at_most"]):
        return False, chain["egress"], required, words
    return True if chain["is_whole"] else None, chain["egress"], required, words if chain["is_whole"] else f"{TOO_MUCH} {words}"


def _reviewer_approval(given: dict[str, Any], facts: Facts) -> Seen | SeenWith:
    wanted = int(given.get("people", 1))
    required = f"{plural(wanted, 'person', 'people')} other than proposer and author"
    found = facts.gates.get(REVIEW)
    if found is None:
        return None, "not looked at", required, "Who has approved it is not among the facts."
    bound = f"SHA-256 {found['sha256'][:12]}…"
    people, refused = found["approved"], found["refused"]
    if refused:
        words = f"{refused[-1]['person']} refused exactly this, {bound}, on {refused[-1]['at'][:10]}."
        return False, "refused", required, words, (Link("approval", refused[-1]["approval"], "the request"),)
    evidence = tuple(Link("approval", entry["approval"], entry["person"]) for entry in people)
    if len(people) < wanted:
        words = f"{len(people) or 'Nobody'} of them has approved exactly this, {bound}."
        return None, f"{len(people)} of {wanted}", required, words, evidence
    words = f"{_named((entry['person'] for entry in people), len(people))} approved exactly this, {bound}."
    return True, plural(len(people), "person", "people"), required, words, evidence


def _licence_faults(given: dict[str, Any]) -> list[str]:
    return [f"{name[:64]!r} is no SPDX identifier." for name in given["allowed"] if not is_known(name)]


def _links(datasets: Sequence[Mapping[str, Any]]) -> tuple[Link, ...]:
    return tuple(Link("dataset", entry["slug"], entry["label"]) for entry in datasets)


def _named(names: Any, count: int) -> str:
    first = [name for name, _ in zip(names, range(NAMED), strict=False)]
    return ", ".join(first) + (f" and {count - NAMED} more" if count > NAMED else "")


GATES = (
    Check("contamination", "All data under it clean", _contamination, is_of_candidate=True),
    Check("cost_ceiling", "Cost of all that went into it", _cost_ceiling, {"gpu_hours": HOURS}, ("gpu_hours",), is_of_candidate=True),
    Check(
        "licence",
        "Licences allowed",
        _licence,
        {"allowed": {"type": "array", "minItems": 1, "maxItems": 50, "items": {"type": "string", "minLength": 1, "maxLength": 100}}},
        ("allowed",),
        _licence_faults,
        is_of_candidate=True,
    ),
    Check("undeclared_input", "No undeclared input", _undeclared_input, is_of_candidate=True),
    Check("egress", "What may leave with it", _egress, {"at_most": {"enum": list(CLASSES)}}, ("at_most",), is_of_candidate=True),
    Check(
        REVIEW,
        "A reviewer's approval",
        _reviewer_approval,
        {"people": {"type": "integer", "minimum": 1, "maximum": 10}},
        is_of_candidate=True,
    ),
)  # fmt: skip
