"""Checks of how it was made, and that what was made is still there."""

from runs.checks.candidate import Candidate
from runs.eligibility import Fact, Link, Verdict
from runs.lifecycle import RunStatus
from workspaces.units import gpu_time, money, size

READ_AT_ONCE_BYTES = 256 * 2**20  # larger files are read back when they are put forward, not whenever somebody looks


def run_succeeded(candidate: Candidate) -> Fact:
    """Did the run that made it end as it should, and what did that cost against what was reserved for it?"""
    run = candidate.run
    limits, pool = run.frozen["limits"], run.frozen["pool"]
    evidence = (Link("run", run.public_id, run.name),)
    reserved = int(limits["gpu_ms"])
    share = f", {100 * run.spent_gpu_ms // reserved} % of it used" if reserved else ""
    cost = f"{gpu_time(run.spent_gpu_ms)} of {gpu_time(reserved)} reserved{share}"
    if limits.get("api_micros") or run.spent_api_micros:
        cost += (
            f"; {money(run.spent_api_micros, pool['currency'])} of {money(int(limits.get('api_micros') or 0), pool['currency'])} for APIs"
        )
    if run.status == RunStatus.SUCCEEDED:
        return Fact("run", "Run ended well", Verdict.PASS, run.get_status_display(), "succeeded", f"{cost}.", evidence)
    verdict = Verdict.FAIL if run.is_terminal else Verdict.UNKNOWN
    words = f"{run.reason or f'{run.name} is {run.get_status_display()}.'} {cost}."
    return Fact("run", "Run ended well", verdict, run.get_status_display(), "succeeded", words, evidence)


def file_is_whole(candidate: Candidate) -> Fact:
    """Is its file in the store, with the content that its row says, byte for byte?"""
    blob = candidate.artifact.blob
    name, required = "File is there and whole", f"SHA-256 {blob.sha256[:12]}…"
    link = (Link("artifact", candidate.artifact.public_id, candidate.artifact.name or candidate.artifact.path),)
    if candidate.artifact.going:
        found = "removed" if candidate.artifact.removed_at else "to be removed"
        return Fact("file", name, Verdict.FAIL, found, required, f"The artifact {candidate.artifact.going}.", link)
    if candidate.read is None:
        words = f"{size(blob.bytes)} are read back and hashed once it is put forward."
        return Fact("file", name, Verdict.UNKNOWN, "not read yet", required, words, link)
    if not candidate.read:
        return Fact("file", name, Verdict.FAIL, "missing", required, "The store has no such file.", link)
    if candidate.read != blob.sha256:
        words = "Its file was changed beside labsite: what lies in the store is not what the run left."
        return Fact("file", name, Verdict.FAIL, f"SHA-256 {candidate.read[:12]}…", required, words, link)
    return Fact("file", name, Verdict.PASS, size(blob.bytes), required, "Read back from the store and hashed.", link)
