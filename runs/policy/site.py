"""What an installation demands of every policy in every workspace (feature 70). Pure, and it can only make narrower: what a policy would not do by
itself it does not do under these rules either, whatever they say.

The rules are frozen with each decision (`Facts.site`), so that a replay is exact after they have changed.
"""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator

from runs.eligibility import Fact, Verdict
from runs.policy.checks import CHECKS, look
from runs.policy.document import (
    ACTIONS,
    HOURS,
    MAX_CHECKS,
    MAX_FAULTS,
    TRIGGERS,
    WHOLE,
    BadPolicy,
    Policy,
    check_values,
    named_faults,
    said_of,
)
from runs.policy.facts import Facts
from runs.policy.gates import REVIEW
from workspaces.units import MS_PER_HOUR, gpu_time, plural


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of the rules (draft 2020-12)."""
    check = {"type": "object", "required": ["check"], "properties": {"check": {"enum": sorted(CHECKS)}}}
    listed = {"type": "array", "maxItems": MAX_CHECKS, "items": check}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Site rules for policies",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "paused": {"type": "string", "minLength": 1, "maxLength": 300},
            "forbidden_actions": {"type": "array", "maxItems": len(ACTIONS), "items": {"enum": sorted(ACTIONS)}},
            "forbidden_triggers": {"type": "array", "maxItems": len(TRIGGERS), "items": {"enum": sorted(TRIGGERS)}},
            "gates": {"type": "object", "additionalProperties": False, "properties": dict.fromkeys(sorted(ACTIONS), listed)},
            "acts_a_day": WHOLE,
            "gpu_hours_a_week": HOURS,
        },
    }


def read_rules(document: Any) -> dict[str, Any]:
    """Take a document, or raise BadPolicy with a sentence for each fault."""
    if not isinstance(document, Mapping):
        raise BadPolicy("The rules are one JSON object.")
    check_values(document)
    faults = [said_of(error) for error in islice(Draft202012Validator(schema()).iter_errors(document), MAX_FAULTS)]
    if faults:
        raise BadPolicy(*dict.fromkeys(faults))
    for action, listed in document.get("gates", {}).items():
        for number, entry in enumerate(listed, start=1):
            check = CHECKS[entry["check"]]
            place = f"gates, {action}, {number}, {check.name}"
            found = named_faults(place, entry, check.parameters, skip="check", needs=check.needs)
            if check.name == REVIEW and action != "promote":
                found.append(f"{place}: reviewers approve what is put forward, so this stands among the gates of promote.")
            faults += found or [f"{place}: {fault}" for fault in check.faults(entry)]
    if faults:
        raise BadPolicy(*faults[:MAX_FAULTS])
    return dict(document)


def gate_of(rules: Mapping[str, Any], does: str) -> list[dict[str, Any]]:
    """Checks that every gate of this action has besides its own."""
    return list(rules.get("gates", {}).get(does, ()))


def under(policy: Policy, site: Mapping[str, Any]) -> Policy:
    """The policy as facts are gathered for it: what the site's checks look at is read as well."""
    added = gate_of(site.get("document", {}), policy.does)
    return replace(policy, gate=(*policy.gate, *added)) if added else policy


def touches(rules: Mapping[str, Any], policy: Policy) -> bool:
    """Do the rules say anything of this policy?"""
    if rules.keys() & {"paused", "acts_a_day"} or (policy.does.startswith("launch") and "gpu_hours_a_week" in rules):
        return True
    return policy.does in rules.get("forbidden_actions", ()) or policy.on in rules.get("forbidden_triggers", ()) or bool(
        gate_of(rules, policy.does)
    )  # fmt: skip


def site_lines(policy: Policy, facts: Facts, gpu_ms: int | None) -> list[Fact]:
    """A line for each rule that is about this policy, each named as the site's and by its version. `gpu_ms` is what it would reserve now."""
    rules, version = facts.site["document"], facts.site["version"]
    found: list[Fact] = []

    def line(key: str, name: str, holds: bool, observed: str, required: str, words: str) -> None:
        found.append(Fact(f"site_{key}", name, Verdict.PASS if holds else Verdict.FAIL, observed, required, "" if holds else words))

    if "paused" in rules:
        line("paused", "Policies may act", False, "paused", "not paused", f"The operators have stopped every policy: {rules['paused']}")
    if policy.does in rules.get("forbidden_actions", ()):
        line("action", "Action allowed", False, policy.does, "another action", "No policy here may do this.")
    if policy.on in rules.get("forbidden_triggers", ()):
        line("trigger", "Trigger allowed", False, policy.on, "another trigger", "No policy here may be asked by this.")
    if "acts_a_day" in rules:
        most, acted = rules["acts_a_day"], int(facts.site.get("acted_lately", 0))
        words = "It goes on once the oldest of them is a day old."
        line("acts", "Acts a day", acted < most, plural(acted, "time", "times") + " in 24 hours", f"fewer than {most}", words)
    if "gpu_hours_a_week" in rules and policy.does.startswith("launch"):
        allowed, used = round(rules["gpu_hours_a_week"] * MS_PER_HOUR), facts.spent_week_gpu_ms
        asked = f" and {gpu_time(gpu_ms)} asked" if gpu_ms is not None else ""
        fits = used + (gpu_ms or 0) <= allowed and (gpu_ms is not None or used < allowed)
        line("hours", "GPU time a week", fits, f"{gpu_time(used)} used{asked}", f"at most {gpu_time(allowed)}", "It goes on next week.")
    lines = [replace(fact, name=_named(fact.name, version)) for fact in found]
    return lines + gate_lines(policy, facts, gate_of(rules, policy.does))


def gate_lines(policy: Policy, facts: Facts, gate: Iterable[Mapping[str, Any]]) -> list[Fact]:
    """Checks of the site's gate, each named as the site's."""
    version = facts.site.get("version", 0)
    looked = (look(dict(entry), facts) for entry in gate)
    return [replace(fact, key=f"site_{fact.key}", name=_named(fact.name, version)) for fact in looked]


def waits_for_reviewers(shut: Iterable[Fact], policy: Policy, facts: Facts) -> bool:
    """All that is left of the site's lines is reviewers' word, which is asked for by putting forward."""
    is_review = all(fact.key == f"site_{REVIEW}" and fact.verdict is Verdict.UNKNOWN for fact in shut)
    return is_review and policy.does == "promote" and facts.candidate is not None


def sources_of(rules: Mapping[str, Any]) -> list[str]:
    """Expressions in the gates, each once."""
    listed = (entry for gate in rules.get("gates", {}).values() for entry in gate)
    return list(dict.fromkeys(entry["expression"] for entry in listed if entry["check"] == "cel"))


def reviewers_of(policy: Policy, site: Mapping[str, Any]) -> int:
    """How many reviewers the policy's gate and the site's demand: the larger number, 0 where neither does."""
    gate = (*policy.gate, *gate_of(site.get("document", {}), policy.does))
    return max((int(entry.get("people", 1)) for entry in gate if entry["check"] == REVIEW), default=0)


def rule_words(rules: Mapping[str, Any], policy: Policy) -> list[str]:
    """What the rules demand of this policy, a sentence each; empty where they say nothing of it."""
    found = [f"Every policy is stopped: {rules['paused']}"] if "paused" in rules else []
    found += [f"{words}, so it never acts." for words in forbidden_words(rules, policy)]
    if "acts_a_day" in rules:
        found.append(f"It acts at most {plural(rules['acts_a_day'], 'time', 'times')} in 24 hours.")
    if "gpu_hours_a_week" in rules and policy.does.startswith("launch"):
        found.append(f"It uses at most {gpu_time(round(rules['gpu_hours_a_week'] * MS_PER_HOUR))} a week.")
    for entry in gate_of(rules, policy.does):
        takes = ", ".join(f"{name.replace('_', ' ').replace('gpu', 'GPU')} {value}" for name, value in entry.items() if name != "check")
        found.append(f"Its gate asks besides: {CHECKS[entry['check']].title}{f' ({takes})' if takes else ''}.")
    return found


def forbidden_words(rules: Mapping[str, Any], policy: Policy) -> list[str]:
    """What the rules let no policy do that this one does, each without its full stop."""
    found = [f"No policy may {policy.does.replace('_', ' ')}"] if policy.does in rules.get("forbidden_actions", ()) else []
    if policy.on in rules.get("forbidden_triggers", ()):
        found.append(f"No policy may be asked by {policy.on.replace('_', ' ')}")
    return found


def _named(name: str, version: int) -> str:
    return f"Site rules, version {version}: {name}"
