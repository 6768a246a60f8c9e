"""Scores with what a page shows beside them, fetched once it is known which ones stand on the page."""

from django.db.models import QuerySet

from runs.models import Evaluation

RELATED = ("run__agent", "run__agent_version", "contract", "subject_artifact__run__agent", "subject_artifact__run__agent_version")


def with_related(rows: "QuerySet[Evaluation]") -> list[Evaluation]:
    """The rows with runs, agents and contract, in two statements: a rank wants every score of the board, and PostgreSQL would carry all that is
    joined through its sort (100,000 scores: nine seconds)."""
    found = list(rows)
    whole = Evaluation.objects.select_related(*RELATED).in_bulk([row.pk for row in found]) if found else {}
    for row in found:
        for name in rows.query.annotation_select:
            setattr(whole[row.pk], name, getattr(row, name))
    return [whole[row.pk] for row in found]
