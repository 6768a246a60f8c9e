"""What became of each sample of a score, as one line of JSON each: labsite shows them, and holds two evaluations against each other by them."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from run_folder import Job

FILE = "samples.jsonl"


@dataclass(frozen=True)
class SampleResult:
    """`score` of a sample that is no number is left out; the sample stays, as one that was abstained from. `confidence`: how sure the model is of
    the class that it names, from 0 to 1, where it says so."""

    id: str
    truth: object
    output: object
    score: float
    confidence: float | None = None


def write_samples(job: Job, results: Iterable[SampleResult]) -> str:
    """Write them and say so; returns what a score line names as its `samples_file`."""
    count = 0
    with job.output(FILE).open("w", encoding="utf-8") as file:
        for result in results:
            count += 1
            told = math.isfinite(result.score)
            line = {"id": result.id, "truth": result.truth, "output": result.output, "status": "ok" if told else "abstained"}
            said = {"confidence": result.confidence} if result.confidence is not None else {}
            file.write(json.dumps(line | ({"score": result.score} if told else {}) | said, allow_nan=False) + "\n")
    job.event("artifact", path=f"outputs/{FILE}", name="samples", kind="samples", metadata={"samples": count})
    return f"outputs/{FILE}"
