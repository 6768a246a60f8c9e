"""Binding a workspace to an engine of the installation: how much of it, how isolated, at which price."""

from typing import Any

from django.db import IntegrityError, transaction

from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.registry import clean
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
    _check(pool, machine)
    if pool.is_default:
        _no_other_default(event, pool)
    try:
        with transaction.atomic():
            pool.save(force_insert=True)
    except IntegrityError as error:
        if "pool_slug_once" in str(error):
            raise Refusal(
                f"There is a pool named {slug} here already (- and _ count as one); choose another name.", field="slug"
            ) from error
        raise
    event.created(pool)
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
    fixed = sorted(set(changed) - CHANGEABLE)
    if fixed:
        raise Refusal(f"{', '.join(fixed)} of a pool cannot be changed.", field=fixed[0])
    locked = Pool.objects.select_for_update(no_key=True).get(pk=pool.pk)
    values = {name: value for name, value in changed.items() if getattr(locked, name) != value}
    if not values:
        raise Refusal("Nothing would change.")
    event.reason = reason.strip()[:1000]
    event.changing(locked)
    if values.get("is_default"):
        _no_other_default(event, locked)
    before = {name: getattr(locked, name) for name in values}
    for name, value in values.items():
        setattr(locked, name, value)
    _check(locked, Engine.objects.get(pk=locked.engine_id))
    if locked.is_default and not locked.is_accepting:
        raise Refusal(f"{locked.slug} is the default pool; a default takes work. Make another one the default first.", field="is_default")
    locked.save(update_fields=list(values))
    changed = event.details.setdefault("changed", {})
    if "pool" in changed:  # the pool that was the default until now
        changed["pool before"] = changed.pop("pool")
    changed["pool"] = {name: [before[name], values[name]] for name in values}
    return locked


def _no_other_default(event: Draft, pool: Pool) -> None:
    for other in Pool.objects.select_for_update(no_key=True).filter(is_default=True).exclude(pk=pool.pk):
        event.change(other, is_default=False)


def _check(pool: Pool, engine: Engine) -> None:
    clean(pool)
    if not 1 <= pool.slots <= engine.slots:
        raise Refusal(f"{engine.slug} has {engine.slots} slots; a pool on it has 1 to {engine.slots}.", field="slots")
    if not 1 <= pool.milli_gpu_per_slot <= 1_000_000:
        raise Refusal("A slot counts as 0.001 to 1,000 GPUs.", field="milli_gpu_per_slot")
    if not 0 <= pool.price_micros_per_gpu_hour <= 10**12:
        raise Refusal("A GPU-hour costs from 0 to 1,000,000.", field="price_micros_per_gpu_hour")
    if not (len(pool.currency) == 3 and pool.currency.isascii() and pool.currency.isalpha() and pool.currency.isupper()):
        raise Refusal("A currency is written with its three letters, such as EUR (ISO 4217).", field="currency")
