"""Slurm by its commands: sbatch, squeue, sacct, scancel, sinfo. Standard library only, Python 3.8; written against 22.05.

A job is found by its name, which is labsite's own key, and counts only where its comment is the key as well: Slurm's ids wrap, and a
controller that was killed gives the id of a job that it forgot to the next one. No id is ever kept.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass

from runs.pools.base import JSON, NoAnswer, PoolError, Status
from runs.pools.scheduler import PREFIX, Launch, Placed

CALL_SECONDS = 12.0  # of one command; a controller that is down keeps squeue waiting for longer
SILENT_SECONDS = 3.0  # so long after a call without an answer nobody else is kept waiting
LISTED_SECONDS = 0.5  # so long one answer of squeue serves every attempt
ACCOUNTS_SECONDS = 300.0  # so long after a refusal the accounts are not asked again
TIME_MARGIN_SECONDS = 120  # of Slurm's limit above ours, which it looks at every half minute
MEMORY_MARGIN_BYTES = 64 << 20  # of the launcher beside the run
PATHS = "/usr/local/bin:/usr/bin:/bin:/opt/slurm/bin"  # where its programs may be besides

_PENDING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD", "POWER_UP_NODE"})
_RUNNING = frozenset({"RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "SIGNALING", "STOPPED", "STAGE_OUT", "RESIZING"})
# Ended states, and what an end without exit.json comes to.
_ENDED = {
    "COMPLETED": "engine_failed",
    "FAILED": "engine_failed",
    "NODE_FAIL": "launcher_lost",
    "BOOT_FAIL": "launcher_lost",
    "REVOKED": "launcher_lost",
    "PREEMPTED": "cancelled",
    "CANCELLED": "engine_cancelled",
    "OUT_OF_MEMORY": "memory_limit",
    "TIMEOUT": "wall_limit",
    "DEADLINE": "wall_limit",
}
_ORDER = {Status.RUNNING: 0, Status.PENDING: 1, Status.UNKNOWN: 2, Status.EXITED: 3}
_FORMAT = "%i|%j|%k|%T|%r"
_SACCT_FORMAT = "JobIDRaw,JobName%130,Comment%130,State%40,ExitCode"
_NO_REASON = frozenset({"", "None", "0:0"})
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z", re.ASCII)
# What sbatch and squeue say where the controller was not reached, or did not answer in time: it may have heard.
_SILENT = ("Unable to contact slurm controller", "timed out", "Connection refused", "Zero Bytes were transmitted", "Unable to contact")

_WAITING = {
    "Priority": "other jobs come before it",
    "Resources": "the nodes it needs are busy",
    "PartitionDown": "its partition is down",
    "PartitionTimeLimit": "its time limit is above what the partition allows",
    "PartitionNodeLimit": "it asks for more nodes than the partition has",
    "ReqNodeNotAvail": "nodes that it needs are not available",
    "BadConstraints": "no node could ever run it",
    "BeginTime": "it may not begin yet",
    "JobHeldAdmin": "an administrator holds it",
    "JobHeldUser": "it is held",
    "AssocGrpGRES": "its account uses all of its GPUs",
    "QOSMaxJobsPerUserLimit": "the account has as many jobs as it may",
}


@dataclass(frozen=True)
class Job:
    """A line of squeue or sacct."""

    native: str
    name: str
    comment: str
    state: str  # the first word: CANCELLED of "CANCELLED by 1000"
    said: str  # in full

    @property
    def is_ours(self) -> bool:
        return self.comment == self.name


class Slurm:
    """A cluster, as the account sees it that asks. `partition` and `account` are Slurm's own; empty for its defaults."""

    title = "Slurm"

    def __init__(self, *, partition: str = "", account: str = "") -> None:
        for value, what in ((partition, "a partition"), (account, "an account")):
            if value and not _PLAIN.match(value):
                raise PoolError(f"{what} of Slurm has letters, digits, '.', '_' and '-' only")
        self._place = [f"--{option}={value}" for option, value in (("partition", partition), ("account", account)) if value]

    def submit(self, launch: Launch) -> None:
        """Look the name up, and ask sbatch where Slurm does not know it."""
        known = self._look(launch.name, self._listed(fresh=True))
        if known.status == Status.UNKNOWN:
            raise NoAnswer(known.reason)
        if known.status != Status.MISSING:
            return
        # Nothing of our environment, no limits of our process, no second start by Slurm itself.
        options = ["--parsable", "--no-requeue", "--export=NIL", "--propagate=NONE", "--input=/dev/null", "--open-mode=append", "--chdir=/"]
        options += [f"--job-name={launch.name}", f"--comment={launch.name}", f"--output={launch.folder}/state/batch.log"]
        options += ["--nodes=1", "--ntasks=1", f"--cpus-per-task={launch.slots}"]
        options += [f"--time={math.ceil((launch.wall_seconds + TIME_MARGIN_SECONDS) / 60)}", *self._place]
        if launch.memory_bytes is not None:
            options.append(f"--mem={math.ceil((launch.memory_bytes + MEMORY_MARGIN_BYTES) / (1 << 20))}M")
        if launch.gpus:
            options.append(f"--gres=gpu:{launch.gpus}")
        script = f"#!/bin/sh\nPATH=/usr/local/bin:/usr/bin:/bin\nexport PATH\nexec {' '.join(map(shlex.quote, launch.argv))}\n"
        self._run("sbatch", *options, script=script)
        _LISTED.pop(_cluster(), None)

    def look(self, name: str, *, fresh: bool = False) -> Placed:
        return self._look(name, self._listed(fresh=fresh))

    def stop(self, name: str) -> None:
        self._run("scancel", f"--name={name}", f"--user={os.getuid()}")
        _LISTED.pop(_cluster(), None)

    def names(self) -> list[str]:
        listed = self._listed(fresh=True)
        if isinstance(listed, NoAnswer):
            raise listed
        living = (Status.PENDING, Status.RUNNING)
        return sorted({job.name for job in listed if job.is_ours and job.name.startswith(PREFIX) and _placed(job).status in living})

    def probe(self) -> Mapping[str, JSON]:
        """Ask sinfo and sacct. Warnings: no accounting, a partition that is not there, nodes that are down."""
        version = self._run("sinfo", "--version").strip()
        lines = [line.split("|") for line in self._run("sinfo", "--noheader", "--Node", "--format=%N|%T|%G|%R").splitlines()]
        wanted = [option[len("--partition=") :] for option in self._place if option.startswith("--partition=")]
        nodes = {words[0]: words for words in lines if len(words) == 4 and (not wanted or words[3] in wanted)}
        warnings = []
        if wanted and not nodes:
            warnings.append(f"There is no partition {wanted[0]}, or it has no nodes.")
        down = sorted(name for name, words in nodes.items() if words[1].startswith(("down", "drain", "fail", "unk")))
        if down:
            warnings.append(f"{len(down)} of {len(nodes)} nodes take no work: {', '.join(down)[:200]}.")
        try:
            self._run("sacct", "--noheader", "--allocations", "--format=JobID", "--starttime=now-1minutes")
        except PoolError as error:
            warnings.append(f"Slurm keeps no accounts here, so it forgets an ended job after some minutes ({error.reason[:120]}).")
        gpus = sum(_gpus(words[2]) for words in nodes.values())
        return {"version": version, "nodes": len(nodes), "gpus": gpus, "warnings": warnings}

    def _look(self, name: str, listed: list[Job] | NoAnswer) -> Placed:
        if isinstance(listed, NoAnswer):
            return Placed(Status.UNKNOWN, listed.reason)
        named = [job for job in listed if job.name == name]
        found = sorted((_placed(job) for job in named if job.is_ours), key=lambda placed: _ORDER[placed.status])
        if named and not found:
            # Neither ours nor nothing: were it said to be missing, it would be submitted again, and again.
            return Placed(Status.UNKNOWN, f"Slurm has a job of that name with another comment, {named[0].comment[:60]!a}")
        return found[0] if found else self._remembered(name)

    def _remembered(self, name: str) -> Placed:
        """What the accounts know of a job that the controller has forgotten; without accounts, nothing."""
        if time.monotonic() < _WITHOUT_ACCOUNTS.get(_cluster(), 0.0):
            return Placed(Status.MISSING, "Slurm knows no such job")
        try:
            # Without a start it would show only what ended since midnight.
            said = self._run(
                "sacct",
                "--noheader",
                "--parsable2",
                "--allocations",
                f"--name={name}",
                "--starttime=now-31days",
                f"--format={_SACCT_FORMAT}",
            )
        except NoAnswer as silent:
            return Placed(Status.UNKNOWN, silent.reason)
        except PoolError:
            # There may be none here for good, or this once: a run whose end they know is not to be lost for as long as we live.
            _WITHOUT_ACCOUNTS[_cluster()] = time.monotonic() + ACCOUNTS_SECONDS
            said = ""
        jobs = [job for job in _read(said) if job.name == name and job.is_ours and _placed(job).status == Status.EXITED]
        # Accounts lag behind: a job that they show as living and the controller does not know is not said to be either.
        return _placed(jobs[-1]) if jobs else Placed(Status.MISSING, "Slurm knows no such job")

    def _listed(self, *, fresh: bool) -> list[Job] | NoAnswer:
        """Every job of this account, by one call for all that ask at the same time."""
        kept = _LISTED.get(_cluster())
        if kept is not None:
            age = time.monotonic() - kept[0]
            if age < (SILENT_SECONDS if isinstance(kept[1], NoAnswer) else 0.0 if fresh else LISTED_SECONDS):
                return kept[1]
        found: list[Job] | NoAnswer
        try:
            said = self._run("squeue", "--noheader", "--all", "--states=all", f"--user={os.getuid()}", f"--format={_FORMAT}")
            found = _read(said)
        except PoolError as error:  # squeue is given nothing that could be refused: whatever it says, nothing is known
            found = NoAnswer(error.reason)
        _LISTED[_cluster()] = (time.monotonic(), found)
        return found

    def _run(self, program: str, *options: str, script: str = "") -> str:
        """Raises NoAnswer, or PoolError with what the program said."""
        env = {"PATH": f"{os.environ.get('PATH') or '/usr/bin'}:{PATHS}", "LC_ALL": "C", "SLURM_TIME_FORMAT": "standard"}
        if conf := os.environ.get("SLURM_CONF"):
            env["SLURM_CONF"] = conf
        try:
            done = subprocess.run(  # noqa: S603 -- a list; every option is labsite's own or checked
                [program, *options], env=env, cwd="/", input=script.encode(), capture_output=True, timeout=CALL_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise NoAnswer(f"Slurm did not answer {program} within {CALL_SECONDS:.0f} s") from error
        except OSError as error:
            raise NoAnswer(f"{program} is not on this machine: {error.strerror}") from error
        if done.returncode != 0:
            words = " ".join(done.stderr.decode(errors="replace").split())[:300] or f"status {done.returncode}"
            silent = any(sign in words for sign in _SILENT)
            raise NoAnswer(f"Slurm is silent: {words}") if silent else PoolError(f"Slurm refused: {words}")
        return done.stdout.decode(errors="replace")


_LISTED: dict[tuple[str, int], tuple[float, list[Job] | NoAnswer]] = {}
_WITHOUT_ACCOUNTS: dict[tuple[str, int], float] = {}


def _cluster() -> tuple[str, int]:
    return os.environ.get("SLURM_CONF", ""), os.getuid()


def _read(said: str) -> list[Job]:
    """Jobs in what squeue or sacct print; a line of another shape is none of labsite's."""
    jobs = []
    for line in said.splitlines():
        words = line.split("|", 4)  # a reason may be any text
        if len(words) == 5:
            native, name, comment, state, reason = words
            full = state if reason in _NO_REASON else f"{state} ({reason})"
            jobs.append(Job(native, name, comment, (state.split() or [""])[0], full))
    return jobs


def _placed(job: Job) -> Placed:
    label = f"job {job.native}"
    if job.state in _PENDING:
        code = job.said.rpartition("(")[2].rstrip(")")
        why = _WAITING.get(code, "")
        return Placed(Status.PENDING, f"Slurm keeps it waiting: {why} ({code})" if why else f"Slurm keeps it waiting ({code})", label)
    if job.state in _RUNNING:
        return Placed(Status.RUNNING, f"Slurm says {job.state}", label, is_ending=job.state == "COMPLETING")
    if job.state in _ENDED:
        return Placed(Status.EXITED, f"Slurm says that {label} ended: {job.said}", label, _ENDED[job.state])
    return Placed(Status.UNKNOWN, f"Slurm says {job.state[:60]!a} of {label}, which labsite does not know", label)


def _gpus(gres: str) -> int:
    """`gpu:a100:4(S:0-1),gpu:2` is 6."""
    return sum(int(found.group(1)) for found in re.finditer(r"(?:^|,)gpu(?::[^:,()]+)?:(\d+)", gres))
