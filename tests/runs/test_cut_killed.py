"""A window whose cutting is killed: no half of it is there, every piece waits still or stands in it, and the next window has the next number."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as configured

from runs.models import Run
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.access import Actor
from workspaces.audit import Draft, command
from workspaces.commands.blob import keep_blobs, receive_file
from workspaces.commands.dataset import create_dataset
from workspaces.commands.live_dataset import Piece, cut_window, grow, make_live
from workspaces.models import AuditEvent, Dataset, DatasetFile, DatasetPiece
from workspaces.queries.chain import verify_chain
from workspaces.verbs import Verb

pytestmark = pytest.mark.django_db(transaction=True)

KILLED = """
import os, signal, sys, uuid
import django
django.setup()
from workspaces import scope
from workspaces.access import Actor
from workspaces.commands import live_dataset as commands
from workspaces.models import Dataset, User
point, whole = sys.argv[2], commands.cut
def die(*given, **more):
    os.kill(os.getpid(), signal.SIGKILL)
if point == "inside":
    commands.cut = lambda *given, **more: (whole(*given, **more), die())
with scope.open_workspace(uuid.UUID(hex=sys.argv[1])):
    commands.cut_window(actor=Actor.of(User.objects.get(username="lab-owner")), dataset=Dataset.objects.get(slug="self-play"))
die()
"""


@command(Verb.DATASET_CHANGED, needs=None, public_reason="a test")
def bring(event: Draft, *, actor: Actor, dataset: Dataset, run: Run, names: list[str]) -> None:
    assert actor.user is not None
    stored = [receive_file(name, [name.encode()]) for name in names]
    blobs = keep_blobs(event, stored)
    grow(event, dataset=dataset, pieces=[Piece(one.path, blobs[one.sha256], 3) for one in stored], run_id=run.pk, by=actor.user)


@pytest.fixture
def laboratory(settings: Any, tmp_path: Path) -> Laboratory:
    settings.LABSITE_REGIONS = {"local": tmp_path / "store"}
    made = make_laboratory()
    with made.opened():
        dataset = create_dataset(actor=made.owner, slug="self-play", origin=Dataset.Origin.SELF_PLAY)
        make_live(actor=made.owner, dataset=dataset)
        bring(actor=made.owner, dataset=dataset, run=launch(made), names=["a.sgf", "b.sgf"])
    return made


def killed(laboratory: Laboratory, point: str) -> None:
    program = "from pathlib import Path\nfrom django.conf import settings\n"
    program += f"settings.DATABASES['default']['NAME'] = {configured.DATABASES['default']['NAME']!r}\n"
    program += f"settings.LABSITE_REGIONS = {{'local': Path({str(configured.LABSITE_REGIONS['local'])!r})}}\n"
    done = subprocess.run(
        [sys.executable, "-c", program + KILLED, laboratory.workspace.pk.hex, point],
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "labsite.settings"}, cwd=configured.BASE_DIR, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == -9, done.stderr[-1000:]


def waiting() -> list[str]:
    return list(DatasetPiece.objects.filter(window=None).order_by("number").values_list("path", flat=True))


def test_killed_before_it_was_kept_every_piece_waits_still_and_is_cut_once(laboratory: Laboratory) -> None:
    killed(laboratory, "inside")
    with laboratory.opened():
        assert (waiting(), Dataset.objects.filter(slug__startswith="self-play-window").count()) == (["a.sgf", "b.sgf"], 0)
        assert not AuditEvent.objects.filter(verb="dataset.window_cut").exists()
        window = cut_window(actor=laboratory.owner, dataset=Dataset.objects.get(slug="self-play"))
        assert (window.slug, waiting(), DatasetFile.objects.filter(version__dataset=window).count()) == ("self-play-window-1", [], 2)
        assert verify_chain().fault == ""


def test_killed_after_it_was_kept_it_is_whole_and_what_comes_next_is_the_next_window(laboratory: Laboratory) -> None:
    killed(laboratory, "after")
    with laboratory.opened():
        window = Dataset.objects.get(slug="self-play-window-1")
        assert (waiting(), DatasetFile.objects.filter(version__dataset=window).count()) == ([], 2)
        dataset = Dataset.objects.get(slug="self-play")
        bring(actor=laboratory.owner, dataset=dataset, run=Run.objects.get(), names=["c.sgf"])
        assert cut_window(actor=laboratory.owner, dataset=dataset).slug == "self-play-window-2"
        assert verify_chain().fault == ""
