"""Binding a workspace to an engine of the installation: how much of it, how isolated, at which price."""

import re
import uuid
from typing import Any

from django.utils import timezone

from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.registry import change_fields, insert_named
from workspaces.models import Engine, NotFound, Pool, Secret
from workspaces.queries.secret import find_secret
from workspaces.verbs import Verb

# What only a pool on another host has. Login and folder are where its attempts are: another place is another pool.
FAR = ("login", "folder", "python", "secret")
OF_SLURM = ("partition", "account")
CHANGEABLE = frozenset(
    {"python", "secret", "slots", "milli_gpu_per_slot", "price_micros_per_gpu_hour", "currency", "isolation", "is_accepting", "is_default"}
    | {*OF_SLURM}
)
CLOSING = frozenset({"closed_at", "closed_by", "closed_reason"})
_LOGIN = re.compile(r"[a-z_][a-z0-9_-]{0,31}", re.ASCII)
_SLURM_NAME = re.compile(r"[A-Za-z0-9_.-]{0,64}", re.ASCII)
_PATH = re.compile(r"(~/)?[A-Za-z0-9._/][A-Za-z0-9._/-]*", re.ASCII)


@command(Verb.POOL_BOUND, needs=Permission.MANAGE_POOL, kind=Kind.POOL)
def bind_pool(
    event: Draft,
    *,
    actor: Actor,
    engine: str,
    slug: str,
    slots: int,
    isolation: str,
    milli_gpu_per_slot: int = 1000,
    price_micros_per_gpu_hour: int = 0,
    currency: str = "EUR",
    is_default: bool = False,
    login: str = "",
    folder: str = "",
    python: str = "",
    secret: str = "",
    partition: str = "",
    account: str = "",
    reason: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Pool:
    """Bind the engine of that slug as a pool of `slots` attempts at once. The first pool is the default.

    `milli_gpu_per_slot` is what one slot counts as, in thousandths of a GPU; the price is in micro-units of `currency` for a GPU-hour. On
    another host: the account `login`, the pool's `folder` there, an environment `python` that runs find first, and the name of the `secret`
    whose SSH key opens the account. Of Slurm: the `partition` that it is asked for, and the `account` that it charges.
    """
    machine = Engine.objects.filter(slug=engine).first()
    if machine is None:
        known = ", ".join(Engine.objects.order_by("slug").values_list("slug", flat=True)) or "none"
        raise Refusal(f"There is no engine {engine[:80]}; there are {known}.", field="engine")
    event.reason = reason.strip()[:1000]
    pool = Pool(
        slug=slug,
        engine=machine,
        slots=slots,
        isolation=isolation,
        milli_gpu_per_slot=milli_gpu_per_slot,
        price_micros_per_gpu_hour=price_micros_per_gpu_hour,
        currency=currency,
        is_default=is_default or not Pool.objects.exists(),
        login=login,
        folder=folder,
        python=python,
        secret=_key(secret),
        partition=partition,
        account=account,
    )
    if id is not None:
        pool.pk = id
    _check(pool, machine)
    _check_currency(pool)
    _check_isolation(pool, machine)
    _check_far(pool, machine)
    if pool.is_default:
        _no_other_default(event, pool)
    insert_named(event, pool)
    event.details["engine"] = machine.slug
    return pool


@command(Verb.POOL_CHANGED, needs=Permission.MANAGE_POOL, kind=Kind.POOL)
def change_pool(event: Draft, /, *, actor: Actor, pool: Pool, reason: str = "", **changed: Any) -> Pool:
    """Change slots, price, isolation, what a slot counts as, whether it takes work, or make it the default. What runs goes on as it began."""
    return _change(event, actor, pool, reason, changed)


@command(Verb.POOL_UNBOUND, needs=Permission.MANAGE_POOL, kind=Kind.POOL)
def unbind_pool(event: Draft, *, actor: Actor, pool: Pool, reason: str) -> Pool:
    """Let the pool take no new work. It stays on the record, and for the runs that point at it; what runs goes on."""
    return _change(event, actor, pool, reason, {"is_accepting": False, "is_default": False})


@command(Verb.POOL_OPENED, needs=Permission.MANAGE_POOL, kind=Kind.POOL)
def open_pool(event: Draft, *, actor: Actor, pool: Pool, reason: str) -> Pool:
    """Let a closed pool take new work again."""
    return _change(event, actor, pool, reason, {"is_accepting": True})


def _change(event: Draft, actor: Actor, pool: Pool, reason: str, changed: dict[str, Any]) -> Pool:
    event.reason = reason.strip()[:1000]
    allowed = CHANGEABLE
    if changed.get("is_accepting", pool.is_accepting) != pool.is_accepting:  # whoever waits for it reads who closed it, and why
        if not event.reason:
            raise Refusal("Say why; whoever waits for this pool will read it.", field="reason")
        is_open = changed["is_accepting"]
        event.verb = Verb.POOL_OPENED if is_open else Verb.POOL_UNBOUND  # also where it came about by a change of several fields
        closed = {"closed_at": None if is_open else timezone.now(), "closed_by": None if is_open else actor.user}
        changed = changed | closed | {"closed_reason": "" if is_open else event.reason}
        allowed = CHANGEABLE | CLOSING
    if isinstance(changed.get("secret"), str):
        changed["secret"] = _key(changed["secret"])

    def check(proposed: Pool) -> None:
        machine = Engine.objects.get(pk=proposed.engine_id)
        _check(proposed, machine)
        _check_far(proposed, machine)
        if changed.get("currency", pool.currency) != pool.currency:
            _check_currency(proposed)
        if "isolation" in changed:
            _check_isolation(proposed, machine)
        if proposed.is_default and not proposed.is_accepting:
            raise Refusal(
                f"{proposed.slug} is the default pool; a default takes work. Make another one the default first.", field="is_default"
            )
        if proposed.is_default:
            _no_other_default(event, proposed)

    return change_fields(event, pool, allowed, changed, check=check)


def _no_other_default(event: Draft, pool: Pool) -> None:
    for other in Pool.objects.select_for_update(no_key=True).filter(is_default=True).exclude(pk=pool.pk):
        event.change(other, is_default=False)


def _check(pool: Pool, engine: Engine) -> None:
    if not 1 <= pool.slots <= engine.slots:
        raise Refusal(f"{engine.slug} has {engine.slots} slots; a pool on it has 1 to {engine.slots}.", field="slots")
    if not 1 <= pool.milli_gpu_per_slot <= 1_000_000:
        raise Refusal("A slot counts as 0.001 to 1,000 GPUs.", field="milli_gpu_per_slot")
    if not 0 <= pool.price_micros_per_gpu_hour <= 10**12:
        raise Refusal("A GPU-hour costs from 0 to 1,000,000.", field="price_micros_per_gpu_hour")
    if not (len(pool.currency) == 3 and pool.currency.isascii() and pool.currency.isalpha() and pool.currency.isupper()):
        raise Refusal("A currency is written with its three letters, such as EUR (ISO 4217).", field="currency")


def _check_currency(pool: Pool) -> None:
    """What runs cost is added up over all pools, closed ones too: their runs stand in the same ledger."""
    other = Pool.objects.exclude(pk=pool.pk).exclude(currency=pool.currency).values_list("currency", flat=True).first()
    if other is not None:
        raise Refusal(
            f"This workspace counts in {other}, and adds up what runs cost; all of its pools have that currency.", field="currency"
        )


def _check_far(pool: Pool, engine: Engine) -> None:
    """An account, a folder and a key on another host; none of them on this machine. What is Slurm's alone, on Slurm alone."""
    for name in OF_SLURM:
        value = getattr(pool, name)
        if value and engine.kind != Engine.Kind.SLURM:
            raise Refusal(f"{engine.slug} is not Slurm: a pool on it has no {name}.", field=name)
        if not _SLURM_NAME.fullmatch(value):
            raise Refusal(f"A name that Slurm knows as {name}: letters, digits, '.', '_' and '-' only.", field=name)
    if not engine.host:
        given = next((name for name in FAR if getattr(pool, name)), None)
        if given is not None:
            what = "is this machine" if engine.kind == Engine.Kind.LOCAL else "is reached from this machine"
            raise Refusal(f"{engine.slug} {what}: a pool on it has no account, folder or key elsewhere.", field=given)
        return
    if not _LOGIN.fullmatch(pool.login):
        raise Refusal(f"Name the account on {engine.host} under which runs are started, such as labpool.", field="login")
    for name in ("folder", "python"):
        path = getattr(pool, name)
        if path and (not _PATH.fullmatch(path) or ".." in path.split("/")):
            raise Refusal("A path of letters, digits, '.', '_', '-' and '/' only, without '..'.", field=name)
    if not pool.folder.removeprefix("~/").strip("/."):
        raise Refusal(f"Name the folder on {engine.host} in which runs work, such as ~/labsite-runs.", field="folder")
    if pool.secret is None:
        raise Refusal("Name the secret that holds the SSH key of that account.", field="secret")


def _key(name: str) -> Secret | None:
    """The secret of that name, which must hold an SSH key."""
    if not name.strip():
        return None
    try:
        found = find_secret(name.strip())
    except NotFound as missing:
        raise Refusal(f"There is no secret {name.strip()[:64]} here.", field="secret") from missing
    if found.revoked_at is not None or found.kind != Secret.Kind.SSH_KEY:
        raise Refusal(f"{found.name} is no SSH key, or is revoked.", field="secret")
    return found


def _check_isolation(pool: Pool, engine: Engine) -> None:
    """What a machine was found unable to keep is promised by no pool on it."""
    if engine.isolations and pool.isolation not in engine.isolations:
        offered = " or ".join(Pool.Isolation(isolation).label for isolation in engine.isolations)
        raise Refusal(f"{engine.slug} offers {offered}, and not {pool.get_isolation_display()}.", field="isolation")
