"""What every pool must do, against the real thing. A test module makes a class of it and a fixture `lab`."""

import json
import math
import os
import signal
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from runs.pools.base import JSON, Order, PoolError, Status
from runs.pools.folder import remove_tree
from runs.pools.lines import parse_metrics
from tests.runs.pools.laboratory import Laboratory, alive, wait_for

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(60)
"""

DETACHED = """
import os, subprocess, sys
code = "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('child', flush=True); time.sleep(60)"
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", code, sys.argv[1]])
    os._exit(0)
os.wait()
if len(sys.argv) > 2:
    import time
    time.sleep(60)
"""


class Conformance:
    """One test a promise of the protocol."""

    def test_success_with_log_and_measures(self, lab: Laboratory) -> None:
        order, seen = lab.run("print('hello'); sum(range(10**6))")
        assert seen.exit is not None
        assert (seen.exit.code, seen.exit.signal, seen.exit.reason) == (0, None, "exit")
        assert lab.log(order) == "hello\n"
        assert seen.exit.started_at <= seen.exit.ended_at
        assert (seen.exit.peak_memory_bytes or 0) > 1 << 20
        assert (seen.exit.cpu_seconds or 0) > 0

    def test_failure_keeps_its_code_and_stderr(self, lab: Laboratory) -> None:
        order, seen = lab.run("import sys; print('no', file=sys.stderr); sys.exit(7)")
        assert seen.exit is not None
        assert (seen.exit.code, seen.exit.reason) == (7, "exit")
        assert lab.log(order, "stderr.log") == "no\n"

    def test_death_by_signal(self, lab: Laboratory) -> None:
        _, seen = lab.run("import os, signal; os.kill(os.getpid(), signal.SIGKILL) if os.getpid() > 1 else None")
        assert seen.exit is not None
        assert (seen.exit.code, seen.exit.signal) == (None, signal.SIGKILL)

    def test_a_command_that_does_not_exist_says_so(self, lab: Laboratory) -> None:
        order, seen = lab.run("", argv=["no-such-command"])
        assert seen.exit is not None
        assert seen.exit.code == 127
        assert "command not found: no-such-command" in lab.log(order, "stderr.log")

    def test_wall_limit_ends_one_that_ignores_sigterm(self, lab: Laboratory) -> None:
        order, seen = lab.run(STUBBORN, limits={"wall_seconds": 0.5})
        assert lab.log(order) == "up\n"
        assert seen.exit is not None
        assert (seen.exit.signal, seen.exit.reason) == (signal.SIGKILL, "wall_limit")
        assert seen.exit.ended_at - seen.exit.started_at < 5

    def test_left_over_processes_are_ended_with_the_command(self, lab: Laboratory) -> None:
        token = uuid.uuid4().hex
        _, seen = lab.run(DETACHED, token)
        assert seen.exit is not None
        assert (seen.exit.code, seen.exit.reason) == (0, "exit")
        assert alive(token) == []

    def test_cancel_ends_detached_children_too(self, lab: Laboratory) -> None:
        token = uuid.uuid4().hex
        order = lab.start(lab.order(DETACHED, token, "stay"))
        lab.said(order, "child")
        lab.pool.cancel(order.workspace, order.key, grace_seconds=0.1)
        seen = lab.ended(order)
        assert seen.exit is not None
        assert seen.exit.reason == "cancelled"
        assert alive(token) == []

    def test_cancel_lets_the_run_say_goodbye(self, lab: Laboratory) -> None:
        script = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\nprint('up', flush=True)\ntime.sleep(60)"
        order = lab.start(lab.order(script))
        lab.said(order, "up")
        lab.pool.cancel(order.workspace, order.key, grace_seconds=10)
        seen = lab.ended(order)
        assert seen.exit is not None
        assert (seen.exit.code, seen.exit.reason) == (5, "cancelled")

    def test_cancel_before_start_holds(self, lab: Laboratory) -> None:
        order = lab.order("print('ran')")
        lab.pool.cancel(order.workspace, order.key, grace_seconds=1)
        lab.pool.submit(order)
        seen = lab.ended(order)
        assert seen.exit is not None
        assert (seen.exit.code, seen.exit.reason) == (None, "cancelled")
        assert lab.log(order) == ""

    def test_cancel_after_the_end_changes_nothing(self, lab: Laboratory) -> None:
        order, seen = lab.run("pass")
        lab.pool.cancel(order.workspace, order.key, grace_seconds=0)
        assert lab.look(order) == seen

    def test_two_processes_submit_at_once_and_one_starts(self, lab: Laboratory) -> None:
        order = lab.order("import os; open(os.environ['LABSITE_RUN_DIR'] + '/metrics.jsonl', 'a').write('x')")
        submitters = [lab.elsewhere(order) for _ in range(3)]
        assert [one.wait(20) for one in submitters] == [0, 0, 0]
        lab.pool.submit(order)
        lab.ended(order)
        assert lab.log(order, "metrics.jsonl") == "x"

    def test_killing_the_submitter_leaves_the_run_alone(self, lab: Laboratory) -> None:
        order = lab.order("import time; print('up', flush=True); time.sleep(0.5); print('done')")
        assert lab.elsewhere(order, then="die").wait(20) == -signal.SIGKILL
        seen = lab.ended(order)
        assert seen.exit is not None
        assert seen.exit.code == 0
        assert lab.log(order) == "up\ndone\n"

    def test_killing_the_launcher_ends_the_run(self, lab: Laboratory) -> None:
        token = uuid.uuid4().hex
        order = lab.start(lab.order(DETACHED, token, "stay"))
        lab.said(order, "child")
        assert lab.look(order).status == Status.RUNNING
        os.kill(json.loads((lab.folder(order) / "state/pid.json").read_text())["launcher"]["pid"], signal.SIGKILL)
        seen = lab.ended(order)
        assert seen.exit is not None
        assert (seen.exit.code, seen.exit.signal, seen.exit.reason) == (None, None, "launcher_lost")
        assert alive(token) == []
        assert not (lab.folder(order) / "secrets").exists()

    def test_removing_the_folder_by_hand_ends_the_run(self, lab: Laboratory) -> None:
        token = uuid.uuid4().hex
        order = lab.start(lab.order(DETACHED, token, "stay"))
        lab.said(order, "child")
        launcher = lab.folder(order) / "state/pid.json"
        pid = json.loads(launcher.read_text())["launcher"]["pid"]
        remove_tree(lab.folder(order))
        wait_for(lambda: None if alive(token) or Path(f"/proc/{pid}").exists() else True, "the end of the run and of its launcher")
        wait_for(lambda: lab.look(order).status == Status.MISSING or None, "its being gone")

    def test_a_flooded_log_is_cut_and_never_blocks(self, lab: Laboratory) -> None:
        order, seen = lab.run("for _ in range(4000): print('x' * 999)", limits={"log_bytes": 10_000})
        assert seen.exit is not None
        assert seen.exit.code == 0
        log = lab.log(order)
        assert log.startswith("x" * 999)
        assert "log limit of 10000 bytes reached" in log
        assert "3990000 bytes dropped" in log
        assert len(log) < 10_300

    def test_binary_output_is_kept(self, lab: Laboratory) -> None:
        order, _ = lab.run("import sys; sys.stdout.buffer.write(bytes(range(256)) * 10)")
        assert lab.pool.read(order.workspace, order.key, "stdout.log", offset=256, limit=256) == bytes(range(256))

    def test_filling_the_folder_ends_the_run(self, lab: Laboratory) -> None:
        script = "import time\nfor n in range(10**6):\n    open(f'../outputs/{n}', 'wb').write(bytes(100_000)); time.sleep(0.001)"
        _, seen = lab.run(script, limits={"output_bytes": 2_000_000})
        assert seen.exit is not None
        assert seen.exit.reason == "output_limit"

    def test_taking_too_much_memory_ends_the_run(self, lab: Laboratory) -> None:
        _, seen = lab.run("import time; x = b'x' * 200_000_000; time.sleep(60)", limits={"memory_bytes": 100_000_000})
        assert seen.exit is not None
        assert seen.exit.reason == "memory_limit"
        assert (seen.exit.peak_memory_bytes or 0) > 100_000_000

    def test_outputs_leave_out_links_and_specials(self, lab: Laboratory) -> None:
        script = (
            "import os; os.chdir('../outputs'); os.makedirs('a/b'); open('a/b/model.bin', 'w').write('w' * 9); os.symlink('/etc', 'etc')\n"
            "os.symlink('/etc/passwd', 'passwd'); os.mkfifo('pipe'); open(b'\\xff', 'w'); open('new\\nline', 'w')"
        )
        order, _ = lab.run(script)
        found = lab.pool.outputs(order.workspace, order.key)
        assert [(one.path, one.bytes) for one in found] == [("a/b/model.bin", 9)]
        assert (found.skipped, found.left) == (1, {"links": (2, "etc"), "names": (2, "new\nline")}), "what may be work is named"
        with lab.pool.open_output(order.workspace, order.key, "a/b/model.bin") as file:
            assert file.read() == b"w" * 9
        for path in ("passwd", "etc/passwd", "pipe", "../job.json", "/etc/passwd", "a//b", "a/b", "gone", "x\0", "\udc80"):
            with pytest.raises(PoolError):
                lab.pool.open_output(order.workspace, order.key, path)

    def test_outputs_replaced_by_a_link_show_nothing(self, lab: Laboratory) -> None:
        order, _ = lab.run("import os; os.rename('../outputs', '../gone'); os.symlink('/etc', '../outputs')")
        assert lab.pool.outputs(order.workspace, order.key) == []
        with pytest.raises(PoolError):
            lab.pool.open_output(order.workspace, order.key, "passwd")

    @pytest.mark.parametrize("trap", ["os.symlink('/etc/passwd', name)", "os.mkfifo(name)", "os.mkdir(name)"])
    def test_traps_in_place_of_metrics(self, lab: Laboratory, trap: str) -> None:
        order, _ = lab.run(f"import os; name = '../metrics.jsonl'; {trap}")
        with pytest.raises(PoolError, match=r"metrics\.jsonl is not a regular file"):
            lab.log(order, "metrics.jsonl")

    def test_only_the_four_files_can_be_read(self, lab: Laboratory) -> None:
        order, _ = lab.run("pass")
        assert lab.log(order, "events.jsonl") == ""
        for name in ("job.json", "state/exit.json", "../x", ""):
            with pytest.raises(PoolError):
                lab.log(order, name)

    def test_metrics_with_nan_arrive(self, lab: Laboratory) -> None:
        line = '{"key": "loss", "value": "NaN", "step": 1}\n'
        order, _ = lab.run(f"open('../metrics.jsonl', 'a').write({line + line[:20]!r})")
        points, bad, consumed, lines = parse_metrics(lab.log(order, "metrics.jsonl").encode(), 1)
        assert [point.step for point in points] == [1]
        assert math.isnan(points[0].value)
        assert (bad.count, lines, consumed) == (0, 1, len(line))

    def test_the_environment_is_what_was_declared(self, lab: Laboratory) -> None:
        os.environ["LABSITE_TEST_LEAK"] = "leaked"
        try:
            order, _ = lab.run(
                "import os, json; print(json.dumps(dict(os.environ)))", env={"SEED": "7", "HOME": "/x"}, resources={"slots": 2}
            )
        finally:
            del os.environ["LABSITE_TEST_LEAK"]
        env = json.loads(lab.log(order))
        env.pop("LC_CTYPE", None)  # set by Python itself
        folder = str(lab.folder(order))
        assert env.pop("PATH").endswith("/usr/local/bin:/usr/bin:/bin")
        assert env == {
            "SEED": "7", "OMP_NUM_THREADS": "2", "LABSITE_RUN_DIR": folder, "LABSITE_JOB": f"{folder}/job.json",
            "HOME": f"{folder}/home", "TMPDIR": f"{folder}/tmp",  # noqa: S108 -- below the run folder
        }  # fmt: skip

    def test_secrets_are_files_and_go_with_the_end(self, lab: Laboratory) -> None:
        script = "import os; p = '../secrets/TOKEN'; print(open(p).read(), oct(os.stat(p).st_mode & 0o777))"
        order, _ = lab.run(script, secrets={"TOKEN": "s3cret"})
        assert lab.log(order) == "s3cret 0o600\n"
        assert not (lab.folder(order) / "secrets").exists()
        assert "s3cret" not in (lab.folder(order) / "job.json").read_text()

    def test_inputs_are_there_and_checked(self, lab: Laboratory) -> None:
        data = lab.dataset("medqa", "a,b\n1,2\n")
        order, _ = lab.run("print(open('../inputs/medqa/table.csv').read())", inputs=(data,))
        assert lab.log(order) == "a,b\n1,2\n\n"
        wrong = replace(data, files=(replace(data.files[0], sha256="0" * 64),))
        bad = lab.order("print('ran')", inputs=(wrong,))
        with pytest.raises(PoolError, match=r"table\.csv does not have the hash"):
            lab.pool.submit(bad)
        assert lab.look(bad).status == Status.MISSING

    @pytest.mark.parametrize(
        "path", ["/etc/x", "../x", "a/../x", "", "a//b", "a/", ".", "a\0b", "a\nb", "\udc80", "x" * 256, "a/" * 32 + "b"]
    )
    def test_bad_paths_are_refused(self, lab: Laboratory, path: str) -> None:
        order = lab.order("pass")
        file = replace(order.code[0], path=path)
        with pytest.raises(PoolError):
            lab.pool.submit(replace(order, code=(file,)))
        assert lab.look(order).status == Status.MISSING

    @pytest.mark.parametrize(
        "job",
        [
            {"argv": []}, {"argv": "ls"}, {"argv": ["a\0"]}, {"env": {"A=B": "x"}}, {"cwd": "../.."}, {"schema": "v9"},
            {"limits": {"wall_seconds": -1}}, {"limits": {"wall_seconds": math.nan}}, {"params": {"rate": math.inf}},
        ],
    )  # fmt: skip
    def test_bad_jobs_are_refused(self, lab: Laboratory, job: dict[str, JSON]) -> None:
        order = lab.order("pass")
        with pytest.raises(PoolError):
            lab.pool.submit(replace(order, job={**order.job, **job}))
        assert lab.look(order).status == Status.MISSING

    def test_names_that_could_leave_the_pool_are_refused(self, lab: Laboratory) -> None:
        for key in ("../x", "a/b", "", ".", "x" * 200, "a\0"):
            with pytest.raises(PoolError):
                lab.look(Order(key, "wsone", {}, (), (), {}))
            with pytest.raises(PoolError):
                lab.look(Order("k", key, {}, (), (), {}))

    def test_remove_waits_for_the_end_and_takes_deep_trees(self, lab: Laboratory) -> None:
        script = (
            "import os, time\nos.chdir('../outputs')\nfor _ in range(1100):\n    os.mkdir('d'); os.chdir('d')\n"
            "open('f', 'w'); os.chmod('.', 0); print('up', flush=True); time.sleep(60)"
        )
        order = lab.start(lab.order(script, limits={"output_bytes": None}))
        lab.said(order, "up")
        with pytest.raises(PoolError, match="has not ended"):
            lab.pool.remove(order.workspace, order.key)
        lab.pool.cancel(order.workspace, order.key, grace_seconds=0)
        lab.ended(order)
        lab.pool.remove(order.workspace, order.key)
        # An engine may take a moment to see what the folder knew.
        wait_for(lambda: lab.look(order).status == Status.MISSING or None, "its being gone")
        assert list(lab.folder(order).parent.glob(f"*{order.key}*")) == []
        lab.pool.remove(order.workspace, order.key)

    def test_a_running_attempt_has_a_fresh_heartbeat(self, lab: Laboratory) -> None:
        order = lab.start(lab.order("import time; print('up', flush=True); time.sleep(60)"))
        lab.said(order, "up")
        first = wait_for(lambda: seen if (seen := lab.look(order)).status == Status.RUNNING else None, "the start")
        assert first.heartbeat_at is not None
        later = wait_for(
            lambda: beat if (beat := lab.look(order).heartbeat_at or 0) > (first.heartbeat_at or 0) else None, "the next heartbeat"
        )
        assert abs(time.time() - later) < 10
        lab.pool.cancel(order.workspace, order.key, grace_seconds=0)
        lab.ended(order)
