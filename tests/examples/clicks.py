"""Following links as a reader would: from the best score of a board down through the lineage, and what has to be found there.

What has to be found is asked of the rows by itself, not of the walk that the pages show.
"""

import re
from html import unescape

from runs.models import Artifact, Evaluation, Run
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory
from workspaces.models import Approval, ApprovalVote, DatasetPiece, DatasetVersion, User

MOST_PAGES = 400


def clicked_from_the_best(laboratory: Laboratory, benchmark: str) -> set[str]:
    """Every address that is reached from the benchmark's first score by links of lineage pages alone; each of them answers."""
    browser = client_of(laboratory.owner)
    here = f"/workspaces/{laboratory.workspace.slug}"

    def links(address: str) -> list[str]:
        answer = browser.get(address.partition("#")[0])
        assert answer.status_code == 200, address
        found = [unescape(link) for link in re.findall(r'href="([^"]+)"', answer.content.decode())]
        return [link if link.startswith("/") else address.partition("?")[0] + link for link in found if link[:1] in "/?"]

    [best, *_] = [link for link in links(f"{here}/benchmarks/{benchmark}/") if re.fullmatch(rf"{here}/evaluations/[^/?]+/", link)]
    [start] = {link for link in links(best) if link.startswith(best) and link.endswith("/lineage/")}
    asked, seen, reached = [start], {start}, set()
    while asked:
        assert len(seen) < MOST_PAGES, "the lineage of one score is endless"
        for link in links(asked.pop()):
            reached.add(link.partition("#")[0])
            up = "/lineage/" in link and "way=down" not in link and "prov.json" not in link
            if up and link not in seen:
                seen.add(link)
                asked.append(link)
    reached = {link for link in reached if link.startswith(here)}
    for link in sorted(reached):
        assert browser.get(link).status_code == 200, link
    return reached


def under(laboratory: Laboratory, score: Evaluation) -> set[str]:
    """The pages of every dataset version, run, code, person and decision that the score rests on."""
    here = f"/workspaces/{laboratory.workspace.slug}"
    runs: dict[str, Run] = {}
    versions: set[DatasetVersion] = set()
    waiting = {score.run_id} | ({score.subject_artifact.run_id} if score.subject_artifact else set())
    if score.contract.holdout_id:
        versions.add(DatasetVersion.objects.get(pk=score.contract.holdout_id))
    while waiting or any(not _is_known(version, runs) for version in versions):
        waiting |= {maker for version in versions for maker in _makers(version)} - {run.pk for run in runs.values()}
        for run in Run.objects.filter(pk__in=waiting).select_related("agent_version__agent", "requested_by"):
            runs[run.public_id] = run
            versions |= {entry.dataset_version for entry in run.inputs.exclude(dataset_version=None)}
            waiting |= set(
                Artifact.objects.filter(pk__in=run.inputs.exclude(artifact=None).values("artifact")).values_list("run", flat=True)
            )
        waiting -= {run.pk for run in runs.values()}
    found = [runs[name] for name in runs]
    asked = Approval.objects.filter(subject_id__in=[run.pk for run in found])
    people = User.objects.filter(
        pk__in=[
            *(run.requested_by_id for run in found),
            *(version.created_by_id for version in versions),
            *(run.agent_version.created_by_id for run in found),
            *asked.values_list("requested_by", flat=True),
            *ApprovalVote.objects.filter(approval__in=asked).values_list("person", flat=True),
        ]
    )
    return {
        *(f"{here}/runs/{name}/" for name in runs),
        *(f"{here}/datasets/{version.dataset.slug}/?version={version.number}" for version in versions),
        *(f"{here}/agents/{run.agent_version.agent.slug}/" for run in found),
        *(f"{here}/approvals/{request.public_id}/" for request in asked),
        *(f"{here}/sweeps/{run.sweep.public_id}/" for run in found if run.sweep is not None),
        *(f"{here}/runs/?person={person.username}" for person in people),
    }


def _makers(version: DatasetVersion) -> set[object]:
    pieces = DatasetPiece.objects.filter(window=version.dataset_id).values_list("made_by_run_id", flat=True)
    made = Artifact.objects.filter(pk=version.source_artifact_id).values_list("run", flat=True) if version.source_artifact_id else ()
    return {key for key in (*pieces, *made, version.made_by_run_id) if key is not None}


def _is_known(version: DatasetVersion, runs: dict[str, Run]) -> bool:
    return _makers(version) <= {run.pk for run in runs.values()}
