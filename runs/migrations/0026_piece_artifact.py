"""Pieces of live datasets that were there before they named their artifact: that of their run with the same content, by its path where it has several."""

from django.db import migrations

NAMED = """
    ALTER TABLE workspaces_datasetpiece DISABLE TRIGGER workspaces_datasetpiece_event;
    UPDATE workspaces_datasetpiece piece SET source_artifact_id = (
        SELECT made.id FROM runs_artifact made
        WHERE made.workspace_id = piece.workspace_id AND made.run_id = piece.made_by_run_id AND made.blob_id = piece.blob_id
        ORDER BY (made.path = piece.path) DESC, made.path LIMIT 1
    ) WHERE source_artifact_id IS NULL;
    ALTER TABLE workspaces_datasetpiece ENABLE TRIGGER workspaces_datasetpiece_event"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0025_evaluation_board"), ("workspaces", "0027_piece_artifact")]

    operations = [migrations.RunSQL(NAMED, migrations.RunSQL.noop)]
