"""What labsite makes of answers that no Ray should give, and what it will not ask. No head is needed."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runs.pools import ray
from runs.pools.base import NoAnswer, PoolError, Status
from runs.pools.ray import RayJobs
from runs.pools.scheduler import Launch, Scheduler
from tests.runs.pools.line_server import LineServer, http_answer, saying

NAME = "lab-1-3f2b"


@pytest.fixture(autouse=True)
def nobody_is_known_to_be_silent() -> Iterator[None]:
    ray._SILENT.clear()
    yield
    ray._SILENT.clear()


def submit(jobs: Scheduler, argv: tuple[str, ...] = ("/bin/true",)) -> None:
    jobs.submit(Launch(NAME, argv, Path("/srv/x"), slots=1, gpus=0, wall_seconds=1, memory_bytes=None))


def job(**values: object) -> bytes:
    told = {"type": "SUBMISSION", "submission_id": NAME, "status": "RUNNING", "metadata": {"labsite": NAME}, "message": "", **values}
    return http_answer(json.dumps(told).encode())


STRANGE = {
    "a page of another server": (http_answer(b"<html>It works!</html>"), "does not answer as Ray does: HTTP 200, <html>It works!</html>"),
    "a page that is not found": (http_answer(b"404 page not found", "404 Not Found"), "HTTP 404, 404 page not found"),
    "another job that is not found": (http_answer(b"Job lab-1-other does not exist", "404 Not Found"), "HTTP 404"),
    "a redirect": (http_answer(b"", "302 Found", "Location: http://127.0.0.1:1/api/jobs/\r\n"), "HTTP 302, nothing"),
    "a demand for a token": (http_answer(b"Unauthorized", "401 Unauthorized"), "asks for authentication"),
    "another object": (http_answer(b'{"ok": true}'), "does not answer as Ray does"),
    "a number": (http_answer(b"12"), "does not answer as Ray does"),
    "text that is not UTF-8": (http_answer(b"\xff\xfe{}"), "does not answer as Ray does"),
    "very deep JSON": (http_answer(b"[" * 200_000), "does not answer as Ray does"),
    "half an answer": (job()[:-20], "does not answer as Ray does"),
    "an internal error": (http_answer(b"Traceback\n  x\nRuntimeError: no agent", "500 No"), "HTTP 500, RuntimeError: no agent"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n", "did not answer"),
    "nothing": (b"", "did not answer"),
    "a very long header": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", "did not answer"),
}


@pytest.mark.parametrize("what", STRANGE)
def test_an_answer_that_is_none_says_nothing_of_a_job(what: str) -> None:
    answer, words = STRANGE[what]
    with LineServer(saying(answer)) as server:
        jobs = RayJobs(server.url)
        seen = jobs.look(NAME)
        assert seen.status == Status.UNKNOWN
        assert words in seen.reason
        calls: tuple[Callable[[], object], ...] = (lambda: submit(jobs), lambda: jobs.stop(NAME), jobs.probe, jobs.names)
        for call in calls:
            ray._SILENT.clear()
            with pytest.raises(NoAnswer):
                call()
        assert not [one for one in server.requests if one.startswith(b"POST /api/jobs/ ")], (
            "nothing is asked for before the name is looked up"
        )


@pytest.mark.parametrize(
    ("values", "status", "words"),
    [
        ({"status": "PENDING", "message": "It waits\nfor resources."}, Status.PENDING, "Ray keeps it waiting: It waits; for resources."),
        ({}, Status.RUNNING, "Ray says RUNNING"),
        ({"status": "DREAMING\x1b[2J"}, Status.UNKNOWN, "which labsite does not know"),
        ({"status": None}, Status.UNKNOWN, "which labsite does not know"),
        ({"metadata": {"labsite": "lab-1-other"}}, Status.UNKNOWN, "that labsite did not submit"),
        ({"metadata": None}, Status.UNKNOWN, "that labsite did not submit"),
        ({"submission_id": "lab-1-other"}, Status.UNKNOWN, "does not answer as Ray does"),
        ({"status": "STOPPED"}, Status.EXITED, "Ray says that it ended: STOPPED"),
        ({"status": "FAILED", "message": {"x": 1}}, Status.EXITED, "FAILED: {'x': 1}"),
    ],
)
def test_a_state_is_read_and_a_strange_one_is_unknown(values: dict[str, object], status: Status, words: str) -> None:
    with LineServer(saying(job(**values))) as server:
        seen = RayJobs(server.url).look(NAME)
    assert seen.status == status
    assert words in seen.reason
    assert seen.reason.isprintable()


@pytest.mark.parametrize(
    ("values", "ended_as"),
    [
        ({"status": "STOPPED"}, "engine_cancelled"),
        ({"status": "SUCCEEDED"}, "engine_failed"),
        ({"status": "FAILED", "error_type": "JOB_ENTRYPOINT_COMMAND_ERROR", "driver_exit_code": 127}, "engine_failed"),
        ({"status": "FAILED", "error_type": "JOB_ENTRYPOINT_COMMAND_ERROR", "driver_exit_code": -9}, "launcher_lost"),
        ({"status": "FAILED", "error_type": "JOB_SUPERVISOR_ACTOR_DIED"}, "launcher_lost"),
        ({"status": "FAILED", "error_type": "JOB_SUPERVISOR_ACTOR_START_TIMEOUT"}, "cancelled"),
        ({"status": "FAILED", "error_type": "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE"}, "engine_failed"),
        ({"status": "FAILED", "error_type": "SOMETHING_NEW"}, "engine_failed"),
    ],
)
def test_what_an_end_without_an_end_in_the_folder_comes_to(values: dict[str, object], ended_as: str) -> None:
    with LineServer(saying(job(**values))) as server:
        assert RayJobs(server.url).look(NAME).ended_as == ended_as


def drip(line: socket.socket, request: bytes) -> None:
    """A byte now and then, so that the line is never silent."""
    for byte in b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000:
        line.sendall(bytes([byte]))
        time.sleep(0.02)


def drip_content(line: socket.socket, request: bytes) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    drip(line, request)


def stay_silent(line: socket.socket, request: bytes) -> None:
    line.recv(1)


@pytest.mark.parametrize("answer", [drip, drip_content, stay_silent])
def test_one_who_answers_slowly_is_given_up_in_time(
    answer: Callable[[socket.socket, bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "CALL_SECONDS", 0.4)
    with LineServer(answer) as server:
        began = time.monotonic()
        seen = RayJobs(server.url).look(NAME)
        assert time.monotonic() - began < 3
        assert seen.status == Status.UNKNOWN
        assert "did not answer" in seen.reason
        assert RayJobs(server.url).look(NAME) == seen
        assert len(server.requests) == 1, "for a while, nobody else waits for a silent one"


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "MAX_ANSWER_BYTES", 1 << 20)

    def flood(line: socket.socket, request: bytes) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            line.sendall(b" " * (1 << 16))

    with LineServer(flood) as server:
        seen = RayJobs(server.url).look(NAME)
    assert seen.status == Status.UNKNOWN
    assert "more than 1 MiB" in seen.reason


def test_no_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with LineServer(saying(job())) as server:
        assert RayJobs(server.url).look(NAME).status == Status.RUNNING


@pytest.mark.parametrize(
    "address",
    [
        "", "ray", "127.0.0.1:8265", "ftp://ray.example", "file:///etc/passwd", "http://", "http://user:word@ray.example", "http://ray.example/x",
        "http://ray.example?x", "http://ray.example:99999", "http://ray.example:x", "http://ray example", "http://ray\n.example", "http://[::1",
    ],
)  # fmt: skip
def test_an_address_that_is_more_or_less_than_one_is_refused(address: str) -> None:
    with pytest.raises(PoolError, match="http://host:port"):
        RayJobs(address)


@pytest.mark.parametrize("word", ["", "a b", "$HOME", "a;b", "`id`", "a\nb", "~", "é", "'x'", "a&b", "a>b", "*", "a\\b", "#x", "!x"])
def test_a_word_that_a_shell_could_read_in_another_way_is_refused(word: str) -> None:
    absent = http_answer(f"Job {NAME} does not exist".encode(), "404 Not Found")
    with LineServer(saying(absent)) as server:
        with pytest.raises(PoolError, match="for Ray, paths have letters"):
            submit(RayJobs(server.url), ("/usr/bin/python3", word))
        assert not [one for one in server.requests if one.startswith(b"POST")]


def test_the_shell_line_is_the_words_themselves() -> None:
    sent: list[bytes] = []

    def answer(line: socket.socket, request: bytes) -> None:
        if request.startswith(b"POST"):
            sent.append(request.partition(b"\r\n\r\n")[2] or line.recv(1 << 16))
            line.sendall(http_answer(json.dumps({"submission_id": NAME}).encode()))
        else:
            line.sendall(http_answer(f"Job {NAME} does not exist".encode(), "404 Not Found"))

    with LineServer(answer) as server:
        RayJobs(server.url).submit(
            Launch(
                NAME,
                ["/usr/bin/python3", "-I", "/srv/a_b/x.py"],
                Path("/srv"),
                slots=2,
                gpus=1,
                wall_seconds=9,
                memory_bytes=1 << 30,
            )
        )
    assert json.loads(sent[0]) == {
        "submission_id": NAME,
        "entrypoint": "exec /usr/bin/python3 -I /srv/a_b/x.py",
        "entrypoint_num_cpus": 2,
        "entrypoint_num_gpus": 1,
        "entrypoint_memory": 1 << 30,
        "metadata": {"labsite": NAME},
        "runtime_env": {},
    }


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a b", "x" * 129, "a?b", "a%2fb"])
def test_a_name_that_could_leave_its_path_is_refused(name: str) -> None:
    with pytest.raises(PoolError):
        RayJobs("http://127.0.0.1:1").look(name)


def test_only_living_jobs_of_labsite_are_listed() -> None:
    def one(name: str, status: str, mark: str) -> dict[str, object]:
        return {"type": "SUBMISSION", "submission_id": name, "status": status, "metadata": {"labsite": mark}}

    jobs = [
        one("lab-1-b", "RUNNING", "lab-1-b"), one("lab-1-a", "PENDING", "lab-1-a"), one("lab-1-c", "FAILED", "lab-1-c"),
        one("lab-1-d", "RUNNING", "other"), one("train", "RUNNING", "train"), {"type": "DRIVER", "submission_id": None, "status": "RUNNING"}, 7,
    ]  # fmt: skip
    with LineServer(saying(http_answer(json.dumps(jobs).encode()))) as server:
        assert RayJobs(server.url).names() == ["lab-1-a", "lab-1-b"]
