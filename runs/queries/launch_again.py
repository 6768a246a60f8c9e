"""A run's request as the query string of the launch page, to be changed before it is asked for again; and an evaluation's."""

import json
from urllib.parse import urlencode

from runs.launch import LaunchRequest
from runs.models import Evaluation, Run, RunInput
from runs.queries.run_input import inputs_of
from runs.queries.run_page import find_run, inputs_shown


def request_again(run: Run) -> LaunchRequest:
    """The same under the same contract: of the same versions, inputs, parameters, seed and budget; without name and reason."""
    inputs = inputs_of(run)
    return LaunchRequest(
        benchmark=run.benchmark_id.hex,
        contract=run.contract.version,
        agent=run.agent_id.hex,
        agent_version=run.agent_version.number,
        pool=run.pool_id.hex,
        datasets=tuple(entry.dataset_version_id.hex for entry in inputs if entry.dataset_version_id),
        artifacts=tuple(entry.artifact_id.hex for entry in inputs if entry.artifact_id),
        parameters=run.parameters,
        seed=run.seed,
        gpu_ms=run.frozen["limits"]["gpu_ms"],
        api_micros=run.frozen["limits"]["api_micros"],
    )


def evaluate_again(text: str) -> str:
    """The same evaluator version, inputs, parameters and contract version as an evaluation had. Raises NotFound for one that is not here."""
    evaluation = Evaluation.objects.find(text, "contract", "benchmark")
    run = find_run(evaluation.run_id.hex)
    own = launch_fields(run, inputs_shown(run), reason=f"To measure again what {run.name} measured.")
    kept = [(name, value) for name, value in own if name != "benchmark"]
    return urlencode([("benchmark", evaluation.benchmark.slug), ("contract", str(evaluation.contract.version)), *kept])


def launch_query(run: Run, inputs: list[RunInput]) -> str:
    """`?benchmark=…&agent=…` with everything the run was asked for; versions as the run had them."""
    return "?" + urlencode(launch_fields(run, inputs, reason=f"Again, after {run.name}."))


def launch_fields(run: Run, inputs: list[RunInput], *, reason: str) -> list[tuple[str, str]]:
    fields: list[tuple[str, str]] = [
        ("benchmark", run.benchmark.slug),
        ("agent", run.agent.slug),
        ("version", str(run.agent_version.number)),
        ("pool", run.pool.slug),
        ("seed", "" if run.seed is None else str(run.seed)),
        ("parameters", json.dumps(run.parameters, ensure_ascii=False)),
        ("reason", reason[:1000]),
        *(("datasets", str(entry["label"])) for entry in run.frozen.get("inputs", []) if entry.get("kind") == "dataset"),
        *(("artifacts", entry.artifact_id.hex) for entry in inputs if entry.artifact_id is not None),
    ]
    return [(name, value) for name, value in fields if value]
