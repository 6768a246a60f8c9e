"""What an ended attempt leaves goes into the store, in lanes of its engine's own (`runs/jobs/lanes.py`): it may take minutes.

A try that is cut off, by a full disk or a killed worker, has kept whole files, and the next one goes on behind them. A run
never waits for ever: after `PATIENCE_SECONDS` without a file it ends with what was kept, says so, and its folder stays in the pool, where
tidying up (`runs/jobs/tidy.py`) comes back for it once an hour (`kept_back`).
"""

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import structlog
from django.db.models import Max, QuerySet
from django.utils import timezone

from runs import ingest
from runs.commands.ending import MovedOn, NothingMore, add_outputs, finish_run
from runs.commands.harvest import LACKING, OWN_PATHS, Collected, Harvest
from runs.commands.memory import MOST_OF_A_RUN
from runs.error_lines import TAIL_BYTES, error_lines
from runs.jobs import lanes, lease
from runs.jobs.job import job
from runs.jobs.keeper import Keeper, TurnOver
from runs.jobs.rest import Rest
from runs.jobs.samples import samples_files
from runs.lifecycle import AttemptStatus
from runs.models import Attempt, KeptFile, RunLine, Watch
from runs.place import NotOurs, place_of
from runs.pools.base import Pool, PoolError, Status
from runs.pools.events import Score
from runs.queries.collecting import collecting, kept_back
from runs.queue import ring
from workspaces import kept_query, kept_write, scope, store
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.secret import forget_values
from workspaces.models import Workspace
from workspaces.store import StoreFull

log = structlog.get_logger(__name__)

PATIENCE_SECONDS = 900  # so long without a file kept, collecting is tried again; then the run ends without the rest
MISSING_GRACE_SECONDS = 15  # a folder that is gone for longer does not come back
RETRY_SECONDS = 30
LATE_RETRY_SECONDS = 3600
MIN_TRIES = 3
LAST_WORDS = 300  # characters of the last line of stderr that a run's reason has room for
MOST_MEMORY_LINES = MOST_OF_A_RUN + 1  # one more than become entries, so that it is said that there are more
MAX_TRIES = 50  # tries without a file kept, whatever ended them: a worker that dies of it each time


REST = Rest(0.1)  # runs end by the dozen


@partial(job, rest=REST)
def collect_attempt(actor: Actor, subject: uuid.UUID) -> None:
    """Collect what one ended attempt left; rung for the workspace, what each of them left that nobody collects just now."""
    workspace_id = scope.current_id()
    named, kept = kept_query.ask_together([_asked(_collecting, subject), _asked(_kept_back, subject)])
    for attempt_id, engine_id in named or kept or list(collecting().values_list("pk", "pool__engine")):
        lanes.put(lanes.Work.COLLECT, engine_id, attempt_id, partial(_collect_one, actor, workspace_id, attempt_id))
    REST.earn()


def _collect_one(actor: Actor, workspace_id: uuid.UUID, key: uuid.UUID) -> None:
    with scope.open_workspace(workspace_id):
        held = lease.take(key, is_collecting=True)
        if held is None:
            return
        pause, after_fault = 0, RETRY_SECONDS
        try:
            [attempt], [watch], waits, is_back = kept_query.ask_together(
                [
                    kept_query.question(Attempt, pk=key, related=("pool__engine", "run")),
                    kept_query.question(Watch, attempt=key),
                    _asked(_collecting, key),
                    _asked(_kept_back, key),
                ]
            )
            if waits:
                _collect(actor, attempt, watch)
            elif is_back:  # else another one has done it while we waited for our turn
                after_fault = LATE_RETRY_SECONDS
                _collect_late(actor, attempt)
        except Refusal as moved_on:
            pause = after_fault
            log.info("attempt moved on", attempt=key.hex, reason=str(moved_on))
        except TurnOver:
            Watch.objects.filter(attempt=key).update(collect_tries=0)
            ring("collect_attempt", subject=key)  # behind those that wait
        except Exception as fault:
            pause = after_fault
            log.warning("outputs not collected yet", attempt=key.hex, fault=_in_words(fault), exc_info=True)
        finally:
            lease.release(held, pause)


def _asked(build: Callable[..., Any], key: uuid.UUID) -> kept_query.Question:
    return kept_query.Question(build, (), {"key": key})


def _collecting(key: Any) -> "QuerySet[Any, Any]":
    return collecting().filter(pk=key).values_list("pk", "pool__engine")


def _kept_back(key: Any) -> "QuerySet[Any, Any]":
    return kept_back().filter(pk=key).values_list("pk", "pool__engine")


def remove_folder(place: Pool, attempt: Attempt) -> None:
    """Remove what was collected. Where that fails, or we die before, tidying up does it."""
    try:
        place.remove(scope.current_id().hex, attempt.key)
    except PoolError as error:
        log.warning("run folder not removed", attempt=attempt.key, reason=error.reason)
    else:
        writes = kept_write.Writes()
        writes.change(Watch, {"observed": Watch.FOLDER_REMOVED}, attempt=attempt.pk)
        forget_values(attempt.key, beside=writes)
        writes.delete(KeptFile, "attempt", attempt.pk)
        writes.send()


def keep_lines(place: Pool, attempt: Attempt, watch: Watch) -> bool:
    """Take in what an ended attempt has written; False where there is more than one look may read, so that it wants another."""
    samples = ingest.read_samples(place, attempt, watch, to_end=True)
    metrics = ingest.read_metrics(place, attempt, watch, to_end=True)
    return ingest.read_events(place, attempt, watch, to_end=True) and metrics and samples


def records(place: Pool, attempt: Attempt) -> Harvest:
    """Log and lines alone, of an attempt that does not count: its run will have another one."""
    keeper = Keeper(place, attempt)
    keeper.keep_records()
    return words_of(attempt, artifacts=keeper.collected(), notes=keeper.notes)


def words_of(
    attempt: Attempt, *, artifacts: tuple[Collected, ...] = (), notes: dict[str, Any] | None = None, lacking: str = ""
) -> Harvest:  # fmt: skip
    """What the attempt has said in its lines, as far as they were taken in."""
    [watch], lines, memory = kept_query.ask_together(
        [
            kept_query.question(Watch, attempt=attempt),
            kept_query.question(RunLine, attempt=attempt, type="score", order_by=("number",)),
            kept_query.question(RunLine, attempt=attempt, type="memory_write", order_by=("number",), limit=MOST_MEMORY_LINES),
        ]
    )
    tail = _stderr_tail(attempt, artifacts) if attempt.exit_code or attempt.exit_signal else b""
    scores = tuple(_score(line.body) for line in lines)
    return Harvest(
        artifacts=artifacts,
        scores=scores,
        memory=tuple(memory),
        samples_files=samples_files(attempt, scores, artifacts),
        said_done=watch.said_done,
        notes={**(notes or {}), "bad_lines": watch.metrics_bad + watch.events_bad},
        last_words=_last_words(tail) if attempt.exit_code else "",
        error_lines=error_lines(tail),
        lacking=lacking,
    )


def _stderr_tail(attempt: Attempt, artifacts: tuple[Collected, ...]) -> bytes:
    """The end of what the program wrote to stderr, as it was collected, secrets blotted out."""
    path = f"{OWN_PATHS}attempt-{attempt.number}/stderr.log"
    kept = next((entry for entry in artifacts if entry.path == path), None)
    if kept is None:
        return b""
    region = Workspace.objects.values_list("region", flat=True).get(pk=scope.current_id())
    try:
        return b"".join(store.open(region, scope.current_id(), kept.sha256, start=max(0, kept.bytes - TAIL_BYTES), end=kept.bytes))
    except store.StoreMissing:
        return b""


def _last_words(tail: bytes) -> str:
    """The last line that the program wrote to stderr: of a traceback that is the fault."""
    lines = tail.decode(errors="replace").splitlines()
    words = ["".join(character if character.isprintable() else " " for character in line).strip() for line in lines]
    return next((line for line in reversed(words) if line), "")[:LAST_WORDS]


def _collect(actor: Actor, attempt: Attempt, watch: Watch) -> None:
    """Keep the files, then end the run, or put it back in the queue."""
    watch.collect_tries += 1  # nobody else counts, under its lease
    kept_write.update(watch, ["collect_tries"])
    try:
        place = place_of(attempt)
    except NotOurs as elsewhere:
        lacking = f"{LACKING}: {elsewhere.reason}."
        harvest = words_of(attempt, artifacts=(), notes={"not_collected": elsewhere.reason}, lacking=lacking)
        finish_run(actor=actor, attempt=attempt, harvest=replace(harvest, is_bare=True))
        return
    keeper = Keeper(place, attempt)
    notes, lacking, again, is_gone = keeper.notes, "", False, False
    try:
        if watch.collect_tries > MAX_TRIES:
            raise PoolError(f"labsite was cut off {MAX_TRIES} times while it collected them")
        keeper.keep_records()
        if attempt.status != AttemptStatus.INTERRUPTED:
            keeper.keep_outputs()
        lacking, again = keeper.lacking, keeper.may_get_more
    except TurnOver:
        raise
    except Exception as fault:
        is_gone = _is_gone(place, attempt)
        if not is_gone and not _is_given_up(attempt):
            raise
        log.exception("outputs not collected, the run ends without them", attempt=attempt.key)
        words = "the run folder is gone" if is_gone else _in_words(fault)
        stays = "" if is_gone else " The run folder stays in the pool, and collecting is tried again."
        notes["not_collected"], lacking, again = words, f"{LACKING}: {words}.{stays}", not is_gone
    try:
        harvest = words_of(attempt, artifacts=keeper.collected(), notes=notes, lacking=lacking)
        finish_run(actor=actor, attempt=attempt, harvest=harvest)
    except MovedOn:
        raise
    except Exception as fault:
        if not _is_given_up(attempt):
            raise
        # Something in what was collected cannot be recorded. The run has ended and holds money: it ends bare, its folder stays.
        log.exception("outputs not recorded, the run folder stays", attempt=attempt.key)
        notes["not_collected"], lacking, again = _in_words(fault), f"{LACKING}: {_in_words(fault)}. The run folder stays in the pool.", True
        said_done = Watch.objects.values_list("said_done", flat=True).get(attempt=attempt)
        finish_run(actor=actor, attempt=attempt, harvest=Harvest(said_done=said_done, notes=notes, lacking=lacking, is_bare=True))
    _leave(place, keeper, attempt, again=again)


def _collect_late(actor: Actor, attempt: Attempt) -> None:
    """What could not be collected when its run ended. The run's status stays. Raises what stood in the way this time."""
    place = place_of(attempt)
    if attempt.status == AttemptStatus.LOST and place.observe(scope.current_id().hex, attempt.key).status != Status.EXITED:
        raise PoolError("its end is not confirmed: its program may still write")  # declared lost (runs/commands/lost.py)
    keeper = Keeper(place, attempt)
    keeper.keep_records()
    keeper.keep_outputs()
    harvest = words_of(attempt, artifacts=keeper.collected(), notes=keeper.notes, lacking=keeper.lacking)
    try:
        add_outputs(actor=actor, attempt=attempt, harvest=harvest)
    except NothingMore:
        if keeper.may_get_more:
            raise  # an earlier try may have added the last of it, and died before it left the folder
    _leave(place, keeper, attempt, again=keeper.may_get_more)


def _leave(place: Pool, keeper: Keeper, attempt: Attempt, *, again: bool) -> None:
    """The folder stays where another try may bring more, and for a while where files were left in it that no try takes."""
    if again:
        Watch.objects.filter(attempt=attempt).update(observed=Watch.FOLDER_KEPT)
    elif keeper.left:
        Watch.objects.filter(attempt=attempt).update(observed=Watch.FOLDER_LEFT, observed_at=timezone.now())
        KeptFile.objects.filter(attempt=attempt).delete()
        forget_values(attempt.key)
    else:
        remove_folder(place, attempt)


def _is_given_up(attempt: Attempt) -> bool:
    """Has it been tried for long enough, counted from the last file that was kept?"""
    watch = Watch.objects.get(attempt=attempt)
    newest = KeptFile.objects.filter(attempt=attempt).aggregate(last=Max("created_at"))["last"]
    since = max(filter(None, (watch.collecting_since, newest)), default=timezone.now())
    return watch.collect_tries >= MIN_TRIES and timezone.now() - since >= timedelta(seconds=PATIENCE_SECONDS)


def _is_gone(place: Pool, attempt: Attempt) -> bool:
    """Does the pool answer and know nothing of it, for longer than a folder may be away?"""
    try:
        seen = place.observe(scope.current_id().hex, attempt.key)
    except PoolError:
        return False
    if seen.status != Status.MISSING:
        return False
    since = Watch.objects.get(attempt=attempt).collecting_since or timezone.now()
    # One that was lost has been missing for its grace already (runs/jobs/watch.py).
    return attempt.status == AttemptStatus.LOST or timezone.now() - since >= timedelta(seconds=MISSING_GRACE_SECONDS)


def _in_words(fault: Exception) -> str:
    if isinstance(fault, StoreFull):
        return "the store has no room left"
    return fault.reason if isinstance(fault, PoolError) else f"{type(fault).__name__}, the log of the collecting worker has more"


def _score(body: dict[str, Any]) -> Score:
    """A score as it was read; fractions stand as text in the line's canonical form."""
    stderr = body.get("stderr")
    return Score(
        benchmark=str(body["benchmark"]),
        metric=str(body["metric"]),
        value=float(body["value"]),
        stderr=float(stderr) if stderr is not None else None,
        samples=body.get("samples"),
        errored=body.get("errored"),
        abstained=body.get("abstained"),
        samples_file=str(body.get("samples_file") or ""),
        subject=str(body.get("subject") or ""),
    )
