"""May a queued run start now, and if not, why? One rule for the dispatcher, which asks under locks, and for the pages, which say it. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from runs.share import Turn


class Holds(StrEnum):
    """Whom what stands in the way holds back."""

    RUN = "run"  # this run alone: those behind it may pass
    POOL = "pool"  # nothing behind it starts on its pool
    ALL = "all"  # nothing starts in the workspace


@dataclass(frozen=True, slots=True)
class Waits:
    """Why a run does not start: the reason, and what would release it, in sentences. `needs_somebody`: time alone does not. `wants_engine`: it
    would start if the engine, which other workspaces use too, had the places."""

    holds: Holds
    reason: str
    release: str
    needs_somebody: bool = False
    wants_engine: bool = False

    @property
    def words(self) -> str:
        return f"{self.reason} {self.release}"


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Runs at work in the workspace. `allowed` is the hard stop, at which runs wait; None without one. A limit that only warns lets them
    start."""

    running: int
    allowed: int | None

    @property
    def is_full(self) -> bool:
        return self.allowed is not None and self.running >= self.allowed

    def with_one_more(self) -> "AtOnce":
        return replace(self, running=self.running + 1)

    @property
    def words(self) -> str:
        """Why one more has to wait, where it is full."""
        return f"{self.running} of {self.allowed} runs run at once."


@dataclass(frozen=True, slots=True)
class Hold:
    """Somebody holds the queue of the workspace: nothing of it starts until it is released."""

    by: str
    reason: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Room:
    """How full a pool is, and its engine, which other workspaces use too. `next_end`: which run there is bound to end first, in words. `turn`:
    other workspaces go first on the engine. `closed_by`, `closed_reason`: who closed the pool and why, where that is known."""

    slug: str
    slots: int
    taken: int
    is_accepting: bool
    isolation: str
    isolation_words: str
    engine: str
    engine_slots: int
    engine_taken: int
    engine_is_accepting: bool
    next_end: str = "no end is known"
    turn: Turn | None = None
    closed_by: str = ""
    closed_reason: str = ""

    @property
    def closed_words(self) -> str:
        """Who or what takes no new work, and why."""
        if self.is_accepting:
            return f"{self.engine} takes no new work."
        who = f"{self.slug} takes no new work: {self.closed_by} closed it" if self.closed_by else f"{self.slug} takes no new work"
        return f"{who}. Why: {sentence(self.closed_reason)}" if self.closed_reason else f"{who}."


@dataclass(frozen=True, slots=True)
class Asked:
    """What a queued run wants, and was admitted on. `budget`: why the window that has begun meanwhile has no room for it; empty where it has.
    `withdrawn`: what it rests on and was withdrawn meanwhile; empty where nothing was. `held_out`: likewise what it reads and is held out now."""

    slots: int
    isolation: str
    isolation_words: str
    asked_by: str
    asker_may_launch: bool
    budget: str = ""
    withdrawn: str = ""
    held_out: str = ""


def what_holds(run: Asked, room: Room, at_once: AtOnce, hold: Hold | None = None) -> Waits | None:
    """The first thing that stands in the way of a run; None where it may start. What is wrong with the run itself comes first: it holds back
    nobody else, whatever room there is."""
    own = _wrong_with(run, room)
    if own is not None:
        return own
    if run.budget:
        return Waits(Holds.RUN, run.budget, "Those behind it may pass.")
    if hold is not None:
        return Waits(
            Holds.ALL,
            f"{hold.by} holds the queue. Why: {sentence(hold.reason)}",
            "It starts once the queue is released.",
            needs_somebody=True,
        )
    if not room.is_accepting or not room.engine_is_accepting:
        closed = room.slug if not room.is_accepting else room.engine
        return Waits(Holds.POOL, room.closed_words, f"It starts once an operator opens {closed} again.", needs_somebody=True)
    if at_once.is_full:
        return Waits(Holds.ALL, at_once.words, f"It starts when one of them ends; {room.next_end}.")
    if room.taken + run.slots > room.slots:
        lacking = room.taken + run.slots - room.slots
        free = "a slot is" if lacking == 1 else f"{lacking} slots are"
        return Waits(
            Holds.POOL, f"{room.taken} of {room.slots} slots of {room.slug} are taken.", f"It starts when {free} free; {room.next_end}."
        )
    if room.engine_taken + run.slots > room.engine_slots:
        return Waits(
            Holds.POOL,
            f"{room.engine_taken} of {room.engine_slots} places of {room.engine} are taken, by this workspace and others.",
            "It starts when one is free.",
            wants_engine=True,
        )
    if room.turn is not None and room.engine_taken + room.turn.slots + run.slots > room.engine_slots:
        return Waits(
            Holds.POOL,
            f"Another workspace that waits for {room.engine} goes first: it has had {room.turn.first.words} there in 24 hours, this one "
            f"{room.turn.own.words}.",
            "The smallest share for its weight goes first; it starts when its turn comes.",
            wants_engine=True,
        )
    return None


def _wrong_with(run: Asked, room: Room) -> Waits | None:
    """What somebody has to put right of the run itself, or of where it is to go."""
    if not run.asker_may_launch:
        return _only_it(f"{run.asked_by} may no longer launch runs here.", "Cancel it, or give the right back.")
    if run.withdrawn:
        return _only_it(
            f"{run.withdrawn} was withdrawn, and it rests on that.",
            "It starts once the withdrawal is undone; or cancel it and launch it on something else.",
        )
    if run.held_out:
        return _only_it(
            f"It reads {run.held_out}, which was held out after it was asked for.", "Cancel it, and launch it on something else."
        )
    if run.isolation != room.isolation:
        return _only_it(
            f"{room.slug} now gives {room.isolation_words}, and the run was admitted on {run.isolation_words}.",
            "It starts when the pool is as it was; cancel it and launch again to run on the pool as it is.",
        )
    for name, slots in ((room.slug, room.slots), (room.engine, room.engine_slots)):
        if run.slots > slots:
            return _only_it(
                f"It needs {run.slots} slots and {name} has {slots}.",
                "It starts once there are more; or cancel it and launch it on another pool.",
            )
    return None


def sentence(text: str) -> str:
    """What somebody wrote, ended as a sentence, so that another can follow it."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _only_it(reason: str, release: str) -> Waits:
    return Waits(Holds.RUN, reason, release, needs_somebody=True)
