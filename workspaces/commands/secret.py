"""Secrets: made, given another value, allowed to more or fewer, revoked. A value goes in sealed and is in no event, answer or message."""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from workspaces import ids, kept_write, sealing
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.registry import change_fields, clean, insert_all
from workspaces.models import (
    Agent,
    AgentVersion,
    Benchmark,
    DataKey,
    Installation,
    Pool,
    Secret,
    SecretAgent,
    SecretBenchmark,
    SecretPool,
    SecretUse,
)
from workspaces.queries.sealed import data_key, key_place, open_data_key, secret_place, use_place
from workspaces.secret_value import checked_value, public_key_of
from workspaces.verbs import Verb

RESERVED = "LABSITE_"  # names of what labsite itself puts beside them
MAX_DAYS = 3650
UNCHANGED = -1  # of `rotate_after_days`, since None is a value

# Who may read a secret, and for what: lists by name, the table of each and what its rows point at.
LISTS: dict[str, tuple[type[SecretAgent | SecretPool | SecretBenchmark], str]] = {
    "agents": (SecretAgent, "agent"),
    "pools": (SecretPool, "pool"),
    "benchmarks": (SecretBenchmark, "benchmark"),
}


@command(Verb.SECRET_CREATED, needs=Permission.MANAGE_SECRET, kind=Kind.SECRET)
def create_secret(
    event: Draft,
    *,
    actor: Actor,
    name: str,
    value: str,
    kind: str = Secret.Kind.VALUE,
    description: str = "",
    agents: Sequence[Agent] = (),
    pools: Sequence[Pool] = (),
    benchmarks: Sequence[Benchmark] = (),
    rotate_after_days: int | None = None,
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Secret:
    """Keep a value under a name that agent versions use. No agent and no pool reads it unless named; without benchmarks it serves all."""
    if actor.user is None:
        raise Refusal("A secret is made by a person, who answers for it.")
    if name.startswith(RESERVED):
        raise Refusal(f"Names that begin with {RESERVED} are labsite's own; choose another.", field="name")
    secret = Secret(
        id=id or ids.uuid7(), name=name, kind=kind, description=description.strip(), rotate_after_days=_days(rotate_after_days),
        rotated_at=timezone.now(), created_by=actor.user,
    )  # fmt: skip
    _seal(event, secret, value)
    clean(secret)
    try:
        with transaction.atomic():
            secret.save(force_insert=True)
    except IntegrityError as error:
        if "secret_name_once" in str(error):
            raise Refusal(f"There is a secret named {name} here already; give it another value instead.", field="name") from None
        raise
    event.created(secret)
    event.about = secret
    event.details["secret"] = {"name": name, "kind": secret.kind, "fingerprint": secret.fingerprint}
    _allow(event, secret, agents=agents, pools=pools, benchmarks=benchmarks)
    return secret


@command(Verb.SECRET_ROTATED, needs=Permission.MANAGE_SECRET, kind=Kind.SECRET)
def rotate_secret(event: Draft, *, actor: Actor, secret: Secret, value: str, reason: str = "") -> Secret:
    """Give it another value. The one before is gone, but for the runs that have it already; those are named on its page."""
    row = _locked(secret)
    event.reason = reason.strip()[:1000]
    event.changing(row)
    before = (row.version, row.fingerprint, row.rotated_at)
    row.version, row.rotated_at = row.version + 1, timezone.now()
    _seal(event, row, value)
    if row.fingerprint == before[1]:
        raise Refusal("This is the value that it has already.", field="value")
    row.save(update_fields=["version", "nonce", "ciphertext", "fingerprint", "public_key", "rotated_at"])
    after = (row.version, row.fingerprint, row.rotated_at)
    event.note(row, dict(zip(("version", "fingerprint", "rotated_at"), zip(before, after, strict=True), strict=True)))
    return row


@command(Verb.SECRET_CHANGED, needs=Permission.MANAGE_SECRET, kind=Kind.SECRET)
def change_secret(
    event: Draft,
    *,
    actor: Actor,
    secret: Secret,
    description: str | None = None,
    agents: Sequence[Agent] | None = None,
    pools: Sequence[Pool] | None = None,
    benchmarks: Sequence[Benchmark] | None = None,
    rotate_after_days: int | None = UNCHANGED,
    reason: str = "",
) -> Secret:
    """Change what it is for, who may read it, when another value is due; what is not given stays. Runs that have it keep it."""
    row = _locked(secret)
    event.reason = reason.strip()[:1000]
    event.about = row
    values: dict[str, Any] = {}
    if description is not None and description.strip() != row.description:
        values["description"] = description.strip()
    if rotate_after_days != UNCHANGED and _days(rotate_after_days) != row.rotate_after_days:
        values["rotate_after_days"] = rotate_after_days
    if values:
        row = change_fields(event, row, values.keys(), values)
    is_moved = _allow(event, row, agents=agents, pools=pools, benchmarks=benchmarks)
    if not values and not is_moved:
        raise Refusal("Nothing would change.")
    return row


@command(Verb.SECRET_REVOKED, needs=Permission.MANAGE_SECRET, kind=Kind.SECRET, in_archive="taking a right away never waits")
def revoke_secret(event: Draft, *, actor: Actor, secret: Secret, reason: str) -> Secret:
    """End it: its value is destroyed, no run starts with it. Runs that have it already keep it; cancel them, and end the value where it opens
    doors."""
    if not reason.strip():
        raise Refusal("Say why; whoever launches an agent that reads it will ask.", field="reason")
    row = _locked(secret)
    event.reason = reason.strip()[:1000]
    event.changing(row)
    row.revoked_at, row.nonce, row.ciphertext = timezone.now(), "", ""
    row.save(update_fields=["revoked_at", "nonce", "ciphertext"])
    event.note(row, {"revoked_at": (None, row.revoked_at)})
    return row


@command(Verb.DATA_KEY_REWRAPPED, needs=None, by_system=True, in_archive="a new key of the installation reaches every workspace")
def rewrap_data_key(event: Draft, *, actor: Actor) -> DataKey:
    """Wrap the workspace's data key by the installation's newest key; what is sealed with it stays as it is."""
    row = DataKey.objects.select_for_update(no_key=True).first()
    name, key = settings.SECRETS_KEYS.newest()
    if row is None or row.wrapped_by == name:
        raise Refusal("The data key is wrapped by the newest key already.")
    event.changing(row)
    before = row.wrapped_by
    _wrap(row, open_data_key(row), name, key)
    row.save(update_fields=["wrapped_by", "nonce", "wrapped"])
    event.note(row, {"wrapped_by": (before, name)})
    return row


# --- Uses: telemetry, written when a run is handed a value --------------------------------------------------------------------------------------


def record_use(secret: Secret, value: str, *, version: AgentVersion, run_id: uuid.UUID, run_label: str, attempt_key: str) -> None:
    """An attempt is about to get `value`. Said twice for the same attempt, the first holds."""
    sealed = sealing.seal(data_key(), value.encode(), bound_to=use_place(secret.pk, secret.version, attempt_key))
    use = SecretUse(
        secret=secret, agent_id=version.agent_id, agent_version=version.number, run_id=run_id, run_label=run_label[:200],
        attempt_key=attempt_key, version=secret.version, nonce=sealed.nonce, ciphertext=sealed.ciphertext,
    )  # fmt: skip
    SecretUse.objects.bulk_create([use], ignore_conflicts=True)


def forget_values(attempt_key: str, *, beside: kept_write.Writes | None = None) -> None:
    """What the attempt was handed is nowhere any more: it was collected, or never started. That it was handed stays on record. `beside`
    other writes, the caller sends it with them."""
    writes = kept_write.Writes() if beside is None else beside
    writes.change(SecretUse, {"nonce": "", "ciphertext": ""}, attempt_key=attempt_key)
    if beside is None:
        writes.send()


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def _locked(secret: Secret) -> Secret:
    row = Secret.objects.select_for_update(no_key=True).get(pk=secret.pk)
    if row.revoked_at is not None:
        raise Refusal(f"{row.name} was revoked on {row.revoked_at:%d %B %Y}; make a new secret of that name.")
    return row


def _seal(event: Draft, secret: Secret, value: str) -> None:
    """Check the value for the secret's kind and put it in, sealed for this version."""
    plain = checked_value(secret.kind, value)
    key = _data_key(event)
    sealed = sealing.seal(key, plain.encode(), bound_to=secret_place(secret.pk, secret.version))
    secret.nonce, secret.ciphertext = sealed.nonce, sealed.ciphertext
    secret.fingerprint = sealing.fingerprint(key, plain.encode())
    secret.public_key = public_key_of(plain) if secret.kind == Secret.Kind.SSH_KEY else ""


def _data_key(event: Draft) -> bytes:
    """The workspace's key, made with its first secret. The lock on the installation keeps a rotation from destroying the key that wraps it."""
    if DataKey.objects.exists():
        return data_key()
    Installation.objects.select_for_update(no_key=True).filter(is_current=True).first()
    row, key = DataKey(), sealing.fresh_key()
    _wrap(row, key, *settings.SECRETS_KEYS.newest())
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:  # another command made it this moment
        return data_key()
    event.created(row)
    return key


def _wrap(row: DataKey, key: bytes, name: str, wrapping: bytes) -> None:
    sealed = sealing.seal(wrapping, key, bound_to=key_place())
    row.wrapped_by, row.nonce, row.wrapped = name, sealed.nonce, sealed.ciphertext


def _days(days: int | None) -> int | None:
    if days is not None and not 1 <= days <= MAX_DAYS:
        raise Refusal(f"A new value is due after 1 to {MAX_DAYS:,} days, or never.", field="rotate_after_days")
    return days


def _allow(event: Draft, secret: Secret, **lists: Iterable[Agent | Pool | Benchmark] | None) -> bool:
    """Make the lists of who may read it what is given, None leaves one as it is; was anything changed?"""
    moved = False
    for name, wanted in lists.items():
        if wanted is not None:
            moved |= _settle(event, secret, name, wanted)
    return moved


def _settle(event: Draft, secret: Secret, name: str, wanted: Iterable[Agent | Pool | Benchmark]) -> bool:
    model, field = LISTS[name]
    rows = {row.pk: row for row in wanted}
    kept = {getattr(row, field).pk: row for row in model.objects.filter(secret=secret).select_related(field)}
    for key in kept.keys() - rows.keys():
        event.deleting(kept[key])
        kept[key].delete()
    insert_all(event, [model(secret=secret, **{field: rows[key]}) for key in sorted(rows.keys() - kept.keys())])
    before, after = sorted(getattr(row, field).slug for row in kept.values()), sorted(row.slug for row in rows.values())
    event.note(secret, {name: (before, after)})
    return before != after
