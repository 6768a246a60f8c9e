"""Ray by its Jobs API (plain HTTP). Standard library only, Python 3.8; written against 2.60, whose client library is not needed.

A job's submission id is labsite's own key, so that Ray itself refuses a second one. Ray forgets every job when its head is replaced, may go on
with one that it forgot, and starts one that was stopped while it waited; the fence and the end in the run folder make all three harmless.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import shlex
import socket
import threading
import time
from collections.abc import Mapping, Sequence

from runs.pools.base import JSON, NoAnswer, PoolError, Status, check_name
from runs.pools.scheduler import PREFIX, Launch, Placed

CALL_SECONDS = 10.0  # of one call, from the first byte to the last
SILENT_SECONDS = 3.0  # so long after a call without an answer nobody else is kept waiting
MAX_ANSWER_BYTES = 32 << 20  # a list of some ten thousand jobs
MARK = "labsite"  # of the metadata that says which jobs are ours

_LIVING = {"PENDING": Status.PENDING, "RUNNING": Status.RUNNING}
_ENDED = {"STOPPED": "engine_cancelled", "SUCCEEDED": "engine_failed", "FAILED": "engine_failed"}
# What an end without exit.json comes to, where Ray says why it failed.
_FAILED = {
    "JOB_SUPERVISOR_ACTOR_DIED": "launcher_lost",
    "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE": "launcher_lost",
    "JOB_SUPERVISOR_ACTOR_START_TIMEOUT": "cancelled",  # a quarter of an hour in Ray's own queue
}
_PLAIN = re.compile(r"[A-Za-z0-9_./@%+=:,-]+\Z", re.ASCII)  # nothing that a shell would take for more than a letter
_ADDRESS = re.compile(r"(https?)://([A-Za-z0-9.-]{1,253}|\[[0-9a-fA-F:.]{2,45}\])(?::([0-9]{1,5}))?/?\Z", re.ASCII)

_OPEN = (
    "The Jobs API answers without authentication: whoever reaches {} can run anything there, as the account that Ray runs under. "
    "Keep it on a network that nobody else reaches."
)


class RayJobs:
    """A cluster, by the address of its dashboard: `http://host:port`, or https where a proxy in front of it has a certificate."""

    title = "Ray"

    def __init__(self, address: str) -> None:
        self._scheme, self._host, self._port = _split(address)
        self._address = f"{self._host}:{self._port}"  # for people

    def submit(self, launch: Launch) -> None:
        """Look the name up, and ask where Ray does not know it. Ray has no limit of time: the launcher alone holds it."""
        name = launch.name
        known = self.look(name)
        if known.status == Status.UNKNOWN:
            raise NoAnswer(known.reason)
        if known.status != Status.MISSING:
            return
        asked: dict[str, JSON] = {
            "submission_id": name,
            "entrypoint": _shell_line(launch.argv),
            "entrypoint_num_cpus": launch.slots,
            "entrypoint_num_gpus": launch.gpus,
            "metadata": {MARK: name},
            "runtime_env": {},
        }
        if launch.memory_bytes is not None:
            asked["entrypoint_memory"] = launch.memory_bytes
        status, content = self._call("POST", "/api/jobs/", asked)
        if status == http.client.OK and _object(content).get("submission_id") == name:
            return
        if b"already exists" in content:  # with HTTP 500: somebody was quicker
            return
        if status in (http.client.BAD_REQUEST, http.client.UNPROCESSABLE_ENTITY):
            raise PoolError(f"Ray refused: {_last_words(content)}")
        raise NoAnswer(self._strange(status, content))

    def look(self, name: str, *, fresh: bool = False) -> Placed:
        try:
            status, content = self._call("GET", _path(name))
        except NoAnswer as silent:
            return Placed(Status.UNKNOWN, silent.reason)
        if _is_unknown(name, status, content):
            return Placed(Status.MISSING, "Ray knows no such job")
        found = _object(content)
        if status != http.client.OK or found.get("submission_id") != name:
            return Placed(Status.UNKNOWN, self._strange(status, content))
        if not _is_ours(found):
            return Placed(Status.UNKNOWN, "Ray has a job of this name that labsite did not submit")
        return _placed(name, found)

    def stop(self, name: str) -> None:
        """One that waits goes on waiting all the same, and is started when its turn comes: a defect of Ray that the fence makes up for."""
        status, content = self._call("POST", f"{_path(name)}/stop")
        if not _is_unknown(name, status, content) and (status != http.client.OK or "stopped" not in _object(content)):
            raise NoAnswer(self._strange(status, content))

    def names(self) -> list[str]:
        status, content = self._call("GET", "/api/jobs/")
        listed = _parsed(content)
        if status != http.client.OK or not isinstance(listed, list):
            raise NoAnswer(self._strange(status, content))
        ours = [job for job in listed if isinstance(job, dict) and _is_ours(job) and job.get("status") not in _ENDED]
        return sorted(str(job["submission_id"]) for job in ours)

    def probe(self) -> Mapping[str, JSON]:
        """Also `cpus`. Warnings: an address that answers anybody, a line that is not sealed, nodes that are down."""
        status, content = self._call("GET", "/api/version")
        version = _object(content).get("ray_version")
        if status != http.client.OK or not isinstance(version, str):
            raise NoAnswer(self._strange(status, content))
        warnings = [_OPEN.format(self._address)]
        if self._scheme == "http" and not self._host.startswith(("127.", "localhost", "::1")):
            warnings.append("The address is plain http: what is said on the way can be read and changed.")
        status, content = self._call("GET", "/api/v0/nodes")
        nodes = _nodes(content) if status == http.client.OK else []
        living = [node for node in nodes if node.get("state") == "ALIVE"]
        if not living:
            warnings.append("Ray names no node that is alive.")
        if len(living) < len(nodes):
            warnings.append(f"{len(nodes) - len(living)} of {len(nodes)} nodes are down.")
        return {
            "version": _words(version, 40),
            "nodes": len(living),
            "cpus": sum(_resource(node, "CPU") for node in living),
            "gpus": sum(_resource(node, "GPU") for node in living),
            "warnings": warnings,
        }

    def _call(self, method: str, path: str, asked: JSON = None) -> tuple[int, bytes]:
        """Status and content of one answer; NoAnswer where none comes in time. No proxy is asked, no redirect followed."""
        until, why = _SILENT.get(self._address, (0.0, ""))
        if time.monotonic() < until:
            raise NoAnswer(why)
        try:
            return self._exchange(method, path, asked)
        except (OSError, http.client.HTTPException) as error:
            words = f"Ray at {self._address} did not answer: {_words(str(error), 200) or type(error).__name__}"
            _SILENT[self._address] = (time.monotonic() + SILENT_SECONDS, words)
            raise NoAnswer(words) from error

    def _exchange(self, method: str, path: str, asked: JSON) -> tuple[int, bytes]:
        kind = http.client.HTTPSConnection if self._scheme == "https" else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=CALL_SECONDS)
        headers = {"Accept": "application/json", "Connection": "close"}
        body = None
        if asked is not None:
            body, headers["Content-Type"] = json.dumps(asked).encode(), "application/json"
        content = b""
        connection.connect()
        # The timeout of a socket is one of silence: who sends a byte now and then could hold us for ever.
        line, late = connection.sock, threading.Event()
        alarm = threading.Timer(CALL_SECONDS, _cut, (line, late))
        alarm.daemon = True
        alarm.start()
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            content = answer.read(MAX_ANSWER_BYTES + 1)
        except (OSError, http.client.HTTPException):
            if not late.is_set():
                raise
        finally:
            alarm.cancel()
            connection.close()
        if late.is_set():
            raise TimeoutError(f"not within {CALL_SECONDS:g} s")
        if len(content) > MAX_ANSWER_BYTES:
            raise http.client.HTTPException(f"more than {MAX_ANSWER_BYTES >> 20} MiB")
        return answer.status, content

    def _strange(self, status: int, content: bytes) -> str:
        if status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
            return f"Ray at {self._address} asks for authentication, which labsite does not have"
        return f"{self._address} does not answer as Ray does: HTTP {status}, {_last_words(content) or 'nothing'}"


_SILENT: dict[str, tuple[float, str]] = {}


def _cut(line: socket.socket, late: threading.Event) -> None:
    late.set()
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def _split(address: str) -> tuple[str, str, int]:
    """Scheme, host and port. PoolError for anything more, such as a name and a password, or a path."""
    found = _ADDRESS.match(address)
    port = int(found.group(3) or (443 if found.group(1) == "https" else 80)) if found else 0
    if not found or not 0 < port < 65536:
        raise PoolError("the address of Ray's dashboard is http://host:port")
    return found.group(1), found.group(2).strip("[]"), port


def _path(name: str) -> str:
    return f"/api/jobs/{check_name(name, 'a name')}"


def _shell_line(argv: Sequence[str]) -> str:
    """Ray hands its entrypoint to a shell; what could mean more to one than itself is refused, not quoted."""
    for word in argv:
        if not _PLAIN.match(word):
            raise PoolError(f"for Ray, paths have letters, digits and _./@%+=:,- only, not {word[:200]!a}")
    return f"exec {' '.join(shlex.quote(word) for word in argv)}"


def _is_unknown(name: str, status: int, content: bytes) -> bool:
    """In Ray's own words: any server on the way may say 404."""
    return status == http.client.NOT_FOUND and content.startswith(f"Job {name} does not exist".encode())


def _is_ours(job: Mapping[str, JSON]) -> bool:
    name, metadata = job.get("submission_id"), job.get("metadata")
    return isinstance(name, str) and name.startswith(PREFIX) and isinstance(metadata, dict) and metadata.get(MARK) == name


def _placed(name: str, job: Mapping[str, JSON]) -> Placed:
    label, state, message = f"job {name}", _words(str(job.get("status")), 40), _told(str(job.get("message") or ""))
    if state in _LIVING:
        waits = f"Ray keeps it waiting: {message}" if message else "Ray keeps it waiting"
        return Placed(_LIVING[state], waits if state == "PENDING" else f"Ray says {state}", label)
    if state not in _ENDED:
        return Placed(Status.UNKNOWN, f"Ray says {state!a} of it, which labsite does not know", label)
    error, code = job.get("error_type"), job.get("driver_exit_code")
    ended_as = _FAILED.get(str(error), _ENDED[state])
    if isinstance(code, int) and code < 0 and state == "FAILED":
        ended_as = "launcher_lost"  # a signal ended the launcher itself
    said = f"{state} ({error})" if error else state
    return Placed(Status.EXITED, _words(f"Ray says that it ended: {said}: {message}", 400), label, ended_as)


def _told(message: str) -> str:
    """What Ray says of a job: of the lines that it adds from a log, the last one that is not its own."""
    first, *log = message.splitlines() or [""]
    more = [line for line in log if line.strip() and "job_manager.py" not in line and not line.startswith("Running entrypoint")]
    return _words("; ".join((first.partition(", last available logs")[0], *more[-1:])), 300)


def _nodes(content: bytes) -> list[dict[str, JSON]]:
    """The nodes in an answer of the state API, which lie deep in it."""
    found: JSON = _parsed(content)
    for key in ("data", "result", "result"):
        found = found.get(key) if isinstance(found, dict) else None
    return [node for node in found if isinstance(node, dict)] if isinstance(found, list) else []


def _resource(node: Mapping[str, JSON], kind: str) -> int:
    total = node.get("resources_total")
    amount = total.get(kind) if isinstance(total, dict) else None
    return int(amount) if isinstance(amount, (int, float)) and 0 <= amount < 1e9 else 0


def _parsed(content: bytes) -> JSON:
    """None where it is no JSON, or JSON that is too deep for anybody's use."""
    try:
        found: JSON = json.loads(content.decode())
    except (ValueError, RecursionError):
        return None
    return found


def _object(content: bytes) -> dict[str, JSON]:
    found = _parsed(content)
    return found if isinstance(found, dict) else {}


def _last_words(content: bytes) -> str:
    """Ray answers with a traceback, whose last line says what it was."""
    lines = [line for line in content[-4000:].decode(errors="replace").splitlines() if len(line.strip()) > 1]
    return _words(lines[-1], 200) if lines else ""


def _words(text: str, limit: int) -> str:
    """One line for people."""
    return " ".join("".join(one if one.isprintable() else " " for one in text[: 4 * limit]).split())[:limit]
