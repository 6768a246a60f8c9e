"""Every page of runs renders for real, hostile and empty content; nothing a person or a run wrote becomes markup."""

import re
from typing import Any

import pytest
from django.urls import reverse

from runs.models import Run
from tests.factories_pages import (
    CJK,
    HOSTILE,
    LONG,
    RTL,
    add_artifact,
    add_attempt,
    add_line,
    add_series,
    client_of,
    copy_runs,
    score_runs,
    see,
    set_run,
)
from tests.factories_runs import Laboratory, launch, make_laboratory

TABS = ("overview", "log", "metrics", "files", "certificate", "cost", "audit")
PAGES = ("home", "run-list", "run-launch", "queue", "artifact-list")


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


@pytest.mark.parametrize("name", PAGES)
def test_empty_pages_say_the_next_step(laboratory: Laboratory, name: str) -> None:
    response = client_of(laboratory.owner).get(reverse(name, args=[laboratory.workspace.slug]))
    assert response.status_code == 200
    assert reverse("run-launch", args=["lab"]) in response.content.decode() or name == "artifact-list"


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize("name", [HOSTILE, LONG, RTL, CJK], ids=["markup", "long", "rtl", "cjk"])
def test_run_page_shows_what_was_written_as_text(laboratory: Laboratory, tab: str, name: str) -> None:
    with laboratory.opened():
        run = launch(laboratory, name=name, reason=name, parameters={})
        attempt = add_attempt(actor=laboratory.owner, run=run)
        see(attempt, observed="unknown", observed_reason=name, progress_done=3.0, progress_total=5.0, progress_text=name)
        set_run(actor=laboratory.owner, run=run, status="running", started_at=run.created_at)
        add_series(run, f"loss {name}", [0.5, float("nan"), 0.25])
        add_line(attempt, 1, "note", text=name)
        add_artifact(actor=laboratory.owner, run=run, path=f"outputs/{name}", content=b"x")
        score_runs(actor=laboratory.owner, scores={run: (0.81, 0.02)})
    response = client_of(laboratory.owner).get(reverse("run", args=["lab", run.public_id]) + f"?tab={tab}")
    body = response.content.decode()
    assert response.status_code == 200
    assert "<script>alert" not in body
    assert 'onload="x' not in body
    assert "not answering" in body


@pytest.mark.parametrize("name", PAGES)
def test_pages_with_rows_render(laboratory: Laboratory, name: str) -> None:
    with laboratory.opened():
        run = launch(laboratory, name=HOSTILE, reason=HOSTILE)
        made = copy_runs(actor=laboratory.owner, pattern=run, count=14, statuses=[status.value for status in Run.Status])
        score_runs(actor=laboratory.owner, scores={made[6]: (0.7, 0.01), made[7]: (float("nan"), None)})
        add_artifact(actor=laboratory.owner, run=run, path="outputs/model.json", content=b"{}")
    response = client_of(laboratory.owner).get(reverse(name, args=["lab"]))
    assert response.status_code == 200
    assert "<script>alert" not in response.content.decode()


ADDRESSES = ("", "runs/", "runs/launch/?benchmark=accuracy&agent=worker", "queue/", "artifacts/", *(f"runs/RUN/?tab={tab}" for tab in TABS))


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_template_names_what_is_not_there(laboratory: Laboratory, settings: Any, address: str) -> None:
    (engine,) = settings.TEMPLATES
    settings.TEMPLATES = [engine | {"OPTIONS": engine["OPTIONS"] | {"string_if_invalid": "MISSING(%s)"}}]
    with laboratory.opened():
        run = launch(laboratory)
        see(add_attempt(actor=laboratory.owner, run=run))
        add_series(run, "loss", [1.0, 0.5])
    body = client_of(laboratory.owner).get("/workspaces/lab/" + address.replace("RUN", run.public_id)).content.decode()
    main = body.partition("<main")[2].partition("</main>")[0]
    assert re.findall(r"MISSING\([^)]*\)", main) == []
