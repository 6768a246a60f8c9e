"""A benchmark with its contract, a dataset with a version, an agent with a version: what a launch stands on."""

from typing import Any

from workspaces.access import Actor
from workspaces.commands.agent import create_agent, publish_agent_version
from workspaces.commands.benchmark import create_benchmark
from workspaces.commands.blob import StoredFile, receive_file
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.models import AgentVersion, Benchmark, DatasetVersion

TABLE = b"a,b\n1,2\n3,4\n"
HELD_OUT = b"a,b\n5,6\n7,8\n"  # no record of the table


def make_benchmark(actor: Actor, slug: str = "accuracy", **contract: Any) -> Benchmark:
    return create_benchmark(actor=actor, slug=slug, contract={"metric": "accuracy", "direction": "maximize", **contract})


def make_dataset_version(actor: Actor, slug: str = "table", *, role: str = "train", content: bytes = b"") -> DatasetVersion:
    dataset = create_dataset(actor=actor, slug=slug)
    given = content or (HELD_OUT if role == "holdout" else TABLE)
    return import_dataset_version(actor=actor, dataset=dataset, role=role, files=[receive_file("table.csv", [given])])


def make_agent_version(actor: Actor, slug: str = "worker", *, code: bytes = b"print(1)\n", **spec: Any) -> AgentVersion:
    agent = create_agent(actor=actor, slug=slug)
    return publish_agent_version(actor=actor, agent=agent, argv=["python", "main.py"], files=[stored("main.py", code)], **spec)


def stored(path: str, content: bytes) -> StoredFile:
    return receive_file(path, [content])
