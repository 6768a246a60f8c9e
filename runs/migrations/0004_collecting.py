"""Collecting what an ended attempt left: how far it is, and the site's question which workspaces have something to collect."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import workspaces.ids
import workspaces.scope
import workspaces.walls

# As in 0002, with `collecting`: runs that have not ended although no attempt of theirs is open any more. A function's columns cannot be
# changed, so it is made anew, with the rights and the owner of 0002.
CREATE = """
DROP FUNCTION lab_site_busy();
CREATE FUNCTION lab_site_busy()
RETURNS TABLE (workspace_id uuid, open_attempts bigint, collecting bigint, queued bigint, events bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT
        w.id,
        (SELECT count(*) FROM public.runs_attempt a WHERE a.workspace_id = w.id AND a.status IN ('created', 'submitted', 'running')),
        (
            SELECT count(*) FROM public.runs_run r
            WHERE r.workspace_id = w.id AND r.status IN ('starting', 'running', 'awaiting_input', 'cancelling')
            AND NOT EXISTS (
                SELECT 1 FROM public.runs_attempt a
                WHERE a.workspace_id = r.workspace_id AND a.run_id = r.id AND a.status IN ('created', 'submitted', 'running')
            )
        ),
        (SELECT count(*) FROM public.runs_queueitem q WHERE q.workspace_id = w.id AND q.available_at <= now()),
        coalesce((SELECT h.sequence FROM public.workspaces_audithead h WHERE h.workspace_id = w.id), 0)
    FROM public.workspaces_workspace w
$$;
"""
BACK = """
DROP FUNCTION lab_site_busy();
CREATE FUNCTION lab_site_busy()
RETURNS TABLE (workspace_id uuid, open_attempts bigint, queued bigint, events bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT
        w.id,
        (SELECT count(*) FROM public.runs_attempt a WHERE a.workspace_id = w.id AND a.status IN ('created', 'submitted', 'running')),
        (SELECT count(*) FROM public.runs_queueitem q WHERE q.workspace_id = w.id AND q.available_at <= now()),
        coalesce((SELECT h.sequence FROM public.workspaces_audithead h WHERE h.workspace_id = w.id), 0)
    FROM public.workspaces_workspace w
$$;
"""
OWNED_BY_SEARCH_ROLE = """
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'labsite_search' AND pg_has_role(current_user, oid, 'MEMBER')) THEN
        GRANT CREATE ON SCHEMA public TO labsite_search;
        ALTER FUNCTION lab_site_busy() OWNER TO labsite_search;
        REVOKE CREATE ON SCHEMA public FROM labsite_search;
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'lab_site_busy() stays with %', current_user;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0003_sweep"),
        ("workspaces", "0002_nouns"),
    ]

    operations = [
        migrations.AddField(
            model_name="watch",
            name="collect_tries",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="watch",
            name="collecting_since",
            field=models.DateTimeField(blank=True, help_text="its end is on record, what it left is being collected", null=True),
        ),
        migrations.AddField(
            model_name="watch",
            name="samples_bad",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="watch",
            name="samples_lines",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="watch",
            name="samples_offset",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AlterField(
            model_name="watch",
            name="lease_until",
            field=models.DateTimeField(blank=True, help_text="one watcher or collector at a time, by the database's clock", null=True),
        ),
        migrations.CreateModel(
            name="KeptFile",
            fields=[
                ("id", models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ("path", models.CharField(help_text="of the artifact that it becomes", max_length=1024)),
                ("sha256", models.CharField(max_length=64)),
                ("bytes", models.BigIntegerField()),
                (
                    "attempt",
                    models.ForeignKey(
                        db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name="kept_files", to="runs.attempt"
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        default=workspaces.scope.current_id,
                        editable=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(fields=("workspace", "id"), name="runs_keptfile_ws_id"),
                    workspaces.walls.RowSecurity(name="runs_keptfile_scope"),
                    workspaces.walls.SameWorkspace(field="attempt", name="keptfile_attempt_ws"),
                    models.UniqueConstraint(fields=("workspace", "attempt", "path"), name="keptfile_once"),
                ],
            },
        ),
        migrations.RunSQL(CREATE, BACK),
        migrations.RunSQL(OWNED_BY_SEARCH_ROLE, OWNED_BY_SEARCH_ROLE),
    ]
