"""Engines of the installation: machines that workspaces bind pools to."""

from django.core.exceptions import ValidationError

from workspaces.access import Actor, SiteRole
from workspaces.audit import Refusal
from workspaces.models import Engine, NotFound
from workspaces.site_audit import SiteDraft, SiteVerb, site_command

MAX_SLOTS = 1_000


@site_command(SiteVerb.ENGINE_ADDED, needs=SiteRole.SITE_OPERATOR)
def add_engine(event: SiteDraft, *, actor: Actor, slug: str, slots: int, gpu_kind: str = "", kind: str = Engine.Kind.LOCAL) -> Engine:
    """Add an engine with the number of attempts it runs at once, over all workspaces."""
    if kind != Engine.Kind.LOCAL:
        raise Refusal("Only engines on this machine can be added so far.", field="kind")
    engine = Engine(slug=slug, kind=kind, slots=_slots(slots), gpu_kind=gpu_kind)
    try:
        engine.full_clean()
    except ValidationError as error:
        name, messages = next(iter(error.message_dict.items()))
        raise Refusal(*messages, field=name) from error
    engine.save(force_insert=True)
    event.about(engine)
    event.details["slots"] = engine.slots
    return engine


@site_command(SiteVerb.ENGINE_CHANGED, needs=SiteRole.SITE_OPERATOR)
def change_engine(event: SiteDraft, *, actor: Actor, slug: str, slots: int | None = None, is_accepting: bool | None = None) -> Engine:
    """Open or close an engine for new attempts, or change its slots; what runs goes on."""
    engine = Engine.objects.select_for_update(no_key=True).filter(slug=slug).first()
    if engine is None:
        raise NotFound("engine")
    values: dict[str, object] = {}
    if slots is not None:
        values["slots"] = _slots(slots)
    if is_accepting is not None:
        values["is_accepting"] = is_accepting
    event.change(engine, **values)
    return engine


def tell_isolations(*, actor: Actor, isolations: list[str]) -> None:
    """Keep which isolations this machine was found to offer, on its engines; nothing is written where that is known."""
    for engine in Engine.objects.filter(kind=Engine.Kind.LOCAL).exclude(isolations=isolations).order_by("slug"):
        _tell_isolations(actor=actor, engine=engine, isolations=isolations)


@site_command(SiteVerb.ENGINE_CHANGED, needs=None, by_system=True)
def _tell_isolations(event: SiteDraft, *, actor: Actor, engine: Engine, isolations: list[str]) -> None:
    event.change(Engine.objects.select_for_update(no_key=True).get(pk=engine.pk), isolations=isolations)


def _slots(slots: int) -> int:
    if not 1 <= slots <= MAX_SLOTS:
        raise Refusal(f"An engine has 1 to {MAX_SLOTS:,} slots.", field="slots")
    return slots
