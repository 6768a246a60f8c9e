"""Columns and a status that nothing has ever used go: what they were for is done by `attempt.number`, `attempt.started_at` and the queue's order."""

from django.db import migrations, models

# As in 0004, without what is gone. The columns of its result are the same, so that it keeps its owner and its rights.
BUSY = """
CREATE OR REPLACE FUNCTION lab_site_busy()
RETURNS TABLE (workspace_id uuid, open_attempts bigint, collecting bigint, queued bigint, events bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT
        w.id,
        (SELECT count(*) FROM public.runs_attempt a WHERE a.workspace_id = w.id AND a.status IN ('created', 'running')),
        (
            SELECT count(*) FROM public.runs_run r
            WHERE r.workspace_id = w.id AND r.status IN ('starting', 'running', 'awaiting_input', 'cancelling')
            AND NOT EXISTS (
                SELECT 1 FROM public.runs_attempt a
                WHERE a.workspace_id = r.workspace_id AND a.run_id = r.id AND a.status IN ('created', 'running')
            )
        ),
        (SELECT count(*) FROM public.runs_queueitem q WHERE q.workspace_id = w.id),
        coalesce((SELECT h.sequence FROM public.workspaces_audithead h WHERE h.workspace_id = w.id), 0)
    FROM public.workspaces_workspace w
$$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0004_collecting"),
        ("workspaces", "0004_denials"),
    ]

    operations = [
        migrations.RunSQL(BUSY, elidable=False),
        migrations.RemoveConstraint(model_name="attempt", name="attempt_one_open"),
        migrations.RemoveField(model_name="attempt", name="fence"),
        migrations.RemoveField(model_name="attempt", name="submitted_at"),
        migrations.RemoveField(model_name="queueitem", name="available_at"),
        migrations.AlterField(
            model_name="attempt",
            name="number",
            field=models.PositiveSmallIntegerField(help_text="grows with each attempt; a late report of an older one moves nothing"),
        ),
        migrations.AlterField(
            model_name="attempt",
            name="status",
            field=models.CharField(
                choices=[
                    ("created", "created"),
                    ("running", "running"),
                    ("ended", "ended"),
                    ("interrupted", "interrupted"),
                    ("lost", "lost"),
                ],
                max_length=12,
            ),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", ["created", "running"])), fields=("workspace", "run"), name="attempt_one_open"
            ),
        ),
    ]
