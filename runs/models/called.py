"""What a run or sweep rests on, by the names of the moment in which it was asked for: those of benchmarks and agents can be changed."""

from dataclasses import dataclass
from typing import Any, Protocol


class _Named(Protocol):
    name: str


@dataclass(frozen=True, slots=True)
class Called:
    then: str
    now: str

    @property
    def is_renamed(self) -> bool:
        return self.then != self.now

    def __str__(self) -> str:
        return self.then


def names_of(*, benchmark: _Named, agent: _Named) -> dict[str, str]:
    """What a row keeps when it is made."""
    return {"benchmark": benchmark.name, "agent": agent.name}


class CalledThen:
    """For rows with `names`. No part of what an approver agrees to: a new name changes nothing of what would run."""

    names: dict[str, str]
    benchmark: Any
    agent: Any

    @property
    def benchmark_called(self) -> Called:
        return Called(self.names.get("benchmark", self.benchmark.name), self.benchmark.name)

    @property
    def agent_called(self) -> Called:
        return Called(self.names.get("agent", self.agent.name), self.agent.name)
