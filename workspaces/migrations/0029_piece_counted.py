from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0028_installation_database")]

    operations = [
        migrations.AddField(
            model_name="datasetpiece",
            name="is_counted",
            field=models.BooleanField(default=False, help_text="records were counted in the file, and are not what the run said"),
        ),
    ]
