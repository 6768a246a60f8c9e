"""Whether pools answer, and what they have at work that nobody here knows of."""

import django.db.models.deletion
import django.db.models.functions.datetime
import workspaces.ids
import workspaces.scope
import workspaces.walls
from django.db import migrations, models

# Which of some keys are of attempts: a scheduler lists the jobs of every workspace, and one workspace may not read which are another's. Rights and
# owner as in 0002.
CREATE = """
CREATE FUNCTION lab_site_known(asked text[])
RETURNS TABLE (key text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT a.key::text FROM public.runs_attempt a WHERE a.key = ANY (asked)
$$;
"""
OWNED_BY_SEARCH_ROLE = """
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'labsite_search' AND pg_has_role(current_user, oid, 'MEMBER')) THEN
        GRANT CREATE ON SCHEMA public TO labsite_search;
        ALTER FUNCTION lab_site_known(text[]) OWNER TO labsite_search;
        REVOKE CREATE ON SCHEMA public FROM labsite_search;
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'lab_site_known() stays with %', current_user;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_squashed_0026_piece_artifact")]

    operations = [
        migrations.CreateModel(
            name='PoolContact',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('answered_at', models.DateTimeField(blank=True, null=True)),
                ('failed_at', models.DateTimeField(blank=True, null=True)),
                ('reason', models.CharField(blank=True, max_length=300)),
                ('strangers', models.JSONField(blank=True, default=list)),
                ('stranger_count', models.PositiveIntegerField(default=0)),
                ('pool', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='contacts', to='workspaces.pool')),
                ('workspace', models.ForeignKey(default=workspaces.scope.current_id, editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workspaces.workspace')),
            ],
            options={
                'abstract': False,
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'id'), name='runs_poolcontact_ws_id'),
                    workspaces.walls.RowSecurity(name='runs_poolcontact_scope'),
                    workspaces.walls.SameWorkspace(field='pool', name='poolcontact_pool_ws'),
                    models.UniqueConstraint(fields=('workspace', 'pool'), name='poolcontact_once'),
                ],
            },
        ),
        migrations.RunSQL(CREATE, "DROP FUNCTION lab_site_known(text[])"),
        migrations.RunSQL(OWNED_BY_SEARCH_ROLE, migrations.RunSQL.noop),
    ]
