"""A run's request as the query string of the launch page, to be changed before it is asked for again."""

import json
from urllib.parse import urlencode

from runs.models import Run, RunInput


def launch_query(run: Run, inputs: list[RunInput]) -> str:
    """`?benchmark=…&agent=…` with everything the run was asked for; versions as the run had them."""
    fields: list[tuple[str, str]] = [
        ("benchmark", run.benchmark.slug),
        ("agent", run.agent.slug),
        ("version", str(run.agent_version.number)),
        ("pool", run.pool.slug),
        ("seed", "" if run.seed is None else str(run.seed)),
        ("parameters", json.dumps(run.parameters, ensure_ascii=False)),
        ("reason", f"Again, after {run.name}."[:1000]),
        *(("datasets", str(entry["label"])) for entry in run.frozen.get("inputs", []) if entry.get("kind") == "dataset"),
        *(("artifacts", entry.artifact_id.hex) for entry in inputs if entry.artifact_id is not None),
    ]
    return "?" + urlencode([(name, value) for name, value in fields if value])
