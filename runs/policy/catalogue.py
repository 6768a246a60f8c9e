"""What a document may name, as the editor and the API list it. Pure."""

from typing import Any

from runs.policy.checks import CHECKS
from runs.policy.choosing import RULES
from runs.policy.document import ACTIONS, INPUTS, LIMITS, TRIGGERS
from runs.policy.memory import NEEDS, PARAMETERS


def catalogue() -> list[tuple[str, list[tuple[str, str]]]]:
    """Part by part, each name with what stands beside it."""
    return [
        ("Triggers", [(name, _takes(takes)) for name, takes in TRIGGERS.items()]),
        ("Checks", [(check.name, _takes(check.parameters, check.needs)) for check in CHECKS.values()]),
        ("Actions", [(name, _takes(takes, needs)) for name, (needs, takes) in ACTIONS.items()]),
        ("Inputs of a launch", [(name, _takes(takes)) for name, takes in INPUTS.items()]),
        ("Memory of a sweep", [("memory", _takes(PARAMETERS, NEEDS))]),
        ("Rules that choose", [(name, _takes(rule.parameters, rule.needs)) for name, rule in RULES.items()]),
        ("Limits", [(name, "") for name in LIMITS]),
    ]


def rules_catalogue() -> list[tuple[str, list[tuple[str, str]]]]:
    """The same of what rules of the site may name."""
    rules = [
        ("paused", "why every policy is stopped"),
        ("forbidden_actions", f"list of {', '.join(ACTIONS)}"),
        ("forbidden_triggers", f"list of {', '.join(TRIGGERS)}"),
        ("gates", 'checks by action: {"promote": [{"check": "licence", "allowed": ["MIT"]}]}'),
        ("acts_a_day", "whole number, of one policy in 24 hours"),
        ("gpu_hours_a_week", "number, of one policy"),
    ]
    return [
        ("Rules", rules),
        ("Checks of a gate", [(check.name, _takes(check.parameters, check.needs)) for check in CHECKS.values()]),
    ]


def _takes(takes: dict[str, Any], needs: tuple[str, ...] = ()) -> str:
    return ", ".join(name if name in needs else f"{name}?" for name in takes)
