"""Reading the files of per-sample results that an attempt's scores name, in the store, before the run ends. Bounded, whatever they hold."""

from collections.abc import Iterable

from runs.commands.harvest import Collected, SamplesFile
from runs.models import Artifact, Attempt
from runs.pools.events import Score
from runs.sample_results import summarise
from workspaces import scope, store
from workspaces.models import Workspace

MAX_FILES = 20  # of one attempt; scores may share one


def samples_files(attempt: Attempt, scores: Iterable[Score], artifacts: Iterable[Collected]) -> dict[str, SamplesFile]:
    """By the path that the scores name. One that the attempt has not left is not in it."""
    paths = list(dict.fromkeys(score.samples_file for score in scores if score.samples_file))[:MAX_FILES]
    if not paths:
        return {}
    left = {entry.path: entry.sha256 for entry in artifacts}
    sent = dict(Artifact.objects.filter(run=attempt.run_id).values_list("path", "blob__sha256"))  # by the API, while it ran
    region = Workspace.objects.values_list("region", flat=True).get(pk=scope.current_id())
    found = {}
    for path in paths:
        names = (path.removeprefix("outputs/"), path)
        sha256 = next((place[name] for place in (left, sent) for name in names if name in place), None)
        if sha256 is not None and store.exists(region, scope.current_id(), sha256):
            found[path] = SamplesFile(sha256, summarise(store.open(region, scope.current_id(), sha256)).as_json())
    return found
