"""Everything up to 0026 at once, for a database that has nothing yet: the same tables, walls and functions, in a quarter of the time.
One that has some of the migrations that it stands for goes on along them."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import runs.models.called
import uuid
import workspaces.ids
import workspaces.scope
import workspaces.walls
from django.conf import settings
from django.db import migrations, models
from workspaces.create_models import CreateModels


# Which workspaces have something to do: named site queries, ids and counts, never content (contracts.md B). Each runs with the rights of its
# owner, so that row security does not hide the rows; hence the pinned search_path.
SITE_BUSY = """
CREATE FUNCTION lab_site_busy()
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
# The no-login role that bypasses row security and can do nothing else owns them, where there is one; else the owner of the tables, who bypasses
# row security as well. A new owner of a function needs CREATE on its schema for that moment.
BUSY_OWNED = """
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
# How much of an engine each workspace with a pool on it has had in the last 24 hours, its weight, and how many places its next run asks for
# just now; nothing where nobody but `asking` asks for any. Counted in slots, which are alike for all: what a slot counts as in GPUs is the
# workspace's own word.
SITE_SHARES = """
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
SHARES_OWNED = """
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
# The words of a memory entry, its title before its text, kept beside it so that ranking reads no text. One index for each trust: an answer is
# grouped by trust, and what few have vouched for is found among much that nobody has.
WORDS = """
ALTER TABLE runs_memoryentry ADD COLUMN words tsvector GENERATED ALWAYS AS (
    setweight(to_tsvector('simple', title), 'A') || setweight(to_tsvector('simple', text), 'B')
) STORED;
CREATE INDEX memoryentry_words_durable ON runs_memoryentry USING gin (words) WHERE trust = 'durable' AND superseded_at IS NULL;
CREATE INDEX memoryentry_words_confirmed ON runs_memoryentry USING gin (words) WHERE trust = 'confirmed' AND superseded_at IS NULL;
CREATE INDEX memoryentry_words_observed ON runs_memoryentry USING gin (words) WHERE trust = 'observed' AND superseded_at IS NULL;
CREATE INDEX memoryentry_words_unreviewed ON runs_memoryentry USING gin (words) WHERE trust = 'unreviewed' AND superseded_at IS NULL;
CREATE INDEX memoryentry_words_withdrawn ON runs_memoryentry USING gin (words) WHERE trust = 'withdrawn' AND superseded_at IS NULL;
"""
# Full-text search loses its index under row security, since its operators are not leakproof (contracts.md B). This function runs with the rights
# of its owner, and compares with the open workspace itself; under a share grant it finds nothing. `matches` counts to 1,000 a trust, and so
# many are ranked.
SEARCH = """
CREATE FUNCTION lab_memory_search(text_asked text, in_collection text, of_kind text, most integer)
RETURNS TABLE (id uuid, trust text, rank real, matches bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    WITH asked AS MATERIALIZED (SELECT websearch_to_tsquery('simple', text_asked) AS query)

    (SELECT id, trust, rank, matches FROM (
        SELECT e.id, 'durable'::text AS trust, ts_rank(e.words, q.query) AS rank, count(*) OVER () AS matches FROM (
            SELECT m.id, m.words FROM public.runs_memoryentry m, asked q
            WHERE m.words @@ q.query AND m.trust = 'durable' AND m.superseded_at IS NULL
              AND m.workspace_id = nullif(current_setting('lab.workspace', true), '')::uuid
              AND coalesce(current_setting('lab.shared', true), '') = ''
              AND (in_collection = '' OR m.collection = in_collection) AND (of_kind = '' OR m.kind = of_kind)
            LIMIT 1000
        ) e, asked q
    ) ranked ORDER BY rank DESC, id DESC LIMIT least(greatest(most, 0), 100))
UNION ALL
    (SELECT id, trust, rank, matches FROM (
        SELECT e.id, 'confirmed'::text AS trust, ts_rank(e.words, q.query) AS rank, count(*) OVER () AS matches FROM (
            SELECT m.id, m.words FROM public.runs_memoryentry m, asked q
            WHERE m.words @@ q.query AND m.trust = 'confirmed' AND m.superseded_at IS NULL
              AND m.workspace_id = nullif(current_setting('lab.workspace', true), '')::uuid
              AND coalesce(current_setting('lab.shared', true), '') = ''
              AND (in_collection = '' OR m.collection = in_collection) AND (of_kind = '' OR m.kind = of_kind)
            LIMIT 1000
        ) e, asked q
    ) ranked ORDER BY rank DESC, id DESC LIMIT least(greatest(most, 0), 100))
UNION ALL
    (SELECT id, trust, rank, matches FROM (
        SELECT e.id, 'observed'::text AS trust, ts_rank(e.words, q.query) AS rank, count(*) OVER () AS matches FROM (
            SELECT m.id, m.words FROM public.runs_memoryentry m, asked q
            WHERE m.words @@ q.query AND m.trust = 'observed' AND m.superseded_at IS NULL
              AND m.workspace_id = nullif(current_setting('lab.workspace', true), '')::uuid
              AND coalesce(current_setting('lab.shared', true), '') = ''
              AND (in_collection = '' OR m.collection = in_collection) AND (of_kind = '' OR m.kind = of_kind)
            LIMIT 1000
        ) e, asked q
    ) ranked ORDER BY rank DESC, id DESC LIMIT least(greatest(most, 0), 100))
UNION ALL
    (SELECT id, trust, rank, matches FROM (
        SELECT e.id, 'unreviewed'::text AS trust, ts_rank(e.words, q.query) AS rank, count(*) OVER () AS matches FROM (
            SELECT m.id, m.words FROM public.runs_memoryentry m, asked q
            WHERE m.words @@ q.query AND m.trust = 'unreviewed' AND m.superseded_at IS NULL
              AND m.workspace_id = nullif(current_setting('lab.workspace', true), '')::uuid
              AND coalesce(current_setting('lab.shared', true), '') = ''
              AND (in_collection = '' OR m.collection = in_collection) AND (of_kind = '' OR m.kind = of_kind)
            LIMIT 1000
        ) e, asked q
    ) ranked ORDER BY rank DESC, id DESC LIMIT least(greatest(most, 0), 100))
UNION ALL
    (SELECT id, trust, rank, matches FROM (
        SELECT e.id, 'withdrawn'::text AS trust, ts_rank(e.words, q.query) AS rank, count(*) OVER () AS matches FROM (
            SELECT m.id, m.words FROM public.runs_memoryentry m, asked q
            WHERE m.words @@ q.query AND m.trust = 'withdrawn' AND m.superseded_at IS NULL
              AND m.workspace_id = nullif(current_setting('lab.workspace', true), '')::uuid
              AND coalesce(current_setting('lab.shared', true), '') = ''
              AND (in_collection = '' OR m.collection = in_collection) AND (of_kind = '' OR m.kind = of_kind)
            LIMIT 1000
        ) e, asked q
    ) ranked ORDER BY rank DESC, id DESC LIMIT least(greatest(most, 0), 100))
$$;"""
SEARCH_OWNED = """
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'labsite_search' AND pg_has_role(current_user, oid, 'MEMBER')) THEN
        GRANT CREATE ON SCHEMA public TO labsite_search;
        ALTER FUNCTION lab_memory_search(text, text, text, integer) OWNER TO labsite_search;
        REVOKE CREATE ON SCHEMA public FROM labsite_search;
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'lab_memory_search() stays with %', current_user;
END $$;
"""


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('runs', '0001_nouns'),
        ('runs', '0002_site_functions'),
        ('runs', '0003_sweep'),
        ('runs', '0004_collecting'),
        ('runs', '0005_unused_columns'),
        ('runs', '0006_memory_writes'),
        ('runs', '0007_indexes'),
        ('runs', '0008_spend_and_scores'),
        ('runs', '0009_leases'),
        ('runs', '0010_operators'),
        ('runs', '0011_export'),
        ('runs', '0012_called_then'),
        ('runs', '0013_undeclared_inputs'),
        ('runs', '0014_promotions'),
        ('runs', '0015_dataset_imports'),
        ('runs', '0016_overlap'),
        ('runs', '0017_samples'),
        ('runs', '0018_sample_counts'),
        ('runs', '0019_review'),
        ('runs', '0020_contract_check'),
        ('runs', '0021_policy'),
        ('runs', '0022_memory'),
        ('runs', '0023_memory_lines'),
        ('runs', '0024_memory_configured'),
        ('runs', '0025_evaluation_board'),
        ('runs', '0026_piece_artifact'),
    ]

    dependencies = [
        ('workspaces', '0001_squashed_0027_piece_artifact'),
    ]

    operations = [
        CreateModels([
            migrations.CreateModel(
                name='Certificate',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('verdict', models.CharField(choices=[('admitted', 'Admitted'), ('approval', 'needs approval'), ('refused', 'Refused')], max_length=8)),
                    ('lines', models.JSONField(help_text='one entry a limit: name, unit, allowed, used, reserved, asked, mode, verdict, words, way_out')),
                    ('facts', models.JSONField(help_text='what was decided upon; deciding again gives the same verdict')),
                    ('request', models.JSONField(help_text='what was asked, with names and hashes frozen')),
                    ('request_hash', models.CharField(max_length=64)),
                    ('asked_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'abstract': False,
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_certificate_ws_id'), workspaces.walls.RowSecurity(name='runs_certificate_scope'), workspaces.walls.EventDemanded(name='runs_certificate_event')],
                },
            ),
            migrations.CreateModel(
                name='DatasetImport',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'being read'), ('done', 'Done'), ('failed', 'Failed')], default='queued', max_length=8)),
                    ('dataset', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='imports', to='workspaces.dataset')),
                    ('role', models.CharField(choices=[('train', 'Train'), ('validation', 'Validation'), ('holdout', 'Holdout'), ('any', 'any role')], max_length=10)),
                    ('sources', models.JSONField()),
                    ('source', models.CharField(help_text='where they lie, in words that open nothing', max_length=1000)),
                    ('endpoint', models.CharField(blank=True, help_text="of S3 addresses; empty: Amazon's of the region", max_length=500)),
                    ('region', models.CharField(blank=True, help_text='of S3 addresses', max_length=40)),
                    ('secret', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.secret')),
                    ('licence', models.CharField(blank=True, help_text='SPDX expression', max_length=200)),
                    ('evidence', models.CharField(blank=True, max_length=2000)),
                    ('records', models.BigIntegerField(blank=True, help_text='as a person counted them', null=True)),
                    ('has_header', models.BooleanField(default=True, help_text='the first line of CSV files names the columns')),
                    ('reason', models.CharField(blank=True, max_length=1000)),
                    ('requested_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('tries', models.PositiveSmallIntegerField(default=0, help_text='how often a worker began it')),
                    ('began_at', models.DateTimeField(blank=True, null=True)),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                    ('failure', models.CharField(blank=True, max_length=1000)),
                    ('found', models.JSONField(blank=True, default=list)),
                    ('version', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='imports', to='workspaces.datasetversion')),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', '-created_at', '-id'], name='datasetimport_newest'), models.Index(fields=['dataset', '-created_at'], name='datasetimport_of')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_datasetimport_ws_id'), workspaces.walls.RowSecurity(name='runs_datasetimport_scope'), workspaces.walls.EventDemanded(name='runs_datasetimport_event'), workspaces.walls.SameWorkspace(field='dataset', name='datasetimport_dataset_ws'), workspaces.walls.SameWorkspace(field='secret', name='datasetimport_secret_ws'), workspaces.walls.SameWorkspace(field='version', name='datasetimport_version_ws'), models.CheckConstraint(condition=models.Q(models.Q(('status', 'done'), _negated=True), ('version__isnull', False), _connector='OR'), name='datasetimport_done_has_a_version')],
                },
            ),
            migrations.CreateModel(
                name='Export',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('number', models.PositiveIntegerField(help_text="counts the workspace's exports")),
                    ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'being written'), ('ready', 'Ready'), ('taken', 'written to a folder'), ('failed', 'Failed'), ('removed', 'Removed')], default='queued', max_length=8)),
                    ('files', models.CharField(choices=[('none', 'code of agents'), ('public', 'code of agents, and files of public datasets'), ('internal', 'code of agents, files of public and internal datasets, and artifacts')], default='none', max_length=8)),
                    ('reason', models.CharField(blank=True, help_text='why it was asked for', max_length=1000)),
                    ('requested_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('is_kept', models.BooleanField(default=True, help_text='here for downloading; else written to a folder by whoever asked on this machine')),
                    ('tries', models.PositiveSmallIntegerField(default=0, help_text='how often a worker began it')),
                    ('began_at', models.DateTimeField(blank=True, null=True)),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                    ('expires_at', models.DateTimeField(blank=True, null=True)),
                    ('failure', models.CharField(blank=True, max_length=1000)),
                    ('bytes', models.BigIntegerField(blank=True, null=True)),
                    ('manifest_sha256', models.CharField(blank=True, max_length=64)),
                    ('contents', models.JSONField(blank=True, default=dict, help_text='files with rows, bytes and hash; and what was left out, and why')),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', '-created_at', '-id'], name='export_newest')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_export_ws_id'), workspaces.walls.RowSecurity(name='runs_export_scope'), workspaces.walls.EventDemanded(name='runs_export_event'), models.UniqueConstraint(fields=('workspace', 'number'), name='export_number_once'), models.UniqueConstraint(condition=models.Q(('status__in', ['queued', 'running'])), fields=('workspace',), name='export_one_at_a_time')],
                },
            ),
            migrations.CreateModel(
                name='FailureGroup',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('agent', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='failure_groups', to='workspaces.agent')),
                    ('fingerprint', models.CharField(help_text='SHA-256 of reason code, exit code or signal and error lines without their figures', max_length=64)),
                    ('reason_code', models.CharField(blank=True, max_length=40)),
                    ('title', models.CharField(help_text='the cause in words; what differs from run to run is an ellipsis', max_length=300)),
                    ('count', models.PositiveIntegerField(default=0)),
                    ('first_at', models.DateTimeField()),
                    ('last_at', models.DateTimeField()),
                    ('acknowledged_at', models.DateTimeField(blank=True, null=True)),
                    ('acknowledged_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('acknowledged_reason', models.CharField(blank=True, max_length=1000)),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', '-last_at', '-id'], name='failuregroup_newest')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_failuregroup_ws_id'), workspaces.walls.RowSecurity(name='runs_failuregroup_scope'), workspaces.walls.EventDemanded(name='runs_failuregroup_event'), workspaces.walls.SameWorkspace(field='agent', name='failuregroup_agent_ws'), models.UniqueConstraint(fields=('workspace', 'agent', 'fingerprint'), name='failuregroup_once')],
                },
            ),
            migrations.CreateModel(
                name='OverlapCheck',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('version', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='overlap_checks', to='workspaces.datasetversion')),
                    ('holdout', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='overlaps_found', to='workspaces.datasetversion')),
                    ('method', models.PositiveSmallIntegerField(help_text='of reading and hashing; 0 once it is to be checked anew')),
                    ('verdict', models.CharField(choices=[('contaminated', 'Contaminated'), ('suspicious', 'Suspicious'), ('clean', 'Clean'), ('unknown', 'Unknown')], max_length=12)),
                    ('exact', models.BigIntegerField(default=0, help_text='records of the version that stand in the holdout')),
                    ('near', models.BigIntegerField(default=0, help_text='records of the version that nearly do')),
                    ('is_least', models.BooleanField(default=False, help_text='there may be more near ones')),
                    ('reason', models.CharField(blank=True, help_text='why it is unknown, or what was compared as a whole', max_length=1000)),
                    ('pairs', models.JSONField(blank=True, default=list, help_text='where records stand on both sides, a hundred at most')),
                    ('checked_at', models.DateTimeField()),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', 'holdout'], name='overlapcheck_holdout')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_overlapcheck_ws_id'), workspaces.walls.RowSecurity(name='runs_overlapcheck_scope'), workspaces.walls.EventDemanded(name='runs_overlapcheck_event'), workspaces.walls.SameWorkspace(field='version', name='overlapcheck_version_ws'), workspaces.walls.SameWorkspace(field='holdout', name='overlapcheck_holdout_ws'), models.UniqueConstraint(fields=('workspace', 'version', 'holdout'), name='overlapcheck_once'), models.CheckConstraint(condition=models.Q(('exact__gte', 0), ('near__gte', 0)), name='overlapcheck_counts')],
                },
            ),
            migrations.CreateModel(
                name='Policy',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('slug', models.CharField(max_length=64, validators=[workspaces.ids.validate_slug])),
                    ('name', models.CharField(max_length=200)),
                    ('status', models.CharField(choices=[('active', 'acts once a version is approved'), ('paused', 'Paused'), ('stopped', 'stopped by one of its own limits'), ('retired', 'acts no more')], default='active', max_length=8)),
                    ('status_reason', models.CharField(blank=True, max_length=1000)),
                    ('status_at', models.DateTimeField(blank=True, help_text='when it was paused, stopped, retired or let go on', null=True)),
                    ('benchmark', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.benchmark')),
                    ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'verbose_name_plural': 'policies',
                    'abstract': False,
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_policy_ws_id'), workspaces.walls.RowSecurity(name='runs_policy_scope'), workspaces.walls.EventDemanded(name='runs_policy_event'), workspaces.walls.SameWorkspace(field='benchmark', name='policy_benchmark_ws'), models.UniqueConstraint(models.F('workspace'), django.db.models.functions.text.Replace('slug', models.Value('_'), models.Value('-')), name='policy_slug')],
                },
            ),
            migrations.CreateModel(
                name='PoolDemand',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('pool', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.pool')),
                    ('slots', models.PositiveIntegerField()),
                    ('wanted_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ],
                options={
                    'abstract': False,
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_pooldemand_ws_id'), workspaces.walls.RowSecurity(name='runs_pooldemand_scope'), workspaces.walls.SameWorkspace(field='pool', name='pooldemand_pool_ws'), models.UniqueConstraint(fields=('workspace', 'pool'), name='pooldemand_once')],
                },
            ),
            migrations.CreateModel(
                name='QueueHold',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('held_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('reason', models.CharField(max_length=1000)),
                ],
                options={
                    'abstract': False,
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_queuehold_ws_id'), workspaces.walls.RowSecurity(name='runs_queuehold_scope'), workspaces.walls.EventDemanded(name='runs_queuehold_event'), models.UniqueConstraint(fields=('workspace',), name='queuehold_once')],
                },
            ),
            migrations.CreateModel(
                name='RecordIndex',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('version', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='record_indexes', to='workspaces.datasetversion')),
                    ('method', models.PositiveSmallIntegerField(help_text='of reading and hashing; 0 once it is to be read anew')),
                    ('blob', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.blob')),
                    ('records', models.BigIntegerField(default=0)),
                    ('whole_files', models.PositiveIntegerField(default=0, help_text='files of a kind that is not read by records: each is one')),
                    ('fault', models.CharField(blank=True, help_text='what could not be read by its records, and why; all of it without a blob', max_length=1000)),
                ],
                options={
                    'abstract': False,
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_recordindex_ws_id'), workspaces.walls.RowSecurity(name='runs_recordindex_scope'), workspaces.walls.EventDemanded(name='runs_recordindex_event'), workspaces.walls.SameWorkspace(field='version', name='recordindex_version_ws'), workspaces.walls.SameWorkspace(field='blob', name='recordindex_blob_ws'), models.UniqueConstraint(fields=('workspace', 'version'), name='recordindex_once')],
                },
            ),
            migrations.CreateModel(
                name='Ruling',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('version', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='rulings', to='workspaces.datasetversion')),
                    ('number', models.PositiveIntegerField(help_text="counts the version's rulings")),
                    ('about', models.CharField(choices=[('verdict', 'Verdict'), ('reuse', 'Reuse')], max_length=8)),
                    ('verdict', models.CharField(blank=True, choices=[('contaminated', 'Contaminated'), ('suspicious', 'Suspicious'), ('clean', 'Clean'), ('unknown', 'Unknown')], help_text='empty: as the checks say', max_length=12)),
                    ('overruled', models.CharField(blank=True, help_text='the verdict of the checks at that time', max_length=12)),
                    ('said', models.CharField(blank=True, help_text='what the checks had found at that time', max_length=200)),
                    ('is_reusable', models.BooleanField(blank=True, null=True)),
                    ('reason', models.CharField(max_length=1000)),
                    ('ruled_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'abstract': False,
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_ruling_ws_id'), workspaces.walls.RowSecurity(name='runs_ruling_scope'), workspaces.walls.EventDemanded(name='runs_ruling_event'), workspaces.walls.SameWorkspace(field='version', name='ruling_version_ws'), models.UniqueConstraint(fields=('workspace', 'version', 'number'), name='ruling_number_once')],
                },
            ),
            migrations.CreateModel(
                name='PolicyVersion',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('policy', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='runs.policy')),
                    ('number', models.PositiveIntegerField()),
                    ('status', models.CharField(choices=[('proposed', 'waits for a decision'), ('active', 'acts'), ('refused', 'Refused'), ('withdrawn', 'Withdrawn'), ('superseded', 'Superseded')], default='proposed', max_length=10)),
                    ('document', models.JSONField(help_text='runs.policy.document')),
                    ('content_hash', models.CharField(max_length=64)),
                    ('reason', models.CharField(blank=True, help_text='why it was proposed', max_length=1000)),
                    ('proposed_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('token_id', models.UUIDField(blank=True, help_text='the token that proposed it, if one did; it needs that to hold', null=True)),
                    ('decided_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('decided_at', models.DateTimeField(blank=True, null=True)),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                ],
                options={
                    'abstract': False,
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_policyversion_ws_id'), workspaces.walls.RowSecurity(name='runs_policyversion_scope'), workspaces.walls.EventDemanded(name='runs_policyversion_event'), workspaces.walls.SameWorkspace(field='policy', name='policyversion_policy_ws'), models.UniqueConstraint(fields=('workspace', 'policy', 'number'), name='policyversion_number_once'), models.UniqueConstraint(condition=models.Q(('status', 'active')), fields=('workspace', 'policy'), name='policyversion_one_acts')],
                },
            ),
            migrations.CreateModel(
                name='Decision',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('policy', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to='runs.policy')),
                    ('version', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to='runs.policyversion')),
                    ('number', models.PositiveIntegerField(help_text="counts the policy's decisions")),
                    ('cause_type', models.CharField(max_length=40)),
                    ('cause_id', models.UUIDField()),
                    ('cause_label', models.CharField(max_length=300)),
                    ('outcome', models.CharField(choices=[('acts', 'acts'), ('holds', 'holds'), ('barred', 'barred'), ('limited', 'limited'), ('failed', 'failed')], max_length=8)),
                    ('status', models.CharField(choices=[('acting', 'acts'), ('done', 'Done'), ('failed', 'could not act')], max_length=8)),
                    ('words', models.CharField(blank=True, max_length=2000)),
                    ('facts', models.JSONField(help_text='runs.policy.facts: everything it was decided upon')),
                    ('checks', models.JSONField(help_text='each check with its verdict, observed, required, words')),
                    ('candidates', models.JSONField(help_text='every configuration that was looked at, chosen or not, with the reason')),
                    ('gpu_ms', models.BigIntegerField(blank=True, help_text='what its launches may reserve together; None where nobody knew', null=True)),
                    ('stops', models.BooleanField(default=False, help_text='a lasting limit was reached')),
                    ('failure', models.CharField(blank=True, help_text='why what was decided could not be done', max_length=1000)),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', 'policy', '-created_at'], name='decision_newest'), models.Index(condition=models.Q(('status', 'acting')), fields=['workspace', 'status'], name='decision_acting')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_decision_ws_id'), workspaces.walls.RowSecurity(name='runs_decision_scope'), workspaces.walls.EventDemanded(name='runs_decision_event'), workspaces.walls.SameWorkspace(field='policy', name='decision_policy_ws'), workspaces.walls.SameWorkspace(field='version', name='decision_version_ws'), models.UniqueConstraint(fields=('workspace', 'policy', 'number'), name='decision_number_once'), models.UniqueConstraint(fields=('workspace', 'policy', 'cause_type', 'cause_id'), name='decision_once_a_cause')],
                },
            ),
            migrations.CreateModel(
                name='Sweep',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('name', models.CharField(max_length=200)),
                    ('number', models.PositiveIntegerField(help_text="counts the workspace's sweeps")),
                    ('status', models.CharField(choices=[('running', 'Running'), ('ended', 'Ended'), ('stopped', 'Stopped')], default='running', max_length=8)),
                    ('reason', models.CharField(blank=True, help_text='why it stopped', max_length=1000)),
                    ('purpose', models.CharField(blank=True, help_text='why it was asked for', max_length=1000)),
                    ('benchmark', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='sweeps', to='workspaces.benchmark')),
                    ('agent', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='sweeps', to='workspaces.agent')),
                    ('agent_version', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.agentversion')),
                    ('pool', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.pool')),
                    ('space', models.JSONField(help_text='runs.search_space')),
                    ('request', models.JSONField(help_text='what every member asks for, versions fixed: runs.launch.LaunchRequest')),
                    ('names', models.JSONField(blank=True, default=dict, help_text='what benchmark and agent were called when it was asked for')),
                    ('members', models.PositiveIntegerField()),
                    ('gpu_ms_each', models.BigIntegerField(help_text='reserved for each member, at most')),
                    ('requested_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('token_id', models.UUIDField(blank=True, help_text='the token that asked, if one did; its members need it to hold', null=True)),
                    ('decision', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='sweeps', to='runs.decision')),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', '-created_at', '-id'], name='sweep_newest')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_sweep_ws_id'), workspaces.walls.RowSecurity(name='runs_sweep_scope'), workspaces.walls.EventDemanded(name='runs_sweep_event'), workspaces.walls.SameWorkspace(field='benchmark', name='sweep_benchmark_ws'), workspaces.walls.SameWorkspace(field='agent', name='sweep_agent_ws'), workspaces.walls.SameWorkspace(field='agent_version', name='sweep_agent_version_ws'), workspaces.walls.SameWorkspace(field='pool', name='sweep_pool_ws'), workspaces.walls.SameWorkspace(field='decision', name='sweep_decision_ws'), models.UniqueConstraint(fields=('workspace', 'number'), name='sweep_number_once'), models.UniqueConstraint(fields=('workspace', 'decision'), name='sweep_once_a_decision'), models.CheckConstraint(condition=models.Q(('members__gte', 1)), name='sweep_has_members')],
                },
                bases=(runs.models.called.CalledThen, models.Model),
            ),
            migrations.CreateModel(
                name='Run',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('name', models.CharField(max_length=200)),
                    ('number', models.PositiveIntegerField(help_text="counts the workspace's runs")),
                    ('status', models.CharField(choices=[('draft', 'draft'), ('awaiting_approval', 'awaiting approval'), ('queued', 'queued'), ('starting', 'starting'), ('running', 'running'), ('awaiting_input', 'awaiting input'), ('cancelling', 'cancelling'), ('succeeded', 'succeeded'), ('failed', 'failed'), ('cancelled', 'cancelled'), ('timed_out', 'timed out'), ('aborted', 'aborted'), ('lost', 'lost')], max_length=20)),
                    ('reason_code', models.CharField(blank=True, max_length=40)),
                    ('reason', models.CharField(blank=True, max_length=1000)),
                    ('kind', models.CharField(max_length=20)),
                    ('benchmark', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='workspaces.benchmark')),
                    ('contract', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.contract')),
                    ('agent', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='workspaces.agent')),
                    ('agent_version', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='workspaces.agentversion')),
                    ('pool', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='workspaces.pool')),
                    ('certificate', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.certificate')),
                    ('parameters', models.JSONField(default=dict)),
                    ('seed', models.BigIntegerField(blank=True, null=True)),
                    ('trigger', models.CharField(default='person', help_text='person, token, sweep, policy, retry', max_length=12)),
                    ('trigger_reason', models.CharField(blank=True, help_text='why this run was asked for', max_length=1000)),
                    ('requested_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('retry_of', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='retries', to='runs.run')),
                    ('sweep', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs.sweep')),
                    ('sweep_member', models.PositiveIntegerField(blank=True, help_text="its place in the sweep's search space, from 1", null=True)),
                    ('priority', models.SmallIntegerField(default=0)),
                    ('frozen', models.JSONField(help_text='versions and hashes of everything the run rests on (decision 12)')),
                    ('content_hash', models.CharField(max_length=64)),
                    ('names', models.JSONField(blank=True, default=dict, help_text='what benchmark and agent were called when it was asked for')),
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
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', '-created_at', '-id'], name='run_newest'), models.Index(fields=['workspace', 'status', '-created_at'], name='run_by_status'), models.Index(fields=['workspace', 'benchmark', '-created_at'], name='run_by_benchmark'), models.Index(fields=['workspace', 'agent', '-created_at'], name='run_by_agent'), models.Index(condition=models.Q(('ended_at__isnull', False)), fields=['workspace', '-ended_at', '-id'], name='run_ended'), models.Index(condition=models.Q(('retry_of__isnull', False)), fields=['workspace', 'sweep', 'sweep_member'], name='run_sweep_retries')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_run_ws_id'), workspaces.walls.RowSecurity(name='runs_run_scope'), workspaces.walls.EventDemanded(name='runs_run_event'), workspaces.walls.SameWorkspace(field='benchmark', name='run_benchmark_ws'), workspaces.walls.SameWorkspace(field='contract', name='run_contract_ws'), workspaces.walls.SameWorkspace(field='agent', name='run_agent_ws'), workspaces.walls.SameWorkspace(field='agent_version', name='run_agent_version_ws'), workspaces.walls.SameWorkspace(field='pool', name='run_pool_ws'), workspaces.walls.SameWorkspace(field='certificate', name='run_certificate_ws'), workspaces.walls.SameWorkspace(field='retry_of', name='run_retry_of_ws'), workspaces.walls.SameWorkspace(field='sweep', name='run_sweep_ws'), models.UniqueConstraint(fields=('workspace', 'number'), name='run_number_once'), models.UniqueConstraint(condition=models.Q(('retry_of', None)), fields=('workspace', 'sweep', 'sweep_member'), name='run_sweep_member_once'), models.CheckConstraint(condition=models.Q(models.Q(('sweep', None), ('sweep_member', None)), models.Q(('sweep__isnull', False), ('sweep_member__gte', 1)), _connector='OR'), name='run_sweep_member'), models.CheckConstraint(condition=models.Q(('status__in', ['draft', 'awaiting_approval', 'queued', 'starting', 'running', 'awaiting_input', 'cancelling', 'succeeded', 'failed', 'cancelled', 'timed_out', 'aborted', 'lost'])), name='run_status_known'), models.CheckConstraint(condition=models.Q(('reserved_gpu_ms__gte', 0), ('spent_gpu_ms__gte', 0)), name='run_gpu_not_negative'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', False), ('status__in', ['aborted', 'cancelled', 'failed', 'lost', 'succeeded', 'timed_out'])), models.Q(models.Q(('status__in', ['aborted', 'cancelled', 'failed', 'lost', 'succeeded', 'timed_out']), _negated=True), ('ended_at__isnull', True)), _connector='OR'), name='run_ended_when_terminal')],
                },
                bases=(runs.models.called.CalledThen, models.Model),
            ),
            migrations.CreateModel(
                name='Artifact',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('run', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='artifacts', to='runs.run')),
                    ('path', models.CharField(max_length=1024)),
                    ('name', models.CharField(max_length=250)),
                    ('kind', models.CharField(default='file', help_text='file, model, table, log, …', max_length=40)),
                    ('metadata', models.JSONField(blank=True, default=dict)),
                    ('blob', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.blob')),
                    ('keep_until', models.DateTimeField(blank=True, help_text='when it is deleted by itself; empty: as its kind says, or never', null=True)),
                    ('deleted_at', models.DateTimeField(blank=True, help_text='hidden since, and restorable until it is removed', null=True)),
                    ('deleted_reason', models.CharField(blank=True, max_length=1000)),
                    ('removed_at', models.DateTimeField(blank=True, help_text='its file is gone for good since; the row stays, others name it', null=True)),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', '-created_at', '-id'], name='artifact_newest'), models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['workspace', 'deleted_at'], name='artifact_deleted')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_artifact_ws_id'), workspaces.walls.RowSecurity(name='runs_artifact_scope'), workspaces.walls.EventDemanded(name='runs_artifact_event'), workspaces.walls.SameWorkspace(field='run', name='artifact_run_ws'), workspaces.walls.SameWorkspace(field='blob', name='artifact_blob_ws'), models.UniqueConstraint(fields=('workspace', 'run', 'path'), name='artifact_path_once'), models.CheckConstraint(condition=models.Q(('removed_at', None), ('deleted_at__isnull', False), _connector='OR'), name='artifact_deleted_before_removed')],
                },
            ),
            migrations.CreateModel(
                name='Attempt',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('run', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='runs.run')),
                    ('pool', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.pool')),
                    ('number', models.PositiveSmallIntegerField(help_text='grows with each attempt; a late report of an older one moves nothing')),
                    ('key', models.CharField(help_text='lab-<epoch>-<hex of the id>', max_length=64, unique=True)),
                    ('status', models.CharField(choices=[('created', 'created'), ('running', 'running'), ('ended', 'ended'), ('interrupted', 'interrupted'), ('lost', 'lost')], max_length=12)),
                    ('started_at', models.DateTimeField(blank=True, null=True)),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                    ('cancel_asked_at', models.DateTimeField(blank=True, null=True)),
                    ('exit_code', models.IntegerField(blank=True, null=True)),
                    ('exit_signal', models.IntegerField(blank=True, null=True)),
                    ('exit_reason', models.CharField(blank=True, max_length=40)),
                    ('peak_memory_bytes', models.BigIntegerField(blank=True, null=True)),
                    ('cpu_ms', models.BigIntegerField(blank=True, null=True)),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', 'pool', '-ended_at'], name='attempt_by_pool')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_attempt_ws_id'), workspaces.walls.RowSecurity(name='runs_attempt_scope'), workspaces.walls.EventDemanded(name='runs_attempt_event'), workspaces.walls.SameWorkspace(field='run', name='attempt_run_ws'), workspaces.walls.SameWorkspace(field='pool', name='attempt_pool_ws'), models.UniqueConstraint(fields=('workspace', 'run', 'number'), name='attempt_number_once'), models.UniqueConstraint(condition=models.Q(('status__in', ['created', 'running'])), fields=('workspace', 'run'), name='attempt_one_open')],
                },
            ),
            migrations.CreateModel(
                name='Failure',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('group', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='failures', to='runs.failuregroup')),
                    ('run', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='failures', to='runs.run')),
                    ('lines', models.JSONField(default=list, help_text='the error lines, in their order')),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', 'group', '-created_at'], name='failure_newest')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_failure_ws_id'), workspaces.walls.RowSecurity(name='runs_failure_scope'), workspaces.walls.EventDemanded(name='runs_failure_event'), workspaces.walls.SameWorkspace(field='group', name='failure_group_ws'), workspaces.walls.SameWorkspace(field='run', name='failure_run_ws'), models.UniqueConstraint(fields=('workspace', 'run'), name='failure_once')],
                },
            ),
            migrations.CreateModel(
                name='MemoryEntry',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('thread', models.UUIDField(default=uuid.uuid4, editable=False, help_text='names the entry over all its revisions')),
                    ('revision', models.PositiveIntegerField(default=1)),
                    ('superseded_at', models.DateTimeField(blank=True, null=True)),
                    ('scope', models.CharField(choices=[('workspace', 'Workspace'), ('benchmark', 'Benchmark'), ('agent', 'Agent')], default='workspace', max_length=9)),
                    ('benchmark', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.benchmark')),
                    ('agent', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.agent')),
                    ('kind', models.CharField(choices=[('failed_attempt', 'failed attempt'), ('finding', 'Finding'), ('guidance', 'Guidance'), ('note', 'Note')], max_length=14)),
                    ('collection', models.CharField(max_length=64, validators=[workspaces.ids.validate_slug])),
                    ('title', models.CharField(max_length=200)),
                    ('text', models.TextField(blank=True, max_length=8000)),
                    ('configuration', models.JSONField(blank=True, help_text='names and plain values, compared when looking for similar ones', null=True)),
                    ('content_hash', models.CharField(help_text='of everything that a reviewer vouches for', max_length=64)),
                    ('trust', models.CharField(choices=[('unreviewed', 'Unreviewed'), ('observed', 'observed once'), ('confirmed', 'confirmed by others'), ('durable', 'durable guidance'), ('withdrawn', 'Withdrawn')], default='unreviewed', max_length=10)),
                    ('author_kind', models.CharField(choices=[('person', 'Person'), ('run', "an agent's run"), ('policy', 'Policy'), ('import', 'Import')], max_length=6)),
                    ('author', models.ForeignKey(blank=True, help_text='who wrote it, or answers for the run or policy that did', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('run', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='memory_written', to='runs.run')),
                    ('policy', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.policy')),
                    ('valid_from', models.DateTimeField(blank=True, null=True)),
                    ('valid_until', models.DateTimeField(blank=True, null=True)),
                    ('review_due', models.DateTimeField(blank=True, null=True)),
                    ('reviewed_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('reviewed_at', models.DateTimeField(blank=True, null=True)),
                    ('review_comment', models.CharField(blank=True, max_length=1000)),
                    ('withdrawn_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('withdrawn_at', models.DateTimeField(blank=True, null=True)),
                    ('withdrawn_reason', models.CharField(blank=True, max_length=1000)),
                ],
                options={
                    'verbose_name_plural': 'memory entries',
                    'abstract': False,
                    'indexes': [models.Index(condition=models.Q(('superseded_at', None)), fields=['workspace', 'trust', '-created_at', '-id'], name='memoryentry_newest'), models.Index(condition=models.Q(('superseded_at', None)), fields=['workspace', 'collection', 'trust', '-created_at'], name='memoryentry_collected'), models.Index(condition=models.Q(('configuration__isnull', False), ('superseded_at', None)), fields=['workspace', '-created_at', '-id'], name='memoryentry_configured')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_memoryentry_ws_id'), workspaces.walls.RowSecurity(name='runs_memoryentry_scope'), workspaces.walls.EventDemanded(name='runs_memoryentry_event'), workspaces.walls.SameWorkspace(field='benchmark', name='memoryentry_benchmark_ws'), workspaces.walls.SameWorkspace(field='agent', name='memoryentry_agent_ws'), workspaces.walls.SameWorkspace(field='run', name='memoryentry_run_ws'), workspaces.walls.SameWorkspace(field='policy', name='memoryentry_policy_ws'), models.UniqueConstraint(fields=('workspace', 'thread', 'revision'), name='memoryentry_revision_once'), models.UniqueConstraint(condition=models.Q(('superseded_at', None)), fields=('workspace', 'thread'), name='memoryentry_one_stands'), models.CheckConstraint(condition=models.Q(('trust__in', ('unreviewed', 'withdrawn')), ('reviewed_at__isnull', False), _connector='OR'), name='memoryentry_trust_is_reviewed')],
                },
            ),
            migrations.CreateModel(
                name='MetricSeries',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('run', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='series', to='runs.run')),
                    ('key', models.CharField(max_length=250)),
                    ('count', models.BigIntegerField(default=0)),
                    ('last', models.FloatField(null=True)),
                    ('last_step', models.BigIntegerField(null=True)),
                    ('minimum', models.FloatField(help_text='of the finite values', null=True)),
                    ('maximum', models.FloatField(null=True)),
                ],
                options={
                    'abstract': False,
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_metricseries_ws_id'), workspaces.walls.RowSecurity(name='runs_metricseries_scope'), workspaces.walls.SameWorkspace(field='run', name='metricseries_run_ws'), models.UniqueConstraint(fields=('workspace', 'run', 'key'), name='metricseries_once')],
                },
            ),
            migrations.CreateModel(
                name='QueueItem',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('run', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='queue_items', to='runs.run')),
                    ('pool', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='queue_items', to='workspaces.pool')),
                    ('priority', models.SmallIntegerField(default=0)),
                    ('position_key', models.BigIntegerField(help_text='first in, first out within a priority; smaller goes first')),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', 'pool', '-priority', 'position_key'], name='queueitem_order'), models.Index(fields=['workspace', '-priority', 'position_key'], name='queueitem_order_of_all')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_queueitem_ws_id'), workspaces.walls.RowSecurity(name='runs_queueitem_scope'), workspaces.walls.EventDemanded(name='runs_queueitem_event'), workspaces.walls.SameWorkspace(field='run', name='queueitem_run_ws'), workspaces.walls.SameWorkspace(field='pool', name='queueitem_pool_ws'), models.UniqueConstraint(fields=('workspace', 'run'), name='queueitem_once')],
                },
            ),
            migrations.CreateModel(
                name='Review',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('run', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='reviews', to='runs.run')),
                    ('findings', models.JSONField(default=list, help_text='keys of what was found (runs/review.py)')),
                    ('comment', models.CharField(max_length=1000)),
                    ('reviewed_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('taken_back_at', models.DateTimeField(blank=True, null=True)),
                    ('taken_back_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', 'run'], name='review_of_run'), models.Index(fields=['workspace', '-created_at', '-id'], name='review_newest')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_review_ws_id'), workspaces.walls.RowSecurity(name='runs_review_scope'), workspaces.walls.EventDemanded(name='runs_review_event'), workspaces.walls.SameWorkspace(field='run', name='review_run_ws')],
                },
            ),
            migrations.CreateModel(
                name='Evaluation',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('run', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='evaluations', to='runs.run')),
                    ('benchmark', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='evaluations', to='workspaces.benchmark')),
                    ('contract', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.contract')),
                    ('metric', models.CharField(max_length=250)),
                    ('value', models.FloatField(help_text='NaN and infinities are kept and rank last')),
                    ('standard_error', models.FloatField(blank=True, null=True)),
                    ('samples', models.BigIntegerField(blank=True, null=True)),
                    ('errored', models.BigIntegerField(blank=True, help_text='of `samples`, those that gave an error instead of an answer', null=True)),
                    ('abstained', models.BigIntegerField(blank=True, help_text='of `samples`, those that were not answered', null=True)),
                    ('subject_artifact', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.artifact')),
                    ('samples_artifact', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.artifact')),
                    ('samples_read', models.JSONField(blank=True, default=dict, help_text='path, counts and faults of the file of per-sample results')),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', 'benchmark', 'contract', 'metric', 'value'], name='evaluation_board')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_evaluation_ws_id'), workspaces.walls.RowSecurity(name='runs_evaluation_scope'), workspaces.walls.EventDemanded(name='runs_evaluation_event'), workspaces.walls.SameWorkspace(field='run', name='evaluation_run_ws'), workspaces.walls.SameWorkspace(field='benchmark', name='evaluation_benchmark_ws'), workspaces.walls.SameWorkspace(field='contract', name='evaluation_contract_ws'), workspaces.walls.SameWorkspace(field='subject_artifact', name='evaluation_subject_artifact_ws'), workspaces.walls.SameWorkspace(field='samples_artifact', name='evaluation_samples_artifact_ws'), models.UniqueConstraint(fields=('workspace', 'run', 'benchmark', 'metric'), name='evaluation_once')],
                },
            ),
            migrations.CreateModel(
                name='KeptFile',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('attempt', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='kept_files', to='runs.attempt')),
                    ('path', models.CharField(help_text='of the artifact that it becomes', max_length=1024)),
                    ('sha256', models.CharField(max_length=64)),
                    ('bytes', models.BigIntegerField()),
                ],
                options={
                    'abstract': False,
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_keptfile_ws_id'), workspaces.walls.RowSecurity(name='runs_keptfile_scope'), workspaces.walls.SameWorkspace(field='attempt', name='keptfile_attempt_ws'), models.UniqueConstraint(fields=('workspace', 'attempt', 'path'), name='keptfile_once')],
                },
            ),
            migrations.CreateModel(
                name='MemoryRead',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('entry', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='reads', to='runs.memoryentry')),
                    ('trust', models.CharField(choices=[('unreviewed', 'Unreviewed'), ('observed', 'observed once'), ('confirmed', 'confirmed by others'), ('durable', 'durable guidance'), ('withdrawn', 'Withdrawn')], help_text='of the entry when it was read', max_length=10)),
                    ('run', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='memory_read', to='runs.run')),
                    ('decision', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='memory_read', to='runs.decision')),
                    ('person', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', '-created_at', '-id'], name='memoryread_newest')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_memoryread_ws_id'), workspaces.walls.RowSecurity(name='runs_memoryread_scope'), workspaces.walls.EventDemanded(name='runs_memoryread_event'), workspaces.walls.SameWorkspace(field='entry', name='memoryread_entry_ws'), workspaces.walls.SameWorkspace(field='run', name='memoryread_run_ws'), workspaces.walls.SameWorkspace(field='decision', name='memoryread_decision_ws'), models.CheckConstraint(condition=models.Q(('run__isnull', False), ('decision__isnull', False), ('person__isnull', False), _connector='OR'), name='memoryread_has_a_reader')],
                },
            ),
            migrations.CreateModel(
                name='MetricChunk',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('series', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='chunks', to='runs.metricseries')),
                    ('attempt_number', models.PositiveSmallIntegerField(default=1)),
                    ('steps', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                    ('values', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                    ('times', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), help_text='seconds UTC', size=None)),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', 'series', 'id'], name='metricchunk_order')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_metricchunk_ws_id'), workspaces.walls.RowSecurity(name='runs_metricchunk_scope'), workspaces.walls.SameWorkspace(field='series', name='metricchunk_series_ws')],
                },
            ),
            migrations.CreateModel(
                name='RunInput',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('run', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='inputs', to='runs.run')),
                    ('slug', models.CharField(max_length=64)),
                    ('kind', models.CharField(help_text='dataset, artifact', max_length=10)),
                    ('dataset_version', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='run_inputs', to='workspaces.datasetversion')),
                    ('artifact', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='run_inputs', to='runs.artifact')),
                    ('grant_id', models.UUIDField(blank=True, null=True)),
                    ('sha256', models.CharField(max_length=64)),
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
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('attempt', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='lines', to='runs.attempt')),
                    ('number', models.BigIntegerField()),
                    ('type', models.CharField(max_length=60)),
                    ('body', models.JSONField()),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(condition=models.Q(('type', 'score')), fields=['workspace', 'attempt'], name='runline_scores'), models.Index(condition=models.Q(('type', 'memory_write')), fields=['workspace', 'attempt'], name='runline_memory')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_runline_ws_id'), workspaces.walls.RowSecurity(name='runs_runline_scope'), workspaces.walls.SameWorkspace(field='attempt', name='runline_attempt_ws'), models.UniqueConstraint(fields=('workspace', 'attempt', 'number'), name='runline_once')],
                },
            ),
            migrations.CreateModel(
                name='UndeclaredInput',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('run', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='undeclared_inputs', to='runs.run')),
                    ('kind', models.CharField(choices=[('input', 'input'), ('memory', 'memory entry'), ('service', 'outside service')], max_length=7)),
                    ('uri', models.CharField(blank=True, help_text="where it lies: an address, a path, the id of a memory entry, a service's name", max_length=1000)),
                    ('what', models.CharField(blank=True, help_text="what it is, in the run's words", max_length=250)),
                    ('sha256', models.CharField(blank=True, max_length=64)),
                    ('dataset_version', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.datasetversion')),
                    ('artifact', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.artifact')),
                ],
                options={
                    'abstract': False,
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_undeclaredinput_ws_id'), workspaces.walls.RowSecurity(name='runs_undeclaredinput_scope'), workspaces.walls.EventDemanded(name='runs_undeclaredinput_event'), workspaces.walls.SameWorkspace(field='run', name='undeclaredinput_run_ws'), workspaces.walls.SameWorkspace(field='dataset_version', name='undeclaredinput_dataset_version_ws'), workspaces.walls.SameWorkspace(field='artifact', name='undeclaredinput_artifact_ws'), models.CheckConstraint(condition=models.Q(('kind__in', ['input', 'memory', 'service'])), name='undeclaredinput_kind_known')],
                },
            ),
            migrations.CreateModel(
                name='Watch',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('attempt', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='watches', to='runs.attempt')),
                    ('observed', models.CharField(default='pending', max_length=8)),
                    ('observed_reason', models.CharField(blank=True, max_length=300)),
                    ('observed_at', models.DateTimeField(blank=True, null=True)),
                    ('missing_since', models.DateTimeField(blank=True, null=True)),
                    ('lease_until', models.DateTimeField(blank=True, help_text="one worker at a time works on it, by the database's clock", null=True)),
                    ('lease_holder', models.CharField(blank=True, help_text='host, process and start of whoever works on it', max_length=80)),
                    ('lease_fence', models.BigIntegerField(default=0, help_text='grows with each take; what is written under an older number is refused')),
                    ('collecting_since', models.DateTimeField(blank=True, help_text='its end is on record, what it left is being collected', null=True)),
                    ('collect_tries', models.PositiveIntegerField(default=0)),
                    ('metrics_offset', models.BigIntegerField(default=0)),
                    ('metrics_lines', models.BigIntegerField(default=0)),
                    ('metrics_bad', models.BigIntegerField(default=0)),
                    ('events_offset', models.BigIntegerField(default=0)),
                    ('events_lines', models.BigIntegerField(default=0)),
                    ('events_bad', models.BigIntegerField(default=0)),
                    ('samples_offset', models.BigIntegerField(default=0)),
                    ('samples_lines', models.BigIntegerField(default=0)),
                    ('samples_bad', models.BigIntegerField(default=0)),
                    ('bad_lines', models.JSONField(default=list, help_text='first bad lines: file, number, reason')),
                    ('progress_done', models.FloatField(blank=True, null=True)),
                    ('progress_total', models.FloatField(blank=True, null=True)),
                    ('progress_text', models.CharField(blank=True, max_length=300)),
                    ('api_spend_micros', models.BigIntegerField(default=0)),
                    ('has_foreign_spend', models.BooleanField(default=False, help_text='it reported spend in a currency that its limits do not count')),
                    ('said_done', models.BooleanField(default=False)),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(condition=models.Q(('observed__in', ['removed', 'kept']), _negated=True), fields=['workspace', 'attempt'], name='watch_folder_there'), models.Index(condition=models.Q(('observed', 'kept')), fields=['workspace', 'attempt'], name='watch_folder_kept')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_watch_ws_id'), workspaces.walls.RowSecurity(name='runs_watch_scope'), workspaces.walls.SameWorkspace(field='attempt', name='watch_attempt_ws'), models.UniqueConstraint(fields=('workspace', 'attempt'), name='watch_once')],
                },
            ),
            migrations.CreateModel(
                name='ContractCheck',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('contract', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.contract')),
                    ('reference', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.evaluation')),
                    ('tolerance', models.FloatField(help_text="how far a value may lie from the reference's, either way")),
                    ('interval_days', models.PositiveSmallIntegerField()),
                    ('set_by', models.ForeignKey(help_text='whose rights and budget it uses', on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('token_id', models.UUIDField(blank=True, null=True)),
                    ('next_at', models.DateTimeField(help_text='when it is due again')),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                    ('end_reason', models.CharField(blank=True, max_length=1000)),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(condition=models.Q(('ended_at', None)), fields=['workspace', 'next_at'], name='contractcheck_due')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_contractcheck_ws_id'), workspaces.walls.RowSecurity(name='runs_contractcheck_scope'), workspaces.walls.EventDemanded(name='runs_contractcheck_event'), workspaces.walls.SameWorkspace(field='contract', name='contractcheck_contract_ws'), workspaces.walls.SameWorkspace(field='reference', name='contractcheck_reference_ws'), models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('workspace', 'contract'), name='contractcheck_one_stands'), models.CheckConstraint(condition=models.Q(('interval_days__gte', 1), ('interval_days__lte', 366)), name='contractcheck_interval')],
                },
            ),
            migrations.CreateModel(
                name='MemoryEvidence',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('entry', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='evidence', to='runs.memoryentry')),
                    ('run', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.run')),
                    ('evaluation', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.evaluation')),
                    ('artifact', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.artifact')),
                    ('dataset_version', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.datasetversion')),
                    ('named', models.CharField(help_text='as it was called when the entry was written', max_length=300)),
                ],
                options={
                    'abstract': False,
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_memoryevidence_ws_id'), workspaces.walls.RowSecurity(name='runs_memoryevidence_scope'), workspaces.walls.EventDemanded(name='runs_memoryevidence_event'), workspaces.walls.SameWorkspace(field='entry', name='memoryevidence_entry_ws'), workspaces.walls.SameWorkspace(field='run', name='memoryevidence_run_ws'), workspaces.walls.SameWorkspace(field='evaluation', name='memoryevidence_evaluation_ws'), workspaces.walls.SameWorkspace(field='artifact', name='memoryevidence_artifact_ws'), workspaces.walls.SameWorkspace(field='dataset_version', name='memoryevidence_dataset_version_ws'), models.CheckConstraint(condition=models.Q(models.Q(('artifact', None), ('dataset_version', None), ('evaluation', None), ('run__isnull', False)), models.Q(('artifact', None), ('dataset_version', None), ('evaluation__isnull', False), ('run', None)), models.Q(('artifact__isnull', False), ('dataset_version', None), ('evaluation', None), ('run', None)), models.Q(('artifact', None), ('dataset_version__isnull', False), ('evaluation', None), ('run', None)), _connector='OR'), name='memoryevidence_is_one_thing')],
                },
            ),
            migrations.CreateModel(
                name='Promotion',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('number', models.PositiveIntegerField(help_text="counts the workspace's promotions")),
                    ('name', models.CharField(help_text='what the artifact is promoted as, in the form in which slugs are compared', max_length=64)),
                    ('status', models.CharField(choices=[('proposed', 'waits for a decision'), ('promoted', 'Promoted'), ('refused', 'Refused'), ('withdrawn', 'Withdrawn'), ('superseded', 'Superseded')], default='proposed', max_length=10)),
                    ('artifact', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='promotions', to='runs.artifact')),
                    ('evaluation', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.evaluation')),
                    ('supersedes', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.promotion')),
                    ('facts', models.JSONField(help_text='each check as it stood when it was proposed: key, name, verdict, observed, required, words, evidence')),
                    ('content_hash', models.CharField(help_text='of everything that an approver agrees to', max_length=64)),
                    ('reason', models.CharField(blank=True, help_text='why it was put forward', max_length=1000)),
                    ('requested_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('decided_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('decided_at', models.DateTimeField(blank=True, null=True)),
                    ('ended_at', models.DateTimeField(blank=True, help_text='when it was refused, withdrawn or superseded', null=True)),
                    ('end_reason', models.CharField(blank=True, max_length=1000)),
                    ('statement', models.JSONField(blank=True, help_text='DSSE envelope of the in-toto statement, once promoted', null=True)),
                ],
                options={
                    'abstract': False,
                    'indexes': [models.Index(fields=['workspace', '-created_at', '-id'], name='promotion_newest'), models.Index(fields=['workspace', 'name', '-created_at'], name='promotion_by_name')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_promotion_ws_id'), workspaces.walls.RowSecurity(name='runs_promotion_scope'), workspaces.walls.EventDemanded(name='runs_promotion_event'), workspaces.walls.SameWorkspace(field='artifact', name='promotion_artifact_ws'), workspaces.walls.SameWorkspace(field='evaluation', name='promotion_evaluation_ws'), workspaces.walls.SameWorkspace(field='supersedes', name='promotion_supersedes_ws'), models.UniqueConstraint(fields=('workspace', 'number'), name='promotion_number_once'), models.UniqueConstraint(condition=models.Q(('status', 'promoted')), fields=('workspace', 'name'), name='promotion_one_stands'), models.UniqueConstraint(condition=models.Q(('status', 'proposed')), fields=('workspace', 'name', 'artifact'), name='promotion_proposed_once'), models.CheckConstraint(condition=models.Q(models.Q(('status', 'promoted'), _negated=True), models.Q(('decided_at__isnull', False), ('statement__isnull', False)), _connector='OR'), name='promotion_is_signed')],
                },
            ),
            migrations.CreateModel(
                name='CheckResult',
                fields=[
                    ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                    ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
                    ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                    ('contract_check', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='results', to='runs.contractcheck')),
                    ('number', models.PositiveIntegerField()),
                    ('status', models.CharField(choices=[('running', 'being measured'), ('holds', 'measures what it did'), ('moved', 'moved'), ('refused', 'not launched'), ('unmeasured', 'ended without a score')], max_length=10)),
                    ('run', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.run')),
                    ('evaluation', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.evaluation')),
                    ('words', models.CharField(blank=True, help_text='what was observed, or why nothing was', max_length=1000)),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                ],
                options={
                    'abstract': False,
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'id'), name='runs_checkresult_ws_id'), workspaces.walls.RowSecurity(name='runs_checkresult_scope'), workspaces.walls.EventDemanded(name='runs_checkresult_event'), workspaces.walls.SameWorkspace(field='contract_check', name='checkresult_contract_check_ws'), workspaces.walls.SameWorkspace(field='run', name='checkresult_run_ws'), workspaces.walls.SameWorkspace(field='evaluation', name='checkresult_evaluation_ws'), models.UniqueConstraint(fields=('workspace', 'contract_check', 'number'), name='checkresult_number_once'), models.UniqueConstraint(condition=models.Q(('status', 'running')), fields=('workspace', 'contract_check'), name='checkresult_one_runs')],
                },
            ),
        ]),
        migrations.RunSQL(SITE_BUSY, 'DROP FUNCTION lab_site_busy()'),
        migrations.RunSQL(BUSY_OWNED, migrations.RunSQL.noop),
        migrations.RunSQL(SITE_SHARES, 'DROP FUNCTION lab_site_shares(uuid, uuid)'),
        migrations.RunSQL(SHARES_OWNED, migrations.RunSQL.noop),
        migrations.RunSQL(WORDS, 'ALTER TABLE runs_memoryentry DROP COLUMN words'),
        migrations.RunSQL(SEARCH, 'DROP FUNCTION lab_memory_search(text, text, text, integer)'),
        migrations.RunSQL(SEARCH_OWNED, migrations.RunSQL.noop),
    ]
