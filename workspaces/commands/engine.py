"""Engines of the installation: machines that workspaces bind pools to."""

import re

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from django.core.exceptions import ValidationError

from workspaces.access import Actor, SiteRole
from workspaces.audit import Refusal
from workspaces.models import Engine, EngineWeight, NotFound
from workspaces.queries.workspace import find_workspace
from workspaces.reasons import because
from workspaces.site_audit import SiteDraft, SiteVerb, site_command

MAX_SLOTS = 1_000
_JOBS_URL = re.compile(r"https?://([A-Za-z0-9.-]{1,253}|\[[0-9a-fA-F:]{2,39}\])(:[0-9]{1,5})?/?", re.ASCII)
MAX_WEIGHT = 100
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]{0,253}[A-Za-z0-9]|[A-Za-z0-9]|::1", re.ASCII)


@site_command(SiteVerb.ENGINE_ADDED, needs=SiteRole.SITE_OPERATOR)
def add_engine(
    event: SiteDraft,
    *,
    actor: Actor,
    slug: str,
    slots: int,
    gpu_kind: str = "",
    kind: str = Engine.Kind.LOCAL,
    host: str = "",
    port: int = 22,
    host_key: str = "",
    jobs_url: str = "",
) -> Engine:
    """Add an engine with the number of attempts it runs at once, over all workspaces.

    One that is reached by SSH has an address, and its public host key as OpenSSH writes it (`ssh-keyscan`, compared on the machine itself): a
    host that shows another is not spoken to. Slurm and Ray are reached from this machine where they have no host; of Ray the `jobs_url` says
    where the machine that asks finds its Jobs API.
    """
    if kind not in Engine.Kind.values:
        raise Refusal(f"There are engines of the kinds {', '.join(Engine.Kind.values)}.", field="kind")
    engine = Engine(slug=slug, kind=kind, slots=_slots(slots), gpu_kind=gpu_kind)
    if kind == Engine.Kind.SSH or (host and kind != Engine.Kind.LOCAL):
        engine.host, engine.port, engine.host_key = _host(host), _port(port), _host_key(host_key)
    elif host or host_key:
        raise Refusal("An engine that is reached from this machine has no host; leave it and its key empty.", field="host")
    if kind == Engine.Kind.RAY:
        engine.jobs_url = _jobs_url(jobs_url)
    elif jobs_url:
        raise Refusal("Only Ray has a Jobs API; leave its address empty.", field="jobs_url")
    try:
        engine.full_clean()
    except ValidationError as error:
        name, messages = next(iter(error.message_dict.items()))
        raise Refusal(*messages, field=name) from error
    engine.save(force_insert=True)
    event.about(engine)
    found = {"address": engine.address, "jobs_url": engine.jobs_url}
    event.details |= {"slots": engine.slots} | {name: value for name, value in found.items() if value}
    return engine


@site_command(SiteVerb.ENGINE_CHANGED, needs=SiteRole.SITE_OPERATOR)
def change_engine(
    event: SiteDraft,
    *,
    actor: Actor,
    slug: str,
    slots: int | None = None,
    is_accepting: bool | None = None,
    host_key: str | None = None,
    jobs_url: str | None = None,
    reason: str = "",
) -> Engine:
    """Open or close an engine for new attempts, which takes a reason; change its slots, pin another host key after its host got one, or say
    where Ray answers now. What runs goes on."""
    engine = Engine.objects.select_for_update(no_key=True).filter(slug=slug).first()
    if engine is None:
        raise NotFound("engine")
    values: dict[str, object] = {}
    if slots is not None:
        values["slots"] = _slots(slots)
    if is_accepting is not None:
        values["is_accepting"] = is_accepting
    if host_key is not None:
        if not engine.host:
            raise Refusal("Only an engine that is reached by SSH has a host key.", field="host_key")
        values["host_key"] = _host_key(host_key)
    if jobs_url is not None:
        if engine.kind != Engine.Kind.RAY:
            raise Refusal("Only Ray has a Jobs API.", field="jobs_url")
        values["jobs_url"] = _jobs_url(jobs_url)
    values = {name: value for name, value in values.items() if getattr(engine, name) != value}
    if not values:
        raise Refusal("Nothing would change.")
    if "is_accepting" in values:
        reason = because(reason, "Say why; it stands in the record of the installation.")
    event.change(engine, **values)
    if reason.strip():
        event.details["reason"] = reason.strip()[:1000]
    return engine


@site_command(SiteVerb.ENGINE_WEIGHT_SET, needs=SiteRole.SITE_OPERATOR)
def set_engine_weight(event: SiteDraft, *, actor: Actor, workspace: str, weight: int) -> EngineWeight:
    """How much a workspace gets of engines that it shares, against others: of twice the weight, twice the share. 1 where none is set."""
    found = find_workspace(workspace)
    if found is None:
        raise NotFound("workspace")
    if not 1 <= weight <= MAX_WEIGHT:
        raise Refusal(f"A weight is a whole number from 1 to {MAX_WEIGHT}.", field="weight")
    row = EngineWeight.objects.select_for_update(no_key=True).filter(workspace=found).first() or EngineWeight(workspace=found)
    before = row.weight
    if before == weight:
        raise Refusal(f"{found.slug} has weight {weight} already.", field="weight")
    row.weight = weight
    row.save()
    event.about(found)
    event.details["changed"] = {"weight": [before, weight]}
    return row


def tell_isolations(*, actor: Actor, isolations: list[str]) -> None:
    """Keep which isolations this machine was found to offer, on the engines whose attempts are this installation's own processes; nothing is
    written where that is known."""
    # Slurm's jobs are ours as well, on nodes that are taken to be like this machine.
    here = Engine.objects.filter(kind__in=(Engine.Kind.LOCAL, Engine.Kind.SLURM), host="")
    for engine in here.exclude(isolations=isolations).order_by("slug"):
        _tell_isolations(actor=actor, engine=engine, isolations=isolations)


@site_command(SiteVerb.ENGINE_CHANGED, needs=None, by_system=True)
def _tell_isolations(event: SiteDraft, *, actor: Actor, engine: Engine, isolations: list[str]) -> None:
    event.change(Engine.objects.select_for_update(no_key=True).get(pk=engine.pk), isolations=isolations)


def _slots(slots: int) -> int:
    if not 1 <= slots <= MAX_SLOTS:
        raise Refusal(f"An engine has 1 to {MAX_SLOTS:,} slots.", field="slots")
    return slots


def _host(host: str) -> str:
    if not _HOST.fullmatch(host.strip()):
        raise Refusal("Write the name or the address of the host, such as gpu-7.example.org or 10.0.0.7.", field="host")
    return host.strip()


def _jobs_url(url: str) -> str:
    """Where Ray's Jobs API answers: scheme, host and port, nothing else. Requests go there, so only operators set it."""
    if not _JOBS_URL.fullmatch(url.strip()):
        raise Refusal("Write where Ray's Jobs API answers, such as http://127.0.0.1:8265.", field="jobs_url")
    return url.strip().rstrip("/")


def _port(port: int) -> int:
    if not 1 <= port <= 65535:
        raise Refusal("A port is a number from 1 to 65535.", field="port")
    return port


def _host_key(text: str) -> str:
    """Public keys, one a line: type, base64, without the name of the host that `ssh-keyscan` puts before them."""
    lines = [line.split() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    keys = [" ".join(words[1:3] if len(words) > 2 and not words[0].startswith(("ssh-", "ecdsa-")) else words[:2]) for words in lines]
    if not keys:
        raise Refusal("Without its host key nobody can tell the host from another; paste the line of ssh-keyscan.", field="host_key")
    for key in keys:
        try:
            load_ssh_public_key(key.encode())
        except (ValueError, UnsupportedAlgorithm) as error:
            raise Refusal(f"{key[:60]} is no public key as OpenSSH writes it, such as ssh-ed25519 AAAA….", field="host_key") from error
    return "\n".join(keys)
