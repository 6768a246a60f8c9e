# The first nouns; constraints stand inside CreateModel so that a test database is made quickly.

import django.contrib.auth.models
import django.contrib.auth.validators
import django.contrib.postgres.fields
import django.db.models.functions.datetime
import django.db.models.functions.text
import django.utils.timezone
import workspaces.ids
import workspaces.walls
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.RunSQL(
            sql="\nCREATE FUNCTION lab_demand_event() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$\nDECLARE\n    row_workspace uuid;\nBEGIN\n    IF (SELECT relowner FROM pg_class WHERE oid = TG_RELID) = (SELECT oid FROM pg_roles WHERE rolname = current_user) THEN\n        RETURN NULL;\n    END IF;\n    IF TG_OP = 'DELETE' THEN\n        row_workspace := (to_jsonb(OLD) ->> TG_ARGV[0])::uuid;\n    ELSE\n        row_workspace := (to_jsonb(NEW) ->> TG_ARGV[0])::uuid;\n    END IF;\n    IF NOT EXISTS (\n        SELECT 1 FROM public.workspaces_auditevent\n        WHERE command_id = nullif(current_setting('lab.command', true), '')::uuid\n          AND workspace_id = row_workspace\n          AND recorded_at = transaction_timestamp()\n    ) THEN\n        RAISE EXCEPTION 'a row of % was changed outside a command', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';\n    END IF;\n    RETURN NULL;\nEND $$;\n",
            reverse_sql='DROP FUNCTION lab_demand_event()',
        ),
        migrations.CreateModel(
            name='Workspace',
            fields=[
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('slug', models.CharField(max_length=64, validators=[workspaces.ids.validate_slug])),
                ('name', models.CharField(max_length=200)),
                ('status', models.CharField(choices=[('configuring', 'being set up'), ('active', 'Active'), ('archived', 'Archived')], default='configuring', max_length=12)),
                ('boundary_kind', models.CharField(blank=True, choices=[('customer', 'Customer'), ('team', 'Team'), ('project', 'Project'), ('security_boundary', 'security boundary'), ('billing_account', 'billing account')], max_length=20)),
                ('boundary_reason', models.CharField(blank=True, max_length=1000)),
                ('billing_account', models.CharField(blank=True, max_length=200)),
                ('cost_centre', models.CharField(blank=True, max_length=200)),
                ('zone', models.CharField(blank=True, help_text='IANA time zone in which budget windows are cut', max_length=64)),
                ('week_start', models.SmallIntegerField(default=0, help_text='0 Monday … 6 Sunday')),
                ('visibility', models.CharField(blank=True, choices=[('private', 'members only'), ('public_benchmarks', 'benchmark definitions may be public')], max_length=20)),
                ('region', models.CharField(blank=True, help_text='store in which every file of the workspace lies', max_length=64)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('activated_at', models.DateTimeField(blank=True, null=True)),
                ('archived_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'permissions': [('view', 'see home, benchmarks, datasets, agents, runs, memory, scoreboards'), ('launch_run', 'launch runs'), ('cancel_run', 'cancel own runs'), ('edit_registry', 'edit benchmarks, datasets, agents'), ('import_data', 'import data'), ('write_memory', 'write memory'), ('propose_policy', 'propose policies'), ('approve', 'approve or refuse requests'), ('promote', 'promote artifacts once the gate passes'), ('manage_queue', 'cancel and reorder any run'), ('manage_pool', 'bind and limit pools'), ('manage_secret', 'manage secrets'), ('manage_workspace', 'change settings and objective'), ('manage_budget', 'change budget limits'), ('share', 'share objects with other workspaces'), ('manage_members', 'invite, change and remove members'), ('export', 'export the workspace'), ('archive', 'archive the workspace'), ('view_audit', 'read the audit log'), ('delete', 'delete the workspace'), ('transfer', 'transfer the workspace')],
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Replace('slug', models.Value('_'), models.Value('-')), name='workspace_slug_once'), models.CheckConstraint(condition=models.Q(('week_start__gte', 0), ('week_start__lte', 6)), name='workspace_week_start'), workspaces.walls.EventDemanded(column='id', name='workspaces_workspace_event')],
            },
        ),
        migrations.CreateModel(
            name='User',
            fields=[
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator()], verbose_name='username')),
                ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                ('id', models.UUIDField(default=workspaces.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('person', 'Person'), ('service', 'Service'), ('agent', 'Agent')], default='person', max_length=8)),
                ('display_name', models.CharField(blank=True, max_length=120)),
                ('site_roles', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('create_workspace', 'may create workspaces'), ('site_operator', 'runs the installation, reads no workspace'), ('site_auditor', 'reads the audit of every workspace')], max_length=20), blank=True, default=list, size=None)),
                ('theme', models.CharField(choices=[('auto', 'Auto'), ('light', 'Light'), ('dark', 'Dark')], default='auto', max_length=5)),
                ('zone', models.CharField(blank=True, max_length=64)),
                ('has_shortcuts', models.BooleanField(default=True)),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('is_superuser', False)), name='user_no_superuser')],
            },
            managers=[
                ('objects', django.contrib.auth.models.UserManager()),
            ],
        ),
    ]
