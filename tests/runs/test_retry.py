"""The same asked for again, by a retry or by the launch form: the same versions, inputs in the same order, seed and parameters."""

from urllib.parse import parse_qsl

import pytest

from runs.commands.launch import retry_run
from runs.commands.run import cancel_run
from runs.queries.launch_again import launch_query
from runs.queries.run_input import inputs_of
from runs.queries.run_page import find_run, inputs_shown
from tests.factories_pages import add_artifact
from tests.factories_runs import HOUR, launch, make_laboratory
from tests.walls.owner_sql import owner_connection
from workspaces.audit import Refusal
from workspaces.commands.agent import publish_agent_version
from workspaces.models import AgentVersion


@pytest.mark.django_db
def test_a_retry_asks_for_the_same_versions_again() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory, seed=7, gpu_ms=1 * HOUR)
        with pytest.raises(Refusal, match="retry it once it has ended"):
            retry_run(actor=laboratory.owner, run=run)
        cancel_run(actor=laboratory.owner, run=run)
        version = AgentVersion.objects.get()
        publish_agent_version(actor=laboratory.owner, agent=version.agent, argv=["python", "other.py"], files=[])
        run.refresh_from_db()
        again = retry_run(actor=laboratory.owner, run=run).run
        assert (again.retry_of_id, again.content_hash, again.agent_version_id) == (run.pk, run.content_hash, version.pk)


@pytest.mark.django_db(transaction=True)
def test_what_is_asked_for_again_is_read_in_the_same_order() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        maker = launch(laboratory)
        made = [add_artifact(actor=laboratory.owner, run=maker, path=f"{name}.bin", content=name.encode()) for name in "cabd"]
        asked = [made[place].public_id for place in (2, 0, 3, 1)]
        run = launch(laboratory, artifacts=tuple(asked))
        cancel_run(actor=laboratory.owner, run=run)
        with owner_connection() as owner:  # the order in which rows lie is nobody's promise
            owner.execute("SELECT set_config('lab.workspace', %s, false)", [str(laboratory.workspace.pk)])
            owner.execute("CREATE TEMPORARY TABLE kept AS SELECT * FROM runs_runinput ORDER BY id DESC")
            owner.execute("DELETE FROM runs_runinput")
            owner.execute("INSERT INTO runs_runinput SELECT * FROM kept ORDER BY id DESC")
            owner.commit()
        run.refresh_from_db()
        again = retry_run(actor=laboratory.owner, run=run).run
        assert again.content_hash == run.content_hash
        assert [entry.artifact.public_id for entry in inputs_of(again, "artifact") if entry.artifact] == asked
        address = launch_query(find_run(run.public_id), inputs_shown(run))
        assert [value for name, value in parse_qsl(address[1:]) if name == "artifacts"] == [name.removeprefix("art_") for name in asked]
