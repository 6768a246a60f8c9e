"""What a check of overlap leaves behind, and what people say of a version. The checking itself is a job (runs/jobs/overlap.py)."""

from dataclasses import dataclass, field
from typing import Any

from django.db.models import Max, Q
from django.utils import timezone

from runs import queue
from runs.models import OverlapCheck, RecordIndex, Ruling
from runs.overlap.method import METHOD
from runs.queries.verdict import State, verdict_of
from workspaces import scope
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.blob import StoredFile, keep_blobs, lock_blob, release_blob
from workspaces.models import DatasetVersion
from workspaces.verbs import Verb

CHECKED = OverlapCheck.Verdict


@dataclass(frozen=True, slots=True)
class Finding:
    """What comparing a version with a holdout gave; `fault` says why it could not be compared."""

    exact: int = 0
    near: int = 0
    is_least: bool = False
    pairs: list[dict[str, Any]] = field(default_factory=list)
    fault: str = ""
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.exact:
            return CHECKED.CONTAMINATED
        return CHECKED.UNKNOWN if self.fault else CHECKED.SUSPICIOUS if self.near else CHECKED.CLEAN


@command(Verb.DATASET_VERSION_INDEXED, needs=None, by_system=True)
def record_index(
    event: Draft, *, actor: Actor, version: DatasetVersion, file: StoredFile | None, records: int = 0, whole_files: int = 0, fault: str = ""
) -> RecordIndex:
    """Keep the hashes of a version's records, a file of the store; None where it could not be read at all, and `fault` says why."""
    blob = (
        keep_blobs(event, [file], is_limited=False)[file.sha256] if file is not None else None
    )  # a full store keeps nobody from being checked
    values: dict[str, Any] = {"method": METHOD, "blob": blob, "records": records, "whole_files": whole_files, "fault": fault[:1000]}
    index = RecordIndex.objects.select_for_update(no_key=True).filter(version=version).first()
    if index is None:
        index = RecordIndex(version=version, **values)
        index.save(force_insert=True)
        event.created(index)
    else:
        old = index.blob_id
        event.change(index, **values)
        if old is not None:
            release_blob(event, lock_blob(old))  # counted no more, unless it is the same; the file goes with the next tidying up
    event.about = version
    event.details |= {"records": records, "is_whole": not fault}  # no names of files: the record may travel farther than they
    return index


@command(Verb.OVERLAP_CHECKED, needs=None, by_system=True)
def record_overlap(event: Draft, *, actor: Actor, version: DatasetVersion, holdout: DatasetVersion, finding: Finding) -> OverlapCheck:
    """Keep what comparing a version with a holdout gave, in place of what was found before; a comparison that came to nothing refutes no
    contamination that was found. Refuses where one of them is to be read anew by now: somebody has asked for that since, and the pair is compared
    again after it."""
    sides = RecordIndex.objects.filter(version__in=(version, holdout), method=METHOD)
    if len(sides.select_for_update(no_key=True).order_by("pk")) < 2:
        raise Refusal(f"{version.label} and {holdout.label} are compared once both have been read.")
    values: dict[str, Any] = {
        "method": METHOD,
        "verdict": finding.verdict,
        "exact": finding.exact,
        "near": finding.near,
        "is_least": finding.is_least,
        "reason": " ".join(filter(None, (finding.fault, finding.note)))[:1000],
        "pairs": finding.pairs,
        "checked_at": timezone.now(),
    }
    check = OverlapCheck.objects.select_for_update(no_key=True).filter(version=version, holdout=holdout).first()
    if check is None:
        check = OverlapCheck(version=version, holdout=holdout, **values)
        check.save(force_insert=True)
        event.created(check)
    else:
        event.changing(check)
        if check.verdict == CHECKED.CONTAMINATED and finding.verdict == CHECKED.UNKNOWN:
            kept = {name: getattr(check, name) for name in ("verdict", "exact", "near", "is_least", "pairs")}
            values |= kept | {"reason": f"As found before; compared anew, it came to nothing: {values['reason']}"[:1000]}
        for name, value in values.items():
            setattr(check, name, value)
        check.save(update_fields=list(values))
    event.about = check
    event.details |= {name: values[name] for name in ("verdict", "exact", "near")}
    return check


@command(Verb.OVERLAP_CHECK_ASKED, needs=Permission.IMPORT_DATA, kind=Kind.DATASET)
def ask_overlap_check(event: Draft, *, actor: Actor, version: DatasetVersion) -> DatasetVersion:
    """Let a version be read and compared anew; until that is done it is unchecked, and what was found before goes on suspending what rests on it.
    Asked twice, it is done once."""
    indexes = list(RecordIndex.objects.select_for_update(no_key=True).filter(version=version).select_related("version__dataset"))
    checks = list(
        OverlapCheck.objects.filter(Q(version=version) | Q(holdout=version)).order_by("pk").select_related("version__dataset", "holdout__dataset")
        .select_for_update(no_key=True, of=("self",))
    )  # fmt: skip
    event.changing(*(index for index in indexes if index.method), *(check for check in checks if check.method))
    RecordIndex.objects.filter(pk__in=[row.pk for row in indexes]).update(method=0)
    OverlapCheck.objects.filter(pk__in=[row.pk for row in checks]).update(method=0)
    event.about = version
    event.details["checks"] = len(checks)
    queue.ring("check_overlap", subject=scope.current_id())
    return version


@command(Verb.VERDICT_OVERRULED, needs=Permission.APPROVE, kind=Kind.DATASET)
def overrule_verdict(event: Draft, *, actor: Actor, version: DatasetVersion, verdict: str, reason: str) -> Ruling:
    """Set a person's word against what the checks say, which stays visible. It holds as long as they say the same; empty lets them speak again."""
    if verdict and verdict not in CHECKED.values:
        raise Refusal(f"A verdict is one of {', '.join(CHECKED.values)}.", field="verdict")
    version = _locked(version)
    known = verdict_of(version)
    if verdict and known.checked == State.UNCHECKED:
        raise Refusal(
            f"There is no verdict to overrule yet: {known.checked_reason[0].lower()}{known.checked_reason[1:]} Wait for the check."
        )
    if verdict == known.checked:
        raise Refusal(f"This is what the checks say already: {verdict}.", field="verdict")
    if not verdict and known.ruling is None and known.waiting is None:
        raise Refusal("No person's word stands against the checks; there is nothing to take back.")
    event.details |= {"verdict": verdict or "as the checks say", "overruled": known.checked, "found": known.said_words}
    return _rule(
        event, actor, version, reason, about=Ruling.About.VERDICT, verdict=verdict, overruled=known.checked if verdict else "", said=known.said
    )  # fmt: skip


@command(Verb.DATASET_VERSION_REUSE_SET, needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET)
def set_reusable(event: Draft, *, actor: Actor, version: DatasetVersion, is_reusable: bool, reason: str) -> Ruling:
    """Say whether a version may be used elsewhere. Nobody says so of one that is contaminated."""
    version = _locked(version)
    known = verdict_of(version)
    if is_reusable and known.is_contaminated:
        way_out = "Wait for the check" if known.checked == State.UNCHECKED else "Overrule that first"
        raise Refusal(
            f"It is contaminated: {known.contaminated} {way_out}, or upload a version without those records.", field="is_reusable"
        )
    event.details["is_reusable"] = is_reusable
    return _rule(event, actor, version, reason, about=Ruling.About.REUSE, is_reusable=is_reusable)


def _rule(event: Draft, actor: Actor, version: DatasetVersion, reason: str, **values: Any) -> Ruling:
    given = reason.strip()[:1000]
    if not given:
        raise Refusal("Say why; others will read it.", field="reason")
    if actor.user is None:
        raise Refusal("A person says so, who answers for it.")
    number = (Ruling.objects.filter(version=version).aggregate(last=Max("number"))["last"] or 0) + 1
    ruling = Ruling(version=version, number=number, reason=given, ruled_by=actor.user, **values)
    ruling.save(force_insert=True)
    event.created(ruling)
    event.about = version
    event.reason = given
    return ruling


def _locked(version: DatasetVersion) -> DatasetVersion:
    """One ruling on a version at a time."""
    return DatasetVersion.objects.select_for_update(no_key=True, of=("self",)).select_related("dataset").get(pk=version.pk)
