from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0027_pool_contact")]

    operations = [
        migrations.AddField(
            model_name="keptfile",
            name="rows",
            field=models.BigIntegerField(blank=True, help_text="counted in a table that a live dataset takes; a header is one of them", null=True),
        ),
    ]
