"""Binding a workspace to an engine of the installation: how much of it, how isolated, at which price."""

import uuid
from typing import Any

from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.registry import insert_named, settle
from workspaces.models import Engine, Pool
from workspaces.verbs import Verb

CHANGEABLE = frozenset({"slots", "milli_gpu_per_slot", "price_micros_per_gpu_hour", "currency", "isolation", "is_accepting", "is_default"})


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
    reason: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Pool:
    """Bind the engine of that slug as a pool of `slots` attempts at once. The first pool is the default.

    `milli_gpu_per_slot` is what one slot counts as, in thousandths of a GPU; the price is in micro-units of `currency` for a GPU-hour.
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
    )
    if id is not None:
        pool.pk = id
    _check(pool, machine)
    _check_isolation(pool, machine)
    if pool.is_default:
        _no_other_default(event, pool)
    insert_named(event, pool)
    event.details["engine"] = machine.slug
    return pool


@command(Verb.POOL_CHANGED, needs=Permission.MANAGE_POOL, kind=Kind.POOL)
def change_pool(event: Draft, /, *, actor: Actor, pool: Pool, reason: str = "", **changed: Any) -> Pool:
    """Change slots, price, isolation, what a slot counts as, whether it takes work, or make it the default. What runs goes on as it began."""
    return _change(event, pool, reason, changed)


@command(Verb.POOL_UNBOUND, needs=Permission.MANAGE_POOL, kind=Kind.POOL)
def unbind_pool(event: Draft, *, actor: Actor, pool: Pool, reason: str) -> Pool:
    """Let the pool take no new work. It stays on the record, and for the runs that point at it; what runs goes on."""
    if not reason.strip():
        raise Refusal("Say why; whoever waits for this pool will read it.", field="reason")
    return _change(event, pool, reason, {"is_accepting": False, "is_default": False})


def _change(event: Draft, pool: Pool, reason: str, changed: dict[str, Any]) -> Pool:
    event.reason = reason.strip()[:1000]

    def check(proposed: Pool) -> None:
        machine = Engine.objects.get(pk=proposed.engine_id)
        _check(proposed, machine)
        if "isolation" in changed:
            _check_isolation(proposed, machine)
        if proposed.is_default and not proposed.is_accepting:
            raise Refusal(
                f"{proposed.slug} is the default pool; a default takes work. Make another one the default first.", field="is_default"
            )
        if proposed.is_default:
            _no_other_default(event, proposed)

    return settle(event, pool, CHANGEABLE, changed, check=check)


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


def _check_isolation(pool: Pool, engine: Engine) -> None:
    """What a machine was found unable to keep is promised by no pool on it."""
    if engine.isolations and pool.isolation not in engine.isolations:
        offered = " or ".join(Pool.Isolation(isolation).label for isolation in engine.isolations)
        raise Refusal(f"{engine.slug} offers {offered}, and not {pool.get_isolation_display()}.", field="isolation")
