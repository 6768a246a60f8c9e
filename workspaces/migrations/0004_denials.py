"""An index for the denials of an actor, which are counted before each is recorded; what an engine can keep; and a column goes that nothing reads."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0003_live_datasets")]

    operations = [
        migrations.RemoveField(model_name="engineslot", name="held_since"),
        migrations.AddField(
            model_name="engine",
            name="isolations",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=10),
                blank=True,
                default=list,
                help_text="what it can keep, tried at each start; empty: not tried yet",
                size=None,
            ),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(
                condition=models.Q(("verb", "access.denied")),
                fields=["workspace", "actor_id", "recorded_at"],
                name="auditevent_denials",
            ),
        ),
    ]
