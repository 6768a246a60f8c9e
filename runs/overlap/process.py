"""The process that reads and compares: `python -m runs.overlap.process`, one request as a JSON line on stdin, answers as JSON lines on stdout.

Whatever the files hold, no more than this process ends by it: memory is bounded by the kernel, time by whoever started it.
"""

import json
import os
import resource
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from runs.overlap.compare import Side, compare
from runs.overlap.kinds import unmet
from runs.overlap.sidecar import Sidecar, Source, write

NICE = 10
OUT_OF_MEMORY = 3  # exit code


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    os.nice(NICE)
    most_bytes = request["most_bytes"]
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    signal.alarm(request["seconds"] + 60)  # whoever asked may have died
    try:
        _answer(request)
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)


def _answer(request: dict[str, Any]) -> None:
    if request["do"] == "index":
        _say(asdict(write(Path(request["out"]), _sources(request["files"]))))
        return
    for pair in request["pairs"]:
        version, holdout = _side(pair["version"]), _side(pair["holdout"])
        found = compare(version, holdout)
        shown = [
            {
                "kind": hit.kind,
                "similarity": hit.similarity,
                "record": _where(version, hit.record),
                "holdout": _where(holdout, hit.other),
            }
            for hit in found.pairs
        ]
        paths = dict(zip(("version", "holdout"), unmet(version.contents.parts, holdout.contents.parts), strict=True))
        _say({"exact": found.exact, "near": found.near, "is_least": found.is_least, "pairs": shown, "unmet": paths})


def _where(side: Side, number: int) -> dict[str, Any]:
    """Where a record stands: file, number within it from 1, and its bytes."""
    part, row = side.contents.part_of(number), side.sidecar.record(number)
    length = 0 if side.is_turned(part.path) else int(row["length"])  # there are no such bytes in the file
    return {"path": part.path, "number": number - part.first + 1, "place": int(row["place"]), "length": length}


def _side(given: dict[str, Any]) -> Side:
    return Side(Sidecar(Path(given["sidecar"])), _sources(given["files"]))


def _sources(given: list[list[str]]) -> list[Source]:
    return [Source(path, Path(place)) for path, place in given]


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
