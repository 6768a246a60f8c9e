"""What a pool asks of an engine that starts launchers itself, such as Slurm or Ray: plain values and five questions.

Travels to the far side: standard library, Python 3.8. The run folder is not the engine's concern; `ScheduledPool` has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from runs.pools.base import JSON, Status

PREFIX = "lab-"  # of every name that labsite gives a job


@dataclass(frozen=True)
class Launch:
    """A job to ask for: `argv` under a name of labsite's, on a machine that sees `folder`, to be ended after `wall_seconds` at the latest.
    `memory_bytes`: what the run may take, None where the engine's own default holds."""

    name: str
    argv: Sequence[str]
    folder: Path
    slots: int
    gpus: int
    wall_seconds: int
    memory_bytes: int | None


@dataclass(frozen=True)
class Placed:
    """What an engine says of a job.

    `reason`: in words, for people. `native`: the engine's own id, empty where it has none. `ended_as`: of an ended job that left no end in its
    folder, the reason of an Exit that this comes to: launcher_lost (tried once more), cancelled (interrupted: back to the queue), engine_failed
    (its launcher did not start), engine_cancelled, memory_limit or wall_limit. `is_ending`: of a running one, that it starts nothing any more.
    """

    status: Status
    reason: str = ""
    native: str = ""
    ended_as: str = "launcher_lost"
    is_ending: bool = False


class Scheduler(Protocol):
    """An engine. Every method may raise PoolError, and NoAnswer where the engine is silent; `title` is what people call it."""

    title: str

    def submit(self, launch: Launch) -> None:
        """Ask for it to be started once. The name is its comment as well, so that what else has that name is not taken for it.

        Looks the name up before it asks, so that an answer that was lost never starts twice. PoolError where the engine refuses, NoAnswer where
        it may have heard or not.
        """

    def look(self, name: str, *, fresh: bool = False) -> Placed:
        """The job of that name, if its comment is the name. UNKNOWN where the engine does not answer or says
        something new; MISSING where it answers and knows no such job. `fresh`: as it is now; without it one answer, half a
        second old at most, may serve many questions."""

    def stop(self, name: str) -> None:
        """End the job of that name, waiting or running; nothing where there is none."""

    def names(self) -> list[str]:
        """Names of every job of labsite's that waits or runs, for the finder of orphans."""

    def probe(self) -> Mapping[str, JSON]:
        """For "test connection": `version`, `nodes`, `gpus`, `warnings` (sentences)."""
