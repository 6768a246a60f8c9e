"""Does a pool answer? Page, list, home and API go by the newest word; and what it has at work that nobody here knows is told."""

import io
import json
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from runs.contact import STRANGERS_KEPT
from runs.jobs import lanes
from runs.jobs.orphans import find_orphans
from runs.models import PoolContact
from runs.pools.ssh_thread import close_all
from runs.queries.site import known_attempts
from tests.factories import make_member
from tests.factories_pages import add_attempt, client_of, see
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.runs.pools.ssh_host import SSHHost
from tests.runs.test_ssh_engine import far_laboratory
from workspaces import scope
from workspaces.models import AuditEvent, EventPayload, Installation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]


def find(laboratory: Laboratory) -> None:
    find_orphans(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    assert lanes.wait(30, lanes.Work.ORPHANS)


def used(laboratory: Laboratory, pool: str = "local", status: str = "ended") -> str:
    """A pool on which something has run; the key of that."""
    with laboratory.opened():
        run = launch(laboratory, pool=pool)
        ended_at = timezone.now() if status == "ended" else None
        return add_attempt(actor=laboratory.owner, run=run, status=status, ended_at=ended_at).key


def pages(laboratory: Laboratory, pool: str) -> list[str]:
    client = client_of(laboratory.owner)
    return [client.get(f"/workspaces/lab/{path}").content.decode() for path in (f"pools/{pool}/", "pools/", "")]


def told(laboratory: Laboratory, pool: str = "local") -> dict[str, Any]:
    answer: dict[str, Any] = client_of(laboratory.owner).get(f"/api/v1/workspaces/lab/pools/{pool}/state").json()
    return answer


@pytest.fixture
def host() -> Iterator[SSHHost]:
    found = SSHHost()
    yield found
    close_all()
    found.close()


def test_an_idle_pool_that_does_not_answer_is_nowhere_shown_as_ready(host: SSHHost) -> None:
    laboratory = far_laboratory(host)
    page, listed, _ = pages(laboratory, "gpu-host")
    assert "not asked yet" in page
    assert "not asked yet" in listed
    client_of(laboratory.owner).post("/workspaces/lab/pools/gpu-host/test/")  # makes the folder there
    used(laboratory, "gpu-host")
    find(laboratory)
    page, listed, home = pages(laboratory, "gpu-host")
    assert "last answered" in page
    assert "does not answer" not in page + listed + home
    assert (told(laboratory, "gpu-host")["takes_work"], told(laboratory, "gpu-host")["answers"]) == (True, True)

    host.stop()
    close_all()
    find(laboratory)
    with laboratory.opened():
        reason = PoolContact.objects.get(pool__slug="gpu-host").reason
    assert reason
    for shown in pages(laboratory, "gpu-host"):
        assert "does not answer" in shown
        assert "last answered" in shown
        assert reason[:40] in shown
    assert "1 of 2 pools take work" in pages(laboratory, "gpu-host")[1]
    state = told(laboratory, "gpu-host")
    assert (state["takes_work"], state["answers"], state["failure"], state["free"]) == (False, False, reason, 0)
    assert str(state["failed_at"]) > str(state["last_contact_at"])

    host.start()
    client_of(laboratory.owner).post("/workspaces/lab/pools/gpu-host/test/")  # the next who asks may be a person
    assert "does not answer" not in "".join(pages(laboratory, "gpu-host"))
    assert (told(laboratory, "gpu-host")["answers"], told(laboratory, "gpu-host")["failure"]) == (True, "")


def test_a_failed_test_of_a_connection_stays_on_the_page(host: SSHHost) -> None:
    laboratory = far_laboratory(host)
    host.stop()
    client = client_of(laboratory.owner)
    assert client.post("/api/v1/workspaces/lab/pools/gpu-host/test").json()["is_reachable"] is False
    page = client.get("/workspaces/lab/pools/gpu-host/").content.decode()
    assert "has never answered; asked" in page


def test_a_watch_that_had_an_answer_since_counts() -> None:
    """Whatever was said before by whoever asked, the newest word holds."""
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory)
        watch = see(add_attempt(actor=laboratory.owner, run=run))
        PoolContact.objects.create(pool=run.pool, failed_at=timezone.now(), reason="away")
    assert told(laboratory)["answers"] is False
    with laboratory.opened():
        watch.observed_at = timezone.now()
        watch.save()
    assert told(laboratory)["answers"] is True


def test_work_that_nobody_here_knows_is_told_and_left_alone() -> None:
    laboratory, other = make_laboratory(), make_laboratory("other")
    known, others = used(laboratory), used(other)
    epoch = Installation.objects.get(is_current=True).epoch
    ours, theirs = f"lab-{epoch}-{uuid.uuid4().hex}", f"lab-0therone-{uuid.uuid4().hex}"
    here = Path(settings.LABSITE_RUNS) / "runs" / laboratory.workspace.pk.hex
    for key in (known, others, ours, theirs, "lab-<b>"):  # a scheduler lists what is another workspace's too
        (here / key / "state").mkdir(parents=True, exist_ok=True)
    find(laboratory)
    first = told(laboratory)
    strangers = {one["key"]: one for one in first["strangers"]}
    assert {key: one["is_ours"] for key, one in strangers.items()} == {ours: True, theirs: False}
    assert first["stranger_count"] == 2
    page = client_of(laboratory.owner).get("/workspaces/lab/pools/local/").content.decode()
    assert "Unknown to labsite" in page
    assert ours in page
    assert theirs in page
    assert not [path for path in (ours, theirs) if list((here / path / "state").iterdir())], "nothing is ended by itself"
    out = io.StringIO()
    with suppress(SystemExit):
        call_command("doctor", as_json=True, stdout=out)
    (pools,) = [finding for finding in json.loads(out.getvalue())["findings"] if finding["check"] == "pools" and finding["warnings"]]
    assert (pools["workspace"], pools["faults"]) == ("lab", [])
    assert "local has 2 pieces of work that no run explains" in pools["warnings"][0]

    for number in range(STRANGERS_KEPT):
        (here / f"lab-{epoch}-{number:032x}").mkdir()
    find(laboratory)
    again = told(laboratory)
    kept = {one["key"]: one["since"] for one in again["strangers"]}
    assert (len(kept), again["stranger_count"]) == (STRANGERS_KEPT, STRANGERS_KEPT + 2)
    assert (kept[ours], kept[theirs]) == (strangers[ours]["since"], strangers[theirs]["since"]), "the oldest stay"
    for folder in (here / ours, here / theirs):
        (folder / "state").rmdir()
        folder.rmdir()
    find(laboratory)
    assert ours not in json.dumps(told(laboratory))


def test_whose_an_attempt_is_can_be_asked_of_a_key_and_in_a_site_scope_only() -> None:
    laboratory, other = make_laboratory(), make_laboratory("other")
    own, others = used(laboratory), used(other)
    with laboratory.opened(), pytest.raises(scope.ScopeError):
        known_attempts([others])
    with scope.open_site("a test asks"):
        assert known_attempts([own, others, "lab-%", "' OR true --"]) == {own, others}
        assert known_attempts([]) == set()


def test_what_an_older_epoch_left_at_work_is_told_once_it_has_ended_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs.jobs.orphans.SETTLED_SECONDS", 0)
    laboratory = make_laboratory()
    at_work, ended = used(laboratory, status="running"), used(laboratory)
    for key in (at_work, ended):
        (Path(settings.LABSITE_RUNS) / "runs" / laboratory.workspace.pk.hex / key).mkdir(parents=True)
    find(laboratory)
    (stranger,) = told(laboratory)["strangers"]
    assert (stranger["key"], stranger["is_ours"]) == (ended, False)


def test_an_operator_ends_unknown_work_of_ours_with_a_reason() -> None:
    laboratory = make_laboratory()
    epoch = Installation.objects.get(is_current=True).epoch
    used(laboratory)
    ours, again, theirs = f"lab-{epoch}-{uuid.uuid4().hex}", f"lab-{epoch}-{uuid.uuid4().hex}", f"lab-0therone-{uuid.uuid4().hex}"
    here = Path(settings.LABSITE_RUNS) / "runs" / laboratory.workspace.pk.hex
    for key in (ours, again, theirs):
        (here / key / "state").mkdir(parents=True)
    find(laboratory)
    client, page, api = client_of(laboratory.owner), "/workspaces/lab/pools/local/", "/api/v1/workspaces/lab/pools/local/end-unknown"
    assert f"end-unknown/?key={ours}" in client.get(page).content.decode()
    assert f"end-unknown/?key={theirs}" not in client.get(page).content.decode()
    assert ours in client.get(f"{page}end-unknown/?key={ours}").content.decode()
    assert client.post(f"{page}end-unknown/", {"key": ours, "reason": ""}).status_code == 422
    for key in (theirs, f"lab-{epoch}-{uuid.uuid4().hex}"):
        assert client.post(api, {"key": key, "reason": "Left over"}, content_type="application/json").status_code == 409
    assert not list((here / theirs / "state").iterdir())
    assert client.post(f"{page}end-unknown/", {"key": ours, "reason": "Left over"}).status_code == 303
    assert client.post(api, {"key": again, "reason": "Left over"}, content_type="application/json").json()["is_told"] is True
    assert [(here / key / "state" / "exit.json").exists() for key in (ours, again)] == [True, True]
    with laboratory.opened():
        events = AuditEvent.objects.filter(verb="pool.stranger_ended").order_by("sequence")
        assert [event.subject_label for event in events] == ["local", "local"]
        said = EventPayload.objects.filter(event__in=events).order_by("event__sequence")
        assert [(one.body["reason"], one.body["details"]["key"]) for one in said] == [("Left over", ours), ("Left over", again)]
    find(laboratory)
    assert [one["key"] for one in told(laboratory)["strangers"]] == [theirs]
    researcher = client_of(make_member(laboratory.workspace, "researcher"))
    assert researcher.post(api, {"key": again, "reason": "Mine"}, content_type="application/json").status_code == 403
