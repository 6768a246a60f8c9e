"""What operators see and do: holds of a queue, runs that failed for one reason, and the shares of workspaces in an engine."""

import django.db.models.deletion
import django.db.models.functions.datetime
import workspaces.ids
import workspaces.scope
import workspaces.walls
from django.conf import settings
from django.db import migrations, models

# How much of an engine each workspace with a pool on it has had in the last 24 hours, its weight, and how many places its next run asks for
# just now; nothing where nobody but `asking` asks for any. Counted in slots, which are alike for all: what a slot counts as in GPUs is the workspace's own word. Rights and owner as in 0002.
CREATE = """
CREATE FUNCTION lab_site_shares(asked_engine uuid, asking uuid)
RETURNS TABLE (workspace_id uuid, slot_ms bigint, weight integer, wanted_slots bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT
        bound.workspace_id,
        coalesce((
            SELECT sum(
                r.slots * (extract(epoch FROM
                    least(coalesce(a.ended_at, now()), now()) - greatest(coalesce(a.started_at, a.created_at), now() - interval '24 hours')
                ) * 1000)::bigint
            )
            FROM public.workspaces_pool p
            JOIN public.runs_attempt a ON a.workspace_id = p.workspace_id AND a.pool_id = p.id
            JOIN public.runs_run r ON r.workspace_id = a.workspace_id AND r.id = a.run_id
            WHERE p.engine_id = asked_engine AND p.workspace_id = bound.workspace_id
            AND (a.ended_at IS NULL OR a.ended_at > now() - interval '24 hours')
            AND (a.started_at IS NOT NULL OR a.ended_at IS NULL)
        ), 0)::bigint,
        coalesce((SELECT w.weight FROM public.workspaces_engineweight w WHERE w.workspace_id = bound.workspace_id), 1)::integer,
        coalesce((
            SELECT max(d.slots)
            FROM public.runs_pooldemand d
            JOIN public.workspaces_pool p ON p.workspace_id = d.workspace_id AND p.id = d.pool_id
            WHERE d.workspace_id = bound.workspace_id AND p.engine_id = asked_engine AND d.wanted_at > now() - interval '15 seconds'
        ), 0)::bigint
    FROM (SELECT DISTINCT p.workspace_id FROM public.workspaces_pool p WHERE p.engine_id = asked_engine) AS bound
    WHERE EXISTS (
        SELECT 1 FROM public.runs_pooldemand d
        JOIN public.workspaces_pool p ON p.workspace_id = d.workspace_id AND p.id = d.pool_id
        WHERE p.engine_id = asked_engine AND d.workspace_id <> asking AND d.wanted_at > now() - interval '15 seconds'
    )
$$;
"""
OWNED_BY_SEARCH_ROLE = """
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'labsite_search' AND pg_has_role(current_user, oid, 'MEMBER')) THEN
        GRANT CREATE ON SCHEMA public TO labsite_search;
        ALTER FUNCTION lab_site_shares(uuid, uuid) OWNER TO labsite_search;
        REVOKE CREATE ON SCHEMA public FROM labsite_search;
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'lab_site_shares() stays with %', current_user;
END $$;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0009_leases'),
        ('workspaces', '0010_queue_rules'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='FailureGroup',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('fingerprint', models.CharField(help_text='SHA-256 of reason code, exit code or signal and error lines without their figures', max_length=64)),
                ('reason_code', models.CharField(blank=True, max_length=40)),
                ('title', models.CharField(help_text='the cause in words; what differs from run to run is an ellipsis', max_length=300)),
                ('count', models.PositiveIntegerField(default=0)),
                ('first_at', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
                ('acknowledged_at', models.DateTimeField(blank=True, null=True)),
                ('acknowledged_reason', models.CharField(blank=True, max_length=1000)),
                ('acknowledged_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('agent', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='failure_groups', to='workspaces.agent')),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
            ],
            options={
                'abstract': False,
                'indexes': [
                    models.Index(fields=['workspace', '-last_at', '-id'], name='failuregroup_newest'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'id'), name='runs_failuregroup_ws_id'),
                    workspaces.walls.RowSecurity(name='runs_failuregroup_scope'),
                    workspaces.walls.EventDemanded(name='runs_failuregroup_event'),
                    workspaces.walls.SameWorkspace(field='agent', name='failuregroup_agent_ws'),
                    models.UniqueConstraint(fields=('workspace', 'agent', 'fingerprint'), name='failuregroup_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Failure',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('lines', models.JSONField(default=list, help_text='the error lines, in their order')),
                ('run', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='failures', to='runs.run')),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                ('group', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='failures', to='runs.failuregroup')),
            ],
            options={
                'abstract': False,
                'indexes': [
                    models.Index(fields=['workspace', 'group', '-created_at'], name='failure_newest'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'id'), name='runs_failure_ws_id'),
                    workspaces.walls.RowSecurity(name='runs_failure_scope'),
                    workspaces.walls.EventDemanded(name='runs_failure_event'),
                    workspaces.walls.SameWorkspace(field='group', name='failure_group_ws'),
                    workspaces.walls.SameWorkspace(field='run', name='failure_run_ws'),
                    models.UniqueConstraint(fields=('workspace', 'run'), name='failure_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='PoolDemand',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('slots', models.PositiveIntegerField()),
                ('wanted_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('pool', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.pool')),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
            ],
            options={
                'abstract': False,
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'id'), name='runs_pooldemand_ws_id'),
                    workspaces.walls.RowSecurity(name='runs_pooldemand_scope'),
                    workspaces.walls.SameWorkspace(field='pool', name='pooldemand_pool_ws'),
                    models.UniqueConstraint(fields=('workspace', 'pool'), name='pooldemand_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='QueueHold',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('reason', models.CharField(max_length=1000)),
                ('held_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
            ],
            options={
                'abstract': False,
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'id'), name='runs_queuehold_ws_id'),
                    workspaces.walls.RowSecurity(name='runs_queuehold_scope'),
                    workspaces.walls.EventDemanded(name='runs_queuehold_event'),
                    models.UniqueConstraint(fields=('workspace',), name='queuehold_once'),
                ],
            },
        ),
        migrations.AddIndex(
            model_name='attempt',
            index=models.Index(fields=['workspace', 'pool', '-ended_at'], name='attempt_by_pool'),
        ),
        migrations.RunSQL(CREATE, "DROP FUNCTION lab_site_shares(uuid, uuid)"),
        migrations.RunSQL(OWNED_BY_SEARCH_ROLE, migrations.RunSQL.noop),
    ]
