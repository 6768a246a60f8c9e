"""What a launch asks for, as forms, API and policies hand it to `runs.commands.launch.launch_run` and `runs.queries.estimate.estimate`. Pure."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """Names are canonical ids, slugs or UUIDs. Amounts are integers: GPU milliseconds, micro-units of currency."""

    benchmark: str
    agent: str
    contract: int | None = None  # the benchmark's newest, by its version
    pool: str = ""  # the workspace's default pool
    agent_version: int | None = None  # the newest
    datasets: tuple[str, ...] = ()  # a dataset (its newest version), `<dataset>@<number>`, or a version's id
    artifacts: tuple[str, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    gpu_ms: int | None = None  # the run's budget; None: what the agent's wall limit needs
    api_micros: int = 0
    name: str = ""
    reason: str = ""
    priority: int = 0
