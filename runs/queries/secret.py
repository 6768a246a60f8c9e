"""Secrets that a run reads: may it, and where do their values stand in what it has written?"""

from collections.abc import Sequence

from runs.admission_facts import SecretFacts
from runs.models import Attempt
from runs.queries.order import TOKEN_NAME, token_text
from runs.redaction import Redactor
from workspaces.models import Agent, AgentVersion, Benchmark, Pool, SecretUse
from workspaces.queries.sealed import handed_values
from workspaces.queries.secret import Standing, standings


def secret_facts(version: AgentVersion, *, agent: Agent, pool: Pool, benchmark: Benchmark) -> tuple[SecretFacts, ...]:
    """How the secrets stand that an agent's version names, for a run on this pool and benchmark."""
    found = standings(version.secrets, agent=agent, pool=pool, benchmark=benchmark)
    return tuple(as_facts(standing, agent=agent, pool=pool, benchmark=benchmark) for standing in found)


def as_facts(standing: Standing, *, agent: Agent, pool: Pool, benchmark: Benchmark) -> SecretFacts:
    if standing.secret is None:
        return SecretFacts(standing.name, "revoked" if standing.revoked_at is not None else "missing")
    asked = (
        (standing.allows_agent, f"the agent {agent.slug}"),
        (standing.allows_pool, f"the pool {pool.slug}"),
        (standing.allows_benchmark, f"the benchmark {benchmark.slug}"),
    )
    return SecretFacts(standing.name, "ready", tuple(words for allowed, words in asked if not allowed))


def redactor_of(attempt: Attempt, uses: Sequence[SecretUse] | None = None) -> Redactor:
    """Finds what an attempt was handed, its own token among it, until it is collected; `uses` is what `uses_of` has found. Raises BrokenSeal where a
    value cannot be opened: what the attempt wrote must not be shown then."""
    return Redactor({TOKEN_NAME: token_text(attempt)} | handed_values(attempt.key, uses))
