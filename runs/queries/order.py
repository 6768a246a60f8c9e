"""What a pool is handed for an attempt: run folder v1 (contracts.md G), built from rows only."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from runs.models import Attempt, Run, RunInput
from runs.pools.base import SCHEMA, NoAnswer, Order, PoolError, StagedFile, StagedInput
from runs.queries.run_input import inputs_of
from runs.reservation import GRACE_SECONDS
from workspaces import kept_query, scope, store
from workspaces.models import AgentFile, Blob, DatasetFile, Workspace
from workspaces.queries import token

LOG_BYTES = 64 * 2**20
OUTPUT_BYTES = 4 * 2**30
TOKEN_NAME = "LABSITE_TOKEN"  # noqa: S105  # the name of a file
TOKEN_SLACK = timedelta(minutes=10)


def order_of(attempt: Attempt, values: Mapping[str, str] | None = None) -> Order:
    """The order of an attempt, with the values of the secrets that it is handed; made anew it is the same, so that a submission can be repeated
    under its key."""
    run = attempt.run
    version = run.agent_version
    [workspace], entries, files = kept_query.ask_together(
        [
            kept_query.question(Workspace, pk=scope.current_id()),
            kept_query.Question(_read, (), {"run": run.pk}),
            kept_query.question(AgentFile, version=version, related=("blob",), order_by=("path",)),
        ]
    )
    inputs, declared = _inputs(entries)
    job: dict[str, Any] = {
        "schema": SCHEMA,
        "workspace": workspace.slug,
        "run": run.public_id,
        "attempt": attempt.number,
        "key": attempt.key,
        "kind": run.kind,
        "argv": version.argv,
        "cwd": "code",
        "env": version.environment | {"LABSITE_RUN": run.public_id, "LABSITE_WORKSPACE": workspace.slug},
        "params": run.parameters,
        "seed": run.seed,
        "benchmark": run.benchmark.slug,
        "inputs": declared,
        "outputs": version.outputs,
        "limits": {
            "wall_seconds": max(1, seconds_left(run)),
            "grace_seconds": GRACE_SECONDS,
            "log_bytes": LOG_BYTES,
            "output_bytes": OUTPUT_BYTES,
            "memory_bytes": version.memory_bytes,
        },
        "resources": {"slots": run.slots, "gpus": run.slots if attempt.pool.engine.gpu_kind else 0},
        "tracking": {
            "url": f"{settings.LABSITE_URL}/api/v1/workspaces/{workspace.slug}/runs/{run.public_id}",
            "token_file": f"secrets/{TOKEN_NAME}",
        },
    }
    code = tuple(_staged(entry.path, entry.blob, executable=entry.is_executable) for entry in files)
    secrets = {**(values or {}), TOKEN_NAME: token_text(attempt)}
    return Order(key=attempt.key, workspace=scope.current_id().hex, job=job, code=code, inputs=inputs, secrets=secrets)


def seconds_left(run: Run) -> int:
    """The wall limit less what earlier attempts have used, so that all of them together stay within the reservation, whose margin for the
    end is there once. 0 or less: there is no time for another attempt."""
    rate = run.slots * run.frozen["pool"]["milli_gpu_per_slot"]
    used = -(-run.spent_gpu_ms // rate) if rate else 0
    return int(run.wall_seconds - used)


def token_id(attempt: Attempt) -> Any:
    """Key of the attempt's run token: its own, so that it is found again."""
    return attempt.pk


def token_text(attempt: Attempt) -> str:
    """The attempt's run token, as it is sent."""
    return token.spell("run", scope.current_id(), token_id(attempt), token_secret(attempt))


def token_secret(attempt: Attempt) -> str:
    """The run token's secret, derived and never stored: a repeated submission hands out the same one."""
    return hmac.new(settings.SECRET_KEY.encode(), f"run token {attempt.key}".encode(), hashlib.sha256).hexdigest()


def _inputs(entries: Sequence[RunInput]) -> tuple[tuple[StagedInput, ...], list[dict[str, Any]]]:
    staged: list[StagedInput] = []
    declared: list[dict[str, Any]] = []
    versions = list(dict.fromkeys(entry.dataset_version_id for entry in entries if entry.dataset_version_id is not None))
    asked = [kept_query.question(DatasetFile, version=version, related=("blob",), order_by=("path",)) for version in versions]
    files_of = dict(zip(versions, kept_query.ask_together(asked), strict=True))
    for entry in entries:
        if entry.dataset_version is not None:
            files = tuple(_staged(row.path, row.blob) for row in files_of[entry.dataset_version.pk])
            kind, version = "dataset", str(entry.dataset_version.number)
            role = {"role": entry.dataset_version.role}
        elif entry.artifact is not None:
            files = (_staged(entry.artifact.path.rsplit("/", 1)[-1], entry.artifact.blob),)
            kind, version, role = "artifact", entry.artifact.public_id, {}
        else:
            raise PoolError(f"the input {entry.slug} is no longer here")
        staged.append(StagedInput(slug=entry.slug, files=files))
        declared.append({"slug": entry.slug, "kind": kind, "version": version, "sha256": entry.sha256, **role})
    return tuple(staged), declared


def _read(run: Any) -> "QuerySet[RunInput]":
    return inputs_of(run, "dataset_version", "artifact__blob")


def _staged(path: str, blob: Blob, *, executable: bool = False) -> StagedFile:
    try:
        source = store.local_path(blob.region, scope.current_id(), blob.sha256)
    except store.StoreFull as full:
        raise NoAnswer("the machine of labsite has no room for a file of the store") from full
    except OSError as error:
        raise NoAnswer("the store does not answer") from error
    if source is None:
        raise PoolError("a file of the store is missing; `manage.py doctor` names it")
    return StagedFile(path=path, source=source, sha256=blob.sha256, executable=executable)
