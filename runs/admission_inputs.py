"""The rule about inputs: is a run given what the agent's version says that it needs? Pure, a part of `runs.admission`."""

from dataclasses import dataclass
from typing import Any

from workspaces.agent_inputs import Given, Need, listed, unmet


@dataclass(frozen=True, slots=True)
class InputFacts:
    needs: tuple[Need, ...]  # those that are required
    given: tuple[Given, ...]


def input_facts_from(kept: dict[str, Any]) -> InputFacts:
    given = (Given(**{**one, "names": tuple(one["names"])}) for one in kept["given"])
    return InputFacts(tuple(Need(**need) for need in kept["needs"]), tuple(given))


def judge(agent: str, facts: InputFacts) -> tuple[bool, str, str]:
    """Whether it holds, what is so, and the way out."""
    missing = unmet(facts.needs, facts.given)
    given = ", ".join(one.label for one in facts.given) or "nothing"
    words = f"{agent} needs {listed(facts.needs)}; it is given {given}."
    return not missing, words, f"Add {listed(missing)} to its inputs." if missing else ""
