"""docs/api.md tells the truth: its commands run, in their order, against a served labsite; its table of scopes is whole."""

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from tests.factories import make_member
from tests.factories_registry import make_agent_version, make_benchmark, make_dataset_version
from tests.factories_runs import HOUR, Laboratory, dispatch, make_laboratory, watch
from tests.rules.routes import routes
from workspaces.access import Actor, Role
from workspaces.commands.limit import set_limit
from workspaces.commands.token import create_token
from workspaces.models import Limit, Unit

DOCUMENT = (Path(settings.BASE_DIR) / "docs" / "api.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = b"""
import json
with open("../events.jsonl", "a") as lines:
    lines.write(json.dumps({"type": "score", "benchmark": "medqa-holdout-accuracy", "metric": "accuracy", "value": 0.75}) + "\\n")
with open("../outputs/model.bin", "wb") as model:
    model.write(b"weights")
print("trained")
"""
SCHEMA = {"type": "object", "properties": {"epochs": {"type": "integer"}, "seconds_per_epoch": {"type": "number"}}}


def blocks(language: str) -> list[str]:
    return [body for found, body in BLOCK.findall(DOCUMENT) if found == language]


def scopes_shown(name: str) -> list[str]:
    """What the document's first block gives the token."""
    (block,) = blocks("")
    match = re.search(rf"^{name}=.*?--scopes ([\w:,]+)", block, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1].split(",")


@contextmanager
def at_work(laboratory: Laboratory) -> Iterator[None]:
    """Dispatch and watch all the while, as labsite's workers and clock do; what fails there fails the test."""
    ended = threading.Event()
    faults: list[BaseException] = []

    def work() -> None:
        try:
            while not ended.wait(0.2):
                dispatch(laboratory)
                watch(laboratory)
        except BaseException as fault:  # told below
            faults.append(fault)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(30)
    assert not faults, faults


@pytest.mark.django_db(transaction=True)
@pytest.mark.pool
@pytest.mark.skipif(shutil.which("curl") is None, reason="the document's commands want curl")
def test_every_command_of_the_document_runs(live_server: Any, tmp_path: Path) -> None:
    laboratory = make_laboratory("w2s-medqa")
    researcher, approver = make_member(laboratory.workspace, Role.RESEARCHER), make_member(laboratory.workspace, Role.APPROVER)
    with laboratory.opened():
        make_benchmark(laboratory.owner, "medqa-holdout-accuracy")
        make_dataset_version(laboratory.owner, "medqa_table_train")
        make_dataset_version(laboratory.owner, "medqa_table_validation", role="validation")
        make_agent_version(laboratory.owner, "weak-labeler-v3", code=CODE, wall_seconds=60, parameter_schema=SCHEMA)
        set_limit(actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, amount=HOUR, mode=Limit.Mode.APPROVAL, reason="start")
        holders = {"TOKEN": researcher, "APPROVER_TOKEN": approver, "ADMIN_TOKEN": laboratory.owner}
        tokens = {name: token_for(holder, scopes_shown(name)) for name, holder in holders.items()}
    script = "set -euo pipefail\n" + "\n".join(blocks("sh"))
    environment = {**os.environ, **tokens, "API": f"{live_server.url}/api/v1/workspaces/w2s-medqa", "no_proxy": "*"}
    assert len(blocks("sh")) >= 8
    with at_work(laboratory):
        done = subprocess.run(  # commands of our own document
            ["/bin/bash", "-xc", script], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, f"{done.stderr[-1500:]}\n{done.stdout[-1500:]}"


def token_for(holder: Actor, scopes: list[str]) -> str:
    return create_token(actor=holder, name="document", scopes=scopes)[1]


def test_the_table_of_scopes_names_every_kind_and_noun() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", DOCUMENT, re.MULTILINE))
    opened: dict[str, set[str]] = {}
    for route in routes():
        if route.is_api and route.is_in_workspace and route.door and "<run>/" not in route.path:  # those are of a run's own token
            noun = route.path.removeprefix("api/v1/workspaces/<workspace>").strip("/").partition("/")[0]
            opened.setdefault(str(route.door["kind"]), set()).add(noun)
    assert set(rows) == set(opened)
    for kind, nouns in opened.items():
        for noun in nouns - {""}:
            assert f"`{noun}`" in rows[kind], f"{noun} is opened by {kind}, which the table does not say"


@pytest.mark.parametrize(
    "noun", sorted({"queue", "certificate", "sweeps", "artifacts", "evaluations", "ledger", "approvals", "events", "shares"})
)
def test_every_group_of_routes_has_a_command(noun: str) -> None:
    assert noun in "\n".join(blocks("sh"))


def test_stated_limits_are_those_that_hold() -> None:
    assert settings.API_BODY_BYTES == 2**20 and "| body of a request | 1 MiB |" in DOCUMENT
    assert f"| page of a list | {settings.API_PAGE_SIZE_MAX} |" in DOCUMENT
    assert f"{settings.API_PAGE_SIZE} where left out" in DOCUMENT
