"""What a run's page and answer say of it stays the same bytes, whatever becomes of its benchmark, agent and data afterwards.

But for the names that these bear today, by which they are found."""

import difflib
import re

import pytest

from runs.models import Run
from tests.factories_pages import client_of
from tests.factories_registry import TABLE, stored
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from workspaces.commands.agent import change_agent, publish_agent_version
from workspaces.commands.benchmark import change_benchmark
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import change_dataset, import_dataset_version
from workspaces.models import Agent, Benchmark, Dataset

SCORES = b"""
import json
with open("../events.jsonl", "a") as events:
    events.write(json.dumps({"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.8, "stderr": 0.02}) + "\\n")
print("done")
"""


def seen(laboratory: Laboratory, run: Run) -> dict[str, str]:
    """What is shown of a run at each of its addresses, but for how long ago something was and for what guards forms."""
    client, shown = client_of(laboratory.owner), {}
    page, api = f"/workspaces/lab/runs/{run.public_id}/", f"/api/v1/workspaces/lab/runs/{run.public_id}"
    for url in (page, f"{page}?tab=log", f"{page}?tab=certificate", api):
        answer = client.get(url)
        assert answer.status_code == 200, url
        text = re.sub(r"(<time [^>]*>)[^<]*", r"\1", answer.content.decode())
        shown[url] = re.sub(r'(name="(?:csrfmiddlewaretoken|csrf-token|once)" (?:value|content)=")[^"]+', r"\1", text)
    return shown


@pytest.mark.pool
@pytest.mark.django_db(transaction=True)
def test_later_edits_never_change_an_old_page() -> None:
    laboratory = make_laboratory(code=SCORES)
    with laboratory.opened():
        run = launch(laboratory, name="first", reason="to be looked at later")
    assert drive(laboratory, run).status == "succeeded"
    before = seen(laboratory, run)
    assert "0.8" in before[f"/api/v1/workspaces/lab/runs/{run.public_id}"]
    with laboratory.opened():
        benchmark, agent, dataset = Benchmark.objects.get(), Agent.objects.get(), Dataset.objects.get()
        change_benchmark(actor=laboratory.owner, benchmark=benchmark, description="Another question", is_public=True)
        change_agent(actor=laboratory.owner, agent=agent, part="judge", description="Another program")
        change_dataset(actor=laboratory.owner, dataset=dataset, description="Other rows", licence="CC0-1.0")
        publish_agent_version(actor=laboratory.owner, agent=agent, argv=["python", "main.py"], files=[stored("main.py", b"print(2)\n")])
        import_dataset_version(
            actor=laboratory.owner, dataset=dataset, role="train", files=[receive_file("table.csv", [TABLE + b"5,6\n"])]
        )  # fmt: skip
    after = seen(laboratory, run)
    for url, text in before.items():
        changed = "\n".join(difflib.unified_diff(text.splitlines(), after[url].splitlines(), lineterm="", n=0))
        assert changed == "", f"{url} is another page:\n{changed}"
