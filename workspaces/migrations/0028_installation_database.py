"""An installation knows its database, so that a restored copy is found out. What is there at the upgrade is taken for its own."""

from django.db import migrations, models

import workspaces.models.installation

# Runs with the rights of whoever asks: anybody may ask for each of the three.
CREATE = """
CREATE FUNCTION lab_database() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, public AS $$
    SELECT system_identifier || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())
        || '/' || 'public.workspaces_installation'::regclass::oid
    FROM pg_control_system()
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0001_squashed_0027_piece_artifact")]

    operations = [
        migrations.RunSQL(CREATE, "DROP FUNCTION lab_database()"),
        migrations.AddField(
            model_name="installation",
            name="database",
            field=models.CharField(
                db_default=workspaces.models.installation.ThisDatabase(),
                help_text="which database it was in when that was last decided",
                max_length=80,
            ),
        ),
    ]
