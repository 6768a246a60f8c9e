"""Which metrics were reported under a contract, without reading every score of them.

PostgreSQL has no skip scan for DISTINCT: it reads each row. This is the loose index scan of its wiki, a step of the recursion for each name.
"""

from uuid import UUID

from workspaces import prepared, scope

_NEXT = """
SELECT metric FROM runs_evaluation WHERE workspace_id = %s AND benchmark_id = %s AND contract_id = %s{after}
AND NOT EXISTS (
    SELECT FROM workspaces_withdrawnobject AS mark JOIN workspaces_withdrawal AS withdrawal ON withdrawal.id = mark.withdrawal_id
    WHERE mark.workspace_id = %s AND mark.kind = 'evaluation' AND mark.object_id = runs_evaluation.id AND withdrawal.undone_at IS NULL)
AND NOT EXISTS (SELECT FROM runs_checkresult AS checked WHERE checked.workspace_id = %s AND checked.run_id = runs_evaluation.run_id)
ORDER BY metric LIMIT 1
"""
_WALK = f"""
WITH RECURSIVE found (metric) AS (
    ({_NEXT.format(after="")}) UNION ALL SELECT ({_NEXT.format(after=" AND metric > found.metric")}) FROM found WHERE found.metric IS NOT NULL
)
SELECT metric FROM found WHERE metric IS NOT NULL LIMIT %s
"""  # noqa: S608  # text of ours


def reported(benchmark: UUID, contract: UUID, *, most: int) -> list[str]:
    """The first `most` names, in the database's order, of metrics that have a score which stands (`standing`: nothing withdrawn, no check's)."""
    workspace = scope.current_id()
    next_one = [workspace, benchmark, contract, workspace, workspace]
    with prepared.sent([(_WALK, [*next_one, *next_one, most])]) as cursor:
        return [name for (name,) in cursor.fetchall()]
