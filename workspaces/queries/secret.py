"""Secrets as people see them: names, dates, fingerprints, who may read them, which run got which when. Never a value, sealed or not."""

import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from workspaces.ids import canonical
from workspaces.models import Agent, AgentVersion, Benchmark, Pool, Secret, SecretUse
from workspaces.models.secret import SECRET_NAME
from workspaces.queries.paging import Page, newest_first

_NAME = re.compile(SECRET_NAME)


def usable_secrets() -> list[Secret]:
    """Plain values that are not revoked, by name."""
    return list(Secret.objects.filter(revoked_at=None, kind=Secret.Kind.VALUE).order_by("name"))


@dataclass(frozen=True, slots=True)
class SecretRow:
    secret: Secret
    agents: list[str]
    pools: list[str]
    benchmarks: list[str]
    used_at: datetime | None

    @property
    def status(self) -> str:
        """`ready`, `due` for a new value, or `revoked`."""
        if self.secret.revoked_at is not None:
            return "revoked"
        due_at = self.secret.rotation_due_at
        return "due" if due_at is not None and due_at <= timezone.now() else "ready"


@dataclass(frozen=True, slots=True)
class UseRow:
    use: SecretUse

    @property
    def run_ref(self) -> str:
        return canonical("run", None, self.use.run_id)


@dataclass(frozen=True, slots=True)
class Standing:
    """May a run read the secret of that name? All of the answers, so that a refusal names what is missing."""

    name: str
    secret: Secret | None  # none of the name that holds
    revoked_at: datetime | None  # of the last one of the name, where none holds
    allows_agent: bool = False
    allows_pool: bool = False
    allows_benchmark: bool = False


def secret_rows() -> list[SecretRow]:
    """Secrets that hold by name, then those that were revoked, newest first."""
    found = _shown().prefetch_related(*LISTS)
    held = sorted((secret for secret in found if secret.revoked_at is None), key=lambda secret: secret.name)
    gone = sorted((secret for secret in found if secret.revoked_at is not None), key=lambda secret: secret.pk, reverse=True)
    return _rows([*held, *gone])


def page_of_secrets(*, cursor: str = "", size: int = 50) -> Page[SecretRow]:
    """The same by pages, newest first. Raises BadCursor."""
    page = newest_first(_shown().prefetch_related(*LISTS), cursor=cursor, size=size)
    return Page(items=_rows(page.items), next=page.next)


def row_of(secret: Secret) -> SecretRow:
    return _rows([_shown().prefetch_related(*LISTS).get(pk=secret.pk)])[0]


def find_secret(text: str) -> Secret:
    """By name (the one that holds, else the last that was revoked), as canonical id or UUID. Raises NotFound."""
    if _NAME.fullmatch(text):
        named = _shown().filter(name=text).order_by(F("revoked_at").desc(nulls_first=True)).first()
        if named is not None:
            return named
    return Secret.objects.find(text, "created_by")


def ssh_keys() -> list[str]:
    """Names of the SSH keys that hold."""
    return list(Secret.objects.filter(kind=Secret.Kind.SSH_KEY, revoked_at=None).order_by("name").values_list("name", flat=True))


def use_rows(secret: Secret, *, cursor: str = "", size: int = 50) -> Page[UseRow]:
    """Which run got it when, newest first. Raises BadCursor."""
    rows = SecretUse.objects.filter(secret=secret).defer("ciphertext", "nonce").select_related("agent")
    page = newest_first(rows, cursor=cursor, size=size)
    return Page(items=[UseRow(use) for use in page.items], next=page.next)


def held_uses(secret: Secret) -> list[UseRow]:
    """Attempts that have an earlier value than the one that holds, or any of a revoked one, and have not been collected."""
    earlier = Q(version__lt=secret.version) if secret.revoked_at is None else Q()
    rows = SecretUse.objects.filter(earlier, secret=secret).exclude(ciphertext="").defer("ciphertext", "nonce")
    return [UseRow(use) for use in rows.select_related("agent").order_by("-created_at", "-pk")[:100]]


def dependents(secret: Secret) -> list[AgentVersion]:
    """The newest version of each agent that names it, allowed to read it or not."""
    newest = AgentVersion.objects.select_related("agent").order_by("agent_id", "-number").distinct("agent_id")
    return sorted((version for version in newest if secret.name in version.secrets), key=lambda version: version.agent.name)


def pools_opened_by(secret: Secret) -> list[Pool]:
    """Pools whose engine is entered with it: their runs are out of reach without it."""
    return list(Pool.objects.filter(secret=secret).order_by("slug"))


def standings(names: Iterable[str], *, agent: Agent, pool: Pool, benchmark: Benchmark) -> list[Standing]:
    """What stands in the way of each name, in the order given; one question for each list, none where nothing is named."""
    wanted = list(names)
    if not wanted:
        return []
    known: dict[str, Secret] = {}
    rows = _shown().defer(None).filter(name__in=wanted).prefetch_related(*(relation for relation, _ in LISTED))
    for secret in rows.order_by(F("revoked_at").desc(nulls_first=True)):
        known.setdefault(secret.name, secret)
    return [_standing(name, known.get(name), agent.pk, pool.pk, benchmark.pk) for name in wanted]


def _standing(name: str, secret: Secret | None, agent: uuid.UUID, pool: uuid.UUID, benchmark: uuid.UUID) -> Standing:
    if secret is None or secret.revoked_at is not None:
        return Standing(name, None, secret.revoked_at if secret else None)
    benchmarks = {allowed.benchmark_id for allowed in secret.benchmarks.all()}
    return Standing(
        name,
        secret,
        None,
        allows_agent=agent in {allowed.agent_id for allowed in secret.agents.all()},
        allows_pool=pool in {allowed.pool_id for allowed in secret.pools.all()},
        allows_benchmark=not benchmarks or benchmark in benchmarks,
    )


LISTED = (("agents", "agents__agent"), ("pools", "pools__pool"), ("benchmarks", "benchmarks__benchmark"))
LISTS = tuple(deep for _, deep in LISTED)


def _shown() -> "QuerySet[Secret]":
    return Secret.objects.select_related("created_by").defer("ciphertext", "nonce")


def _rows(secrets: list[Secret]) -> list[SecretRow]:
    newest = SecretUse.objects.filter(secret__in=secrets).order_by("secret_id", "-created_at").distinct("secret_id")
    used = dict(newest.values_list("secret_id", "created_at")) if secrets else {}
    return [
        SecretRow(
            secret,
            agents=sorted(allowed.agent.slug for allowed in secret.agents.all()),
            pools=sorted(allowed.pool.slug for allowed in secret.pools.all()),
            benchmarks=sorted(allowed.benchmark.slug for allowed in secret.benchmarks.all()),
            used_at=used.get(secret.pk),
        )
        for secret in secrets
    ]
