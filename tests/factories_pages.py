"""Many runs at once, and runs in states that take long to reach, by tiny commands; and a signed-in browser without a password."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from runs.commands.failure import Evidence, file_failure
from runs.lifecycle import RunStatus
from runs.models import (
    Artifact,
    Attempt,
    CheckResult,
    ContractCheck,
    Evaluation,
    FailureGroup,
    MetricChunk,
    MetricSeries,
    QueueItem,
    Run,
    RunInput,
    RunLine,
    Sweep,
    Watch,
)
from runs.sample_results import summarise
from workspaces import ids
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, command
from workspaces.commands.blob import keep_blobs, receive_file
from workspaces.verbs import Verb

HOSTILE = '</title><script>alert(1)</script>" onload="x'
LONG = "an-uncommonly-long-name-" * 8
RTL = "ריצה \u202eloss\u202c ראשונה"
CJK = "第一次训练运行・初めての学習"


def client_of(actor: Actor) -> Client:
    """A browser in which the actor's person has signed in."""
    client = Client()
    assert actor.user is not None
    client.force_login(actor.user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


@command(Verb.LAUNCH_ADMITTED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def copy_runs(
    event: Draft, /, *, actor: Actor, pattern: Run, count: int, statuses: Sequence[str] = ("succeeded",),
    each: Sequence[dict[str, Any]] = (), **values: Any,
) -> list[Run]:  # fmt: skip
    """`count` rows like `pattern`, an hour apart into the past, ended where their status is an end; `each`: values of each by its place."""
    now, first = timezone.now(), (Run.objects.order_by("-number").values_list("number", flat=True).first() or 0) + 1
    fields = {
        field.attname: getattr(pattern, field.attname) for field in Run._meta.concrete_fields if field.name not in ("id", "created_at")
    }
    made = []
    for index in range(count):
        status = statuses[index % len(statuses)]
        run = Run(
            **fields
            | values
            | (each[index] if each else {})
            | {"id": ids.uuid7(), "number": first + index, "name": values.get("name") or f"run-{first + index:05d}", "status": status}
        )
        run.created_at = now - timedelta(hours=index)
        run.started_at = run.created_at if status not in ("queued", "awaiting_approval") else None
        run.ended_at = run.created_at + timedelta(minutes=5) if run.is_terminal else None
        run.spent_gpu_ms = 36_000 * (index % 50)
        made.append(run)
    Run.objects.bulk_create(made)
    event.created(made[0])
    return made


@command(Verb.RUN_ENDED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def score_runs(event: Draft, /, *, actor: Actor, scores: dict[Run, tuple[float, float | None]], **values: Any) -> None:
    """Record (value, standard error) of each run under the contract it ran with."""
    made = [
        Evaluation(
            run=run,
            benchmark_id=run.benchmark_id,
            contract_id=run.contract_id,
            value=value,
            standard_error=error,
            **{"metric": "accuracy", **values},
        )
        for run, (value, error) in scores.items()
    ]
    Evaluation.objects.bulk_create(made)
    event.created(made[0])


@command(Verb.RUN_ENDED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def number_members(event: Draft, /, *, actor: Actor, sweep: Sweep, runs: Sequence[Run]) -> None:
    """Make runs the members 1, 2, … of a sweep."""
    for number, run in enumerate(runs, start=1):
        run.sweep, run.sweep_member = sweep, number
    event.changing(runs[0])
    Run.objects.bulk_update(runs, ["sweep", "sweep_member"], batch_size=1000)


@command(Verb.RUN_ENDED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def fail_run(event: Draft, /, *, actor: Actor, run: Run, lines: Sequence[str]) -> FailureGroup:
    """Put a run among those that failed alike, as its end does; `lines` are what it wrote about it."""
    lock_ledger()
    event.changing(run)
    file_failure(
        event, run=run, status=RunStatus.FAILED, reason_code="exit_code", reason="", evidence=Evidence(exit_code=1, lines=tuple(lines))
    )
    return FailureGroup.objects.get(failures__run=run)


@command(Verb.RUN_ENDED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def set_run(event: Draft, /, *, actor: Actor, run: Run, **values: Any) -> None:
    event.change(run, **values)


@command(Verb.ATTEMPT_STARTED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def add_attempt(event: Draft, /, *, actor: Actor, run: Run, number: int = 1, **values: Any) -> Attempt:
    key = ids.uuid7()
    attempt = Attempt.objects.create(
        id=key, run=run, pool_id=run.pool_id, number=number, key=f"lab-test-{key.hex}", **{"status": "running", **values}
    )
    event.created(attempt)
    return attempt


@command(Verb.ATTEMPT_STARTED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def leave_queue(event: Draft, /, *, actor: Actor, item: QueueItem) -> None:
    event.deleting(item)
    item.delete()


def see(attempt: Attempt, **values: Any) -> Watch:
    """What labsite last saw of an attempt."""
    return Watch.objects.create(attempt=attempt, **{"observed": "running", **values})


def add_series(run: Run, key: str, values: Sequence[float], *, first_step: int = 0, attempt: int = 1) -> MetricSeries:
    numbers = [value for value in values if value == value]
    series, _ = MetricSeries.objects.get_or_create(
        run=run,
        key=key,
        defaults={"count": len(values), "last": values[-1], "last_step": len(values) - 1, "minimum": min(numbers), "maximum": max(numbers)},
    )
    steps = list(range(first_step, first_step + len(values)))
    MetricChunk.objects.create(
        series=series, attempt_number=attempt, steps=steps, values=list(values), times=[1_700_000_000.0 + step for step in steps]
    )
    return series


def add_line(attempt: Attempt, number: int, type: str, **body: Any) -> RunLine:  # noqa: A002  # the word of the file
    return RunLine.objects.create(attempt=attempt, number=number, type=type, body={"type": type, **body})


@command(Verb.RUN_ENDED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def add_samples(event: Draft, /, *, actor: Actor, evaluation: Evaluation, artifact: Artifact, content: bytes) -> None:
    """Make the artifact the file of per-sample results of an evaluation, as it is read when it is collected."""
    read = {"path": artifact.path, **summarise([content]).as_json()}
    event.change(evaluation, samples_artifact=artifact, samples_read=read)


@command(Verb.RUN_ENDED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def give_players(event: Draft, /, *, actor: Actor, run: Run, players: Sequence[Artifact]) -> None:
    """Make the run an evaluation that was given these artifacts."""
    inputs = [
        RunInput(run=run, slug=f"player-{number}", kind="artifact", artifact=player, sha256=player.blob.sha256)
        for number, player in enumerate(players)
    ]
    RunInput.objects.bulk_create(inputs)
    event.created(*inputs)
    event.change(run, kind="evaluate")


@command(Verb.CONTRACT_CHECKED, needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK)
def add_check(event: Draft, /, *, actor: Actor, evaluation: Evaluation, words: str) -> CheckResult:
    """A contract check with the evaluation as its reference, which moved."""
    assert actor.user
    check = ContractCheck.objects.create(
        contract_id=evaluation.contract_id, reference=evaluation, tolerance=0.01, interval_days=7, set_by=actor.user, next_at=timezone.now()
    )
    result = CheckResult.objects.create(
        contract_check=check, number=1, status=CheckResult.Status.MOVED, run_id=evaluation.run_id, evaluation=evaluation, words=words,
        ended_at=timezone.now(),
    )  # fmt: skip
    event.created(check, result)
    return result


@command(Verb.ARTIFACT_STORED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def add_artifact(event: Draft, /, *, actor: Actor, run: Run, path: str, content: bytes, kind: str = "file") -> Artifact:
    file = receive_file("file", [content])
    blob = keep_blobs(event, [file])[file.sha256]
    artifact = Artifact.objects.create(run=run, path=path, name=path.rsplit("/", 1)[-1][:250], kind=kind, blob=blob)
    event.created(artifact)
    return artifact
