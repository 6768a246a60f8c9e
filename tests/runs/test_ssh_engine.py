"""An engine on another host, as the product has it: a real sshd, a key that is a secret of the workspace, a run that is launched, watched and
settled there; and what the pages say when the host is away."""

from collections.abc import Iterator
from typing import Any

import asyncssh
import pytest
from django.test import Client

from runs.models import Artifact, Attempt, Run, Watch
from runs.pools.ssh_thread import close_all
from tests.factories_pages import client_of
from tests.factories_people import make_operator
from tests.factories_runs import Laboratory, dispatch, drive, launch, make_laboratory, watch, watch_only
from tests.runs.attempts import content, settled
from tests.runs.pools.ssh_host import SSHHost
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.engine import add_engine, change_engine
from workspaces.commands.pool import bind_pool, change_pool
from workspaces.commands.secret import create_secret, revoke_secret
from workspaces.models import Engine, Pool, Secret

pytestmark = pytest.mark.django_db(transaction=True)

CODE = b"""
import json, os
print("on", os.uname().nodename, "as", os.getuid(), flush=True)
with open("../outputs/model.txt", "w") as file:
    file.write("weights")
with open("../metrics.jsonl", "a") as file:
    file.write(json.dumps({"key": "loss", "value": 0.5, "step": 1}) + "\\n")
with open("../events.jsonl", "a") as file:
    file.write(json.dumps({"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.75, "samples": 4}) + "\\n")
"""
WAITS = b"import os, time\nprint('waiting', flush=True)\nwhile not os.path.exists('../go'):\n    time.sleep(0.05)\n"


@pytest.fixture
def host() -> Iterator[SSHHost]:
    found = SSHHost()
    yield found
    close_all()
    found.close()


def far_laboratory(host: SSHHost, code: bytes = CODE) -> Laboratory:
    """A laboratory with a second pool, `gpu-host`, on the host."""
    laboratory = make_laboratory(code=code)
    add_far_pool(laboratory, host, make_operator())
    return laboratory


def add_far_pool(laboratory: Laboratory, host: SSHHost, operator: Actor) -> None:
    add_engine(
        actor=operator, slug="gpu-host", kind=Engine.Kind.SSH, slots=4, host="127.0.0.1", port=host.port,
        host_key=f"[127.0.0.1]:{host.port} {host.pinned}",
    )  # fmt: skip
    with laboratory.opened():
        create_secret(actor=laboratory.owner, name="GPU_HOST_KEY", kind=Secret.Kind.SSH_KEY, value=host.private_key)
        bind_pool(
            actor=laboratory.owner, engine="gpu-host", slug="gpu-host", slots=2, isolation=Pool.Isolation.NONE, login=host.user,
            folder=str(host.home / "labsite"), secret="GPU_HOST_KEY",
        )  # fmt: skip


def far_run(laboratory: Laboratory, **asked: Any) -> Run:
    with laboratory.opened():
        return launch(laboratory, pool="gpu-host", **asked)


def test_a_run_on_another_host_is_collected_scored_and_settled_like_any_other(host: SSHHost) -> None:
    laboratory = far_laboratory(host)
    run = drive(laboratory, far_run(laboratory))
    assert run.status == "succeeded", run.reason
    with laboratory.opened():
        assert content(laboratory, run, "model.txt") == b"weights"
        assert run.evaluations.get().value == 0.75
        assert run.spent_gpu_ms > 0
        log = Artifact.objects.get(run=run, path__endswith="stdout.log")
        assert content(laboratory, run, log.path).startswith(b"on ")
    settled(laboratory)
    assert not list(host.home.glob("labsite/runs/*/lab-*")), "the run folder there is removed"


def test_a_host_that_is_away_changes_nothing_and_what_runs_there_is_taken_up_again(host: SSHHost) -> None:
    laboratory = far_laboratory(host, WAITS)
    run = far_run(laboratory)
    dispatch(laboratory)
    watch_only(laboratory)
    host.stop()
    watch(laboratory)
    with laboratory.opened():
        attempt = Attempt.objects.get(run=run)
        assert Run.objects.get(pk=run.pk).status == "running"
        seen = Watch.objects.get(attempt=attempt)
        assert seen.observed == "unknown"
        assert str(host.port) in seen.observed_reason
    host.start()
    (host.home / "labsite" / "runs" / laboratory.workspace.pk.hex / attempt.key / "go").touch()
    assert drive(laboratory, run).status == "succeeded"
    settled(laboratory)


def pressed(browser: Client) -> str:
    """What the pool's page says after its button was pressed."""
    assert browser.post("/workspaces/lab/pools/gpu-host/test/").status_code == 303
    return browser.get("/workspaces/lab/pools/gpu-host/").content.decode()


def test_the_page_of_the_pool_tests_the_connection_and_says_what_stands_in_the_way(host: SSHHost) -> None:
    laboratory = far_laboratory(host)
    browser: Client = client_of(laboratory.owner)
    answer = pressed(browser)
    assert f"127.0.0.1:{host.port} answers as {host.user}" in answer
    assert "isolation: " in answer
    page = browser.get("/workspaces/lab/pools/gpu-host/").content.decode()
    assert host.private_key.splitlines()[1] not in page
    host.stop()
    host.change_host_key()
    host.start()
    close_all()
    answer = pressed(browser)
    assert "cannot be reached" in answer
    assert "host key" in answer
    change_engine(actor=make_operator("second"), slug="gpu-host", host_key=host.pinned)
    answer = pressed(browser)
    assert "answers as" in answer


def test_a_key_that_is_revoked_opens_nothing_more_and_a_new_one_goes_on(host: SSHHost) -> None:
    laboratory = far_laboratory(host)
    run = far_run(laboratory)
    with laboratory.opened():
        revoke_secret(actor=laboratory.owner, secret=Secret.objects.get(name="GPU_HOST_KEY"), reason="lost laptop")
    dispatch(laboratory)
    with laboratory.opened():
        assert Run.objects.get(pk=run.pk).status == "failed"
        assert "was revoked" in Run.objects.get(pk=run.pk).reason
        create_secret(actor=laboratory.owner, name="OTHER_KEY", kind=Secret.Kind.SSH_KEY, value=host.private_key)
        change_pool(actor=laboratory.owner, pool=Pool.objects.get(slug="gpu-host"), secret="OTHER_KEY")
    assert drive(laboratory, far_run(laboratory)).status == "succeeded"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"login": ""}, "Name the account"),
        ({"login": "-oProxyCommand=x"}, "Name the account"),
        ({"folder": ""}, "Name the folder"),
        ({"folder": "../x"}, "path of letters"),
        ({"folder": "a;rm -rf /"}, "path of letters"),
        ({"secret": ""}, "Name the secret"),
        ({"secret": "HF_TOKEN"}, "no SSH key"),
        ({"secret": "NOBODY"}, "no secret NOBODY"),
        ({"engine": "local"}, "is this machine"),
    ],
)
def test_a_pool_that_could_not_work_is_refused_with_the_reason(values: dict[str, str], words: str) -> None:
    laboratory = make_laboratory()
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDDmM1Vd3yWRiNJ0gMWfVlhTKoM6eJ8U9mN6qBIJ0a2T"
    add_engine(actor=make_operator(), slug="far", kind=Engine.Kind.SSH, slots=4, host="far.example", host_key=key)
    with laboratory.opened():
        own = asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()
        create_secret(actor=laboratory.owner, name="FAR_KEY", kind=Secret.Kind.SSH_KEY, value=own)
        create_secret(actor=laboratory.owner, name="HF_TOKEN", value="a value of some length")
        asked = {"engine": "far", "login": "labpool", "folder": "~/runs", "secret": "FAR_KEY", **values}
        with pytest.raises(Refusal, match=words):
            bind_pool(actor=laboratory.owner, slug="far", slots=1, isolation=Pool.Isolation.NONE, **asked)  # type: ignore[arg-type]
        assert Pool.objects.count() == 1


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"host": ""}, "name or the address"),
        ({"host": "-oProxyCommand=x"}, "name or the address"),
        ({"host_key": ""}, "Without its host key"),
        ({"host_key": "ssh-ed25519 nonsense"}, "no public key"),
        ({"port": 70000}, "1 to 65535"),
        ({"kind": "cloud"}, "engines of the kinds"),
        ({"kind": "local", "host": "", "host_key": "", "jobs_url": "http://127.0.0.1:8265"}, "Only Ray"),
        ({"kind": "ray", "host": "", "host_key": "", "jobs_url": "http://user:pw@x/../"}, "Jobs API answers"),
        ({"kind": "local"}, "has no host"),
    ],
)
def test_an_engine_that_could_not_be_told_from_another_is_refused(values: dict[str, Any], words: str) -> None:
    asked: dict[str, Any] = {"kind": "ssh", "host": "far.example", "host_key": "ssh-ed25519 x", "port": 22, **values}
    with pytest.raises(Refusal, match=words):
        add_engine(actor=make_operator(), slug="far", slots=4, **asked)
    assert not Engine.objects.filter(slug="far").exists()
