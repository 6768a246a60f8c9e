"""The story of a score, lived by real runs: games, a checkpoint learned from a window of them, and a judge's word on the checkpoint."""

import uuid
from typing import Any

from labsite.owner import as_owner
from runs.models import Artifact, Run, RunInput
from tests.factories_registry import make_agent_version
from tests.factories_runs import HOUR, Laboratory, drive, launch, make_laboratory
from workspaces import scope
from workspaces.commands.dataset import create_dataset
from workspaces.commands.live_dataset import make_live
from workspaces.models import Dataset

TELL = b"""
import json
def tell(**body):
    with open("../events.jsonl", "a") as lines:
        lines.write(json.dumps(body) + "\\n")
"""
PLAYER = (
    TELL
    + b"""
for game in range(2):
    with open(f"../outputs/game-{game}.sgf", "w") as file:
        file.write(f"(;GM[1]C[{game}])")
    tell(type="dataset", path=f"outputs/game-{game}.sgf", name="self-play", records=2)
"""
)
TRAINER = (
    TELL
    + b"""
with open("../outputs/checkpoint.npz", "w") as file:
    file.write("weights")
tell(type="artifact", path="outputs/checkpoint.npz", name="checkpoint <b>", kind="checkpoint", metadata={})
"""
)
JUDGE = (
    TELL
    + b"""
tell(type="score", benchmark="accuracy", metric="accuracy", value=0.75, stderr=0.02, samples=200)
"""
)


def make_story_laboratory() -> Laboratory:
    """Agents `worker` (plays), `trainer` and `judge`; live dataset `self-play`, cut at four records."""
    made = make_laboratory(code=PLAYER)
    with made.opened():
        dataset = create_dataset(actor=made.owner, slug="self-play", name="Self-play", origin=Dataset.Origin.SELF_PLAY)
        make_live(actor=made.owner, dataset=dataset, window_records=4)
        make_agent_version(made.owner, "trainer", code=TRAINER, wall_seconds=60)
        make_agent_version(made.owner, "judge", code=JUDGE, kind="evaluate", wall_seconds=60)
    return made


def live_story(laboratory: Laboratory) -> dict[str, Run]:
    """The three runs by name: player, trainer, judge."""
    runs: dict[str, Run] = {}
    plans: dict[str, dict[str, Any]] = {
        "player": {},
        "trainer": {"agent": "trainer", "datasets": ("self-play-window-1",)},
        "judge": {"agent": "judge"},
    }
    for name, asked in plans.items():
        with laboratory.opened():
            artifacts = {"artifacts": (Artifact.objects.get(kind="checkpoint").pk.hex,)} if name == "judge" else {}
            run = launch(laboratory, gpu_ms=HOUR, name=f"{name} <i>", **asked, **artifacts)
        runs[name] = drive(laboratory, run)
        assert runs[name].status == "succeeded", runs[name].reason
    return runs


def chain_of(laboratory: Laboratory, pattern: Run, length: int) -> list[uuid.UUID]:
    """Runs, each of which has read what the one before it made; kept as their owner would, without commands."""
    keys = [uuid.uuid4() for _ in range(length)]
    with as_owner(), scope.open_workspace(laboratory.workspace.pk):
        made = Artifact.objects.filter(run=pattern).earliest("created_at")
        Run.objects.bulk_create([_copied(pattern, key, number) for number, key in enumerate(keys)])
        artifacts = [Artifact(run_id=key, path="x", name="x", blob_id=made.blob_id) for key in keys]
        Artifact.objects.bulk_create(artifacts)
        pairs = zip(keys[1:], artifacts, strict=False)
        RunInput.objects.bulk_create(
            [RunInput(run_id=key, slug="x", kind="artifact", artifact=before, sha256="0" * 64) for key, before in pairs]
        )
    return keys


def _copied(pattern: Run, key: uuid.UUID, number: int) -> Run:
    fields = {field.attname: getattr(pattern, field.attname) for field in Run._meta.concrete_fields}
    return Run(**{**fields, "id": key, "number": 1_000 + number, "name": f"link {number}"})
