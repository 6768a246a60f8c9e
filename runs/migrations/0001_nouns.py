# The first nouns; constraints stand inside CreateModel so that a test database is made quickly.

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import workspaces.ids
import workspaces.scope
import workspaces.walls
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('workspaces', '0002_nouns'),
        ('workspaces', '__first__'),
    ]

    operations = [
        migrations.CreateModel(
            name='Artifact',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('path', models.CharField(max_length=1024)),
                ('name', models.CharField(max_length=250)),
                ('kind', models.CharField(default='file', help_text='file, model, table, log, …', max_length=40)),
                ('metadata', models.JSONField(blank=True, default=dict)),
                ('blob', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.blob')),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
            ],
            options={
                'abstract': False,
                'indexes': [models.Index(fields=['workspace', '-created_at', '-id'], name='artifact_newest')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_artifact_ws_id'), workspaces.walls.RowSecurity(name='runs_artifact_scope'), workspaces.walls.EventDemanded(name='runs_artifact_event'), workspaces.walls.SameWorkspace(field='blob', name='artifact_blob_ws')],
            },
        ),
        migrations.CreateModel(
            name='Certificate',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('verdict', models.CharField(choices=[('admitted', 'Admitted'), ('approval', 'needs approval'), ('refused', 'Refused')], max_length=8)),
                ('lines', models.JSONField(help_text='one entry a limit: name, unit, allowed, used, reserved, asked, mode, verdict, words, way_out')),
                ('facts', models.JSONField(help_text='what was decided upon; deciding again gives the same verdict')),
                ('request', models.JSONField(help_text='what was asked, with names and hashes frozen')),
                ('request_hash', models.CharField(max_length=64)),
                ('asked_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
            ],
            options={
                'abstract': False,
                'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_certificate_ws_id'), workspaces.walls.RowSecurity(name='runs_certificate_scope'), workspaces.walls.EventDemanded(name='runs_certificate_event')],
            },
        ),
        migrations.CreateModel(
            name='MetricSeries',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('key', models.CharField(max_length=250)),
                ('count', models.BigIntegerField(default=0)),
                ('last', models.FloatField(null=True)),
                ('last_step', models.BigIntegerField(null=True)),
                ('minimum', models.FloatField(help_text='of the finite values', null=True)),
                ('maximum', models.FloatField(null=True)),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
            ],
            options={
                'abstract': False,
                'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_metricseries_ws_id'), workspaces.walls.RowSecurity(name='runs_metricseries_scope')],
            },
        ),
        migrations.CreateModel(
            name='MetricChunk',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('attempt_number', models.PositiveSmallIntegerField(default=1)),
                ('steps', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                ('values', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                ('times', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), help_text='seconds UTC', size=None)),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                ('series', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='chunks', to='runs.metricseries')),
            ],
            options={
                'abstract': False,
                'indexes': [models.Index(fields=['workspace', 'series', 'id'], name='metricchunk_order')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_metricchunk_ws_id'), workspaces.walls.RowSecurity(name='runs_metricchunk_scope'), workspaces.walls.SameWorkspace(field='series', name='metricchunk_series_ws')],
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('name', models.CharField(max_length=200)),
                ('number', models.PositiveIntegerField(help_text="counts the workspace's runs")),
                ('status', models.CharField(choices=[('draft', 'draft'), ('awaiting_approval', 'awaiting approval'), ('queued', 'queued'), ('starting', 'starting'), ('running', 'running'), ('awaiting_input', 'awaiting input'), ('cancelling', 'cancelling'), ('succeeded', 'succeeded'), ('failed', 'failed'), ('cancelled', 'cancelled'), ('timed_out', 'timed out'), ('aborted', 'aborted'), ('lost', 'lost')], max_length=20)),
                ('reason_code', models.CharField(blank=True, max_length=40)),
                ('reason', models.CharField(blank=True, max_length=1000)),
                ('kind', models.CharField(max_length=20)),
                ('parameters', models.JSONField(default=dict)),
                ('seed', models.BigIntegerField(blank=True, null=True)),
                ('trigger', models.CharField(default='person', help_text='person, token, policy, retry', max_length=12)),
                ('trigger_reason', models.CharField(blank=True, help_text='why this run was asked for', max_length=1000)),
                ('priority', models.SmallIntegerField(default=0)),
                ('frozen', models.JSONField(help_text='versions and hashes of everything the run rests on (decision 12)')),
                ('content_hash', models.CharField(max_length=64)),
                ('slots', models.PositiveSmallIntegerField(default=1)),
                ('wall_seconds', models.PositiveIntegerField()),
                ('reserved_gpu_ms', models.BigIntegerField(default=0)),
                ('spent_gpu_ms', models.BigIntegerField(default=0)),
                ('reserved_api_micros', models.BigIntegerField(default=0)),
                ('spent_api_micros', models.BigIntegerField(default=0)),
                ('budget_window_at', models.DateTimeField(blank=True, help_text='start of the window that carries the reservation', null=True)),
                ('queued_at', models.DateTimeField(blank=True, null=True)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('agent', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='workspaces.agent')),
                ('agent_version', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='workspaces.agentversion')),
                ('benchmark', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='workspaces.benchmark')),
                ('certificate', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.certificate')),
                ('contract', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.contract')),
                ('pool', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='workspaces.pool')),
                ('requested_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('retry_of', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='retries', to='runs.run')),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
            ],
            options={
                'abstract': False,
                'indexes': [models.Index(fields=['workspace', '-created_at', '-id'], name='run_newest'), models.Index(fields=['workspace', 'status', '-created_at'], name='run_by_status'), models.Index(fields=['workspace', 'benchmark', '-created_at'], name='run_by_benchmark'), models.Index(fields=['workspace', 'agent', '-created_at'], name='run_by_agent')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_run_ws_id'), workspaces.walls.RowSecurity(name='runs_run_scope'), workspaces.walls.EventDemanded(name='runs_run_event'), workspaces.walls.SameWorkspace(field='benchmark', name='run_benchmark_ws'), workspaces.walls.SameWorkspace(field='contract', name='run_contract_ws'), workspaces.walls.SameWorkspace(field='agent', name='run_agent_ws'), workspaces.walls.SameWorkspace(field='agent_version', name='run_agent_version_ws'), workspaces.walls.SameWorkspace(field='pool', name='run_pool_ws'), workspaces.walls.SameWorkspace(field='certificate', name='run_certificate_ws'), workspaces.walls.SameWorkspace(field='retry_of', name='run_retry_of_ws'), models.UniqueConstraint(fields=('workspace', 'number'), name='run_number_once'), models.CheckConstraint(condition=models.Q(('status__in', ['draft', 'awaiting_approval', 'queued', 'starting', 'running', 'awaiting_input', 'cancelling', 'succeeded', 'failed', 'cancelled', 'timed_out', 'aborted', 'lost'])), name='run_status_known'), models.CheckConstraint(condition=models.Q(('reserved_gpu_ms__gte', 0), ('spent_gpu_ms__gte', 0)), name='run_gpu_not_negative'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', False), ('status__in', ['aborted', 'cancelled', 'failed', 'lost', 'succeeded', 'timed_out'])), models.Q(models.Q(('status__in', ['aborted', 'cancelled', 'failed', 'lost', 'succeeded', 'timed_out']), _negated=True), ('ended_at__isnull', True)), _connector='OR'), name='run_ended_when_terminal')],
            },
        ),
        migrations.CreateModel(
            name='QueueItem',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('priority', models.SmallIntegerField(default=0)),
                ('position_key', models.BigIntegerField(help_text='first in, first out within a priority; smaller goes first')),
                ('available_at', models.DateTimeField()),
                ('pool', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='queue_items', to='workspaces.pool')),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                ('run', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='queue_items', to='runs.run')),
            ],
            options={
                'abstract': False,
                'indexes': [models.Index(fields=['workspace', 'pool', '-priority', 'position_key'], name='queueitem_order')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_queueitem_ws_id'), workspaces.walls.RowSecurity(name='runs_queueitem_scope'), workspaces.walls.EventDemanded(name='runs_queueitem_event'), workspaces.walls.SameWorkspace(field='run', name='queueitem_run_ws'), workspaces.walls.SameWorkspace(field='pool', name='queueitem_pool_ws'), models.UniqueConstraint(fields=('workspace', 'run'), name='queueitem_once')],
            },
        ),
        migrations.AddField(
            model_name='metricseries',
            name='run',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='series', to='runs.run'),
        ),
        migrations.CreateModel(
            name='Evaluation',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('metric', models.CharField(max_length=250)),
                ('value', models.FloatField(help_text='NaN and infinities are kept and rank last')),
                ('standard_error', models.FloatField(blank=True, null=True)),
                ('samples', models.BigIntegerField(blank=True, null=True)),
                ('benchmark', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='evaluations', to='workspaces.benchmark')),
                ('contract', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.contract')),
                ('subject_artifact', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.artifact')),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                ('run', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='evaluations', to='runs.run')),
            ],
            options={
                'abstract': False,
                'indexes': [models.Index(fields=['workspace', 'benchmark', 'metric', 'value'], name='evaluation_rank')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_evaluation_ws_id'), workspaces.walls.RowSecurity(name='runs_evaluation_scope'), workspaces.walls.EventDemanded(name='runs_evaluation_event'), workspaces.walls.SameWorkspace(field='run', name='evaluation_run_ws'), workspaces.walls.SameWorkspace(field='benchmark', name='evaluation_benchmark_ws'), workspaces.walls.SameWorkspace(field='contract', name='evaluation_contract_ws'), workspaces.walls.SameWorkspace(field='subject_artifact', name='evaluation_subject_artifact_ws'), models.UniqueConstraint(fields=('workspace', 'run', 'benchmark', 'metric'), name='evaluation_once')],
            },
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('number', models.PositiveSmallIntegerField()),
                ('key', models.CharField(help_text='lab-<epoch>-<hex of the id>', max_length=64, unique=True)),
                ('status', models.CharField(choices=[('created', 'created'), ('submitted', 'submitted'), ('running', 'running'), ('ended', 'ended'), ('interrupted', 'interrupted'), ('lost', 'lost')], max_length=12)),
                ('fence', models.PositiveIntegerField(help_text='grows with each attempt; a late report of an older one moves nothing')),
                ('submitted_at', models.DateTimeField(blank=True, null=True)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('cancel_asked_at', models.DateTimeField(blank=True, null=True)),
                ('exit_code', models.IntegerField(blank=True, null=True)),
                ('exit_signal', models.IntegerField(blank=True, null=True)),
                ('exit_reason', models.CharField(blank=True, max_length=40)),
                ('peak_memory_bytes', models.BigIntegerField(blank=True, null=True)),
                ('cpu_ms', models.BigIntegerField(blank=True, null=True)),
                ('pool', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.pool')),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                ('run', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='runs.run')),
            ],
            options={
                'abstract': False,
                'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_attempt_ws_id'), workspaces.walls.RowSecurity(name='runs_attempt_scope'), workspaces.walls.EventDemanded(name='runs_attempt_event'), workspaces.walls.SameWorkspace(field='run', name='attempt_run_ws'), workspaces.walls.SameWorkspace(field='pool', name='attempt_pool_ws'), models.UniqueConstraint(fields=('workspace', 'run', 'number'), name='attempt_number_once'), models.UniqueConstraint(condition=models.Q(('status__in', ['created', 'submitted', 'running'])), fields=('workspace', 'run'), name='attempt_one_open')],
            },
        ),
        migrations.AddField(
            model_name='artifact',
            name='run',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='artifacts', to='runs.run'),
        ),
        migrations.CreateModel(
            name='RunInput',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('slug', models.CharField(max_length=64)),
                ('kind', models.CharField(help_text='dataset, artifact', max_length=10)),
                ('grant_id', models.UUIDField(blank=True, null=True)),
                ('sha256', models.CharField(max_length=64)),
                ('artifact', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='run_inputs', to='runs.artifact')),
                ('dataset_version', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='run_inputs', to='workspaces.datasetversion')),
                ('run', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='inputs', to='runs.run')),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
            ],
            options={
                'abstract': False,
                'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_runinput_ws_id'), workspaces.walls.RowSecurity(name='runs_runinput_scope'), workspaces.walls.EventDemanded(name='runs_runinput_event'), workspaces.walls.SameWorkspace(field='run', name='runinput_run_ws'), workspaces.walls.SameWorkspace(field='dataset_version', name='runinput_dataset_version_ws'), workspaces.walls.SameWorkspace(field='artifact', name='runinput_artifact_ws'), models.UniqueConstraint(fields=('workspace', 'run', 'slug'), name='runinput_slug_once')],
            },
        ),
        migrations.CreateModel(
            name='RunLine',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('number', models.BigIntegerField()),
                ('type', models.CharField(max_length=60)),
                ('body', models.JSONField()),
                ('attempt', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='lines', to='runs.attempt')),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
            ],
            options={
                'abstract': False,
                'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_runline_ws_id'), workspaces.walls.RowSecurity(name='runs_runline_scope'), workspaces.walls.SameWorkspace(field='attempt', name='runline_attempt_ws'), models.UniqueConstraint(fields=('workspace', 'attempt', 'number'), name='runline_once')],
            },
        ),
        migrations.CreateModel(
            name='Watch',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('observed', models.CharField(default='pending', max_length=8)),
                ('observed_reason', models.CharField(blank=True, max_length=300)),
                ('observed_at', models.DateTimeField(blank=True, null=True)),
                ('missing_since', models.DateTimeField(blank=True, null=True)),
                ('lease_until', models.DateTimeField(blank=True, help_text="one watcher at a time, by the database's clock", null=True)),
                ('metrics_offset', models.BigIntegerField(default=0)),
                ('metrics_lines', models.BigIntegerField(default=0)),
                ('metrics_bad', models.BigIntegerField(default=0)),
                ('events_offset', models.BigIntegerField(default=0)),
                ('events_lines', models.BigIntegerField(default=0)),
                ('events_bad', models.BigIntegerField(default=0)),
                ('bad_lines', models.JSONField(default=list, help_text='first bad lines: file, number, reason')),
                ('progress_done', models.FloatField(blank=True, null=True)),
                ('progress_total', models.FloatField(blank=True, null=True)),
                ('progress_text', models.CharField(blank=True, max_length=300)),
                ('api_spend_micros', models.BigIntegerField(default=0)),
                ('said_done', models.BooleanField(default=False)),
                ('attempt', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='watches', to='runs.attempt')),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
            ],
            options={
                'abstract': False,
                'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_watch_ws_id'), workspaces.walls.RowSecurity(name='runs_watch_scope'), workspaces.walls.SameWorkspace(field='attempt', name='watch_attempt_ws'), models.UniqueConstraint(fields=('workspace', 'attempt'), name='watch_once')],
            },
        ),
        migrations.AddConstraint(
            model_name='metricseries',
            constraint=workspaces.walls.SameWorkspace(field='run', name='metricseries_run_ws'),
        ),
        migrations.AddConstraint(
            model_name='metricseries',
            constraint=models.UniqueConstraint(fields=('workspace', 'run', 'key'), name='metricseries_once'),
        ),
        migrations.AddConstraint(
            model_name='artifact',
            constraint=workspaces.walls.SameWorkspace(field='run', name='artifact_run_ws'),
        ),
        migrations.AddConstraint(
            model_name='artifact',
            constraint=models.UniqueConstraint(fields=('workspace', 'run', 'path'), name='artifact_path_once'),
        ),
    ]
