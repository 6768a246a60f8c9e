"""Scores with what a page shows beside them, fetched once it is known which ones stand on the page."""

from collections.abc import Iterable

from runs.models import Evaluation
from workspaces import kept_query

RELATED = ("run__agent", "run__agent_version", "contract", "subject_artifact__run__agent", "subject_artifact__run__agent_version")
_OWN = frozenset(field.attname for field in Evaluation._meta.concrete_fields)


def with_related(rows: Iterable[Evaluation]) -> list[Evaluation]:
    """The rows with runs, agents and contract, in two statements: a rank wants every score of the board, and PostgreSQL would carry all that is
    joined through its sort (100,000 scores: nine seconds). Ranks and what else was computed of a row stay with it."""
    found = list(rows)
    whole = {row.pk: row for row in kept_query.rows(Evaluation, pk__in=[row.pk for row in found], related=RELATED)} if found else {}
    for row in found:
        vars(whole[row.pk]).update((name, value) for name, value in vars(row).items() if name not in _OWN and not name.startswith("_"))
    return [whole[row.pk] for row in found]
