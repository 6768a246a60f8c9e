"""The process that reads and evaluates: `python -m runs.expressions.process`, a request as a JSON line on stdin, its answer as a line on stdout.

It says `ready` first. It knows no database and no secret; memory is bounded by the kernel, time by whoever asks, who kills it.
"""

import json
import os
import resource
import signal
import sys
from typing import Any

import cel

MOST_BYTES = 1024**3  # of address space
MOST_SECONDS = 600  # of processor time: whoever asked may have died


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)
    programs: dict[str, Any] = {}
    held: dict[str, Any] = {}
    _say("ready")
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "variables" in request:  # for all that is asked after it
            held, answer = request["variables"], {}
        else:
            answer = _answer(request, programs, held)
        _say(json.dumps(answer))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _answer(request: dict[str, Any], programs: dict[str, Any], held: dict[str, Any]) -> dict[str, Any]:
    source = request["expression"]
    try:
        program = programs.get(source) or programs.setdefault(source, cel.compile(source))
        if request["do"] == "read":
            return {"calls": program.functions(), "variables": program.variables()}
        value = program.execute({name: held[name] for name in program.variables() if name in held})  # each is taken over value by value
    except Exception as fault:  # whatever the parser or an operation says
        return {"fault": " ".join(str(fault).split())[:300]}
    return {"value": value} if isinstance(value, bool) else {"fault": f"It gives {type(value).__name__}, neither true nor false."}


if __name__ == "__main__":
    main()
