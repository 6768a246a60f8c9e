"""What a check of the catalogue is: a pure function of its parameters and the facts, with parameters that are JSON Schemas by name."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from runs.eligibility import Fact, Link, Verdict, linked
from runs.policy.facts import Facts

COUNT = {"type": "integer", "minimum": 0, "maximum": 1_000_000}
NUMBER = {"type": "number"}
HOURS = {"type": "number", "exclusiveMinimum": 0, "maximum": 1_000_000}
NAME = {"type": "string", "minLength": 1, "maxLength": 64}

Seen = tuple[bool | None, str, str, str]  # does it hold, observed, required, words
SeenWith = tuple[bool | None, str, str, str, tuple[Link, ...]]  # and where it can be looked at


@dataclass(frozen=True, slots=True)
class Check:
    """`parameters` are JSON Schemas by name; `needs` those that must be given; `faults` says what schemas cannot. `is_of_candidate`: it is about what
    would be promoted, so it is looked at again when a person decides on that."""

    name: str
    title: str
    look: Callable[[dict[str, Any], Facts], Seen | SeenWith]
    parameters: dict[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    faults: Callable[[dict[str, Any]], list[str]] = field(default=lambda _: [])
    is_of_candidate: bool = False

    def __call__(self, given: dict[str, Any], facts: Facts) -> Fact:
        holds, observed, required, words, *rest = self.look(given, facts)
        verdict = Verdict.UNKNOWN if holds is None else Verdict.PASS if holds else Verdict.FAIL
        return Fact(self.name, self.title, verdict, observed, required, words, **linked(rest[0] if rest else ()))
