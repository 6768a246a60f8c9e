"""The record in sentences: verb -> what happened, in words (design: actor verb subject). A rule test holds that every verb has one.

Templates name `actor`, `subject` and words that the event's details hold; whatever an erased payload took away reads as an ellipsis.
"""

from collections import defaultdict
from typing import Any

from workspaces.models import AuditEvent
from workspaces.verbs import Verb

SENTENCES: dict[Verb, str] = {
    Verb.WORKSPACE_CREATED: "{actor} created the workspace {subject}",
    Verb.WORKSPACE_CONFIGURED: "{actor} changed settings of {subject}",
    Verb.WORKSPACE_ACTIVATED: "{actor} opened {subject} for launches",
    Verb.WORKSPACE_PRIORITY_LIMIT_SET: "{actor} set up to which priority runs of {subject} need no approval",
    Verb.WORKSPACE_ARCHIVED: "{actor} archived {subject}",
    Verb.WORKSPACE_UNARCHIVED: "{actor} took {subject} out of the archive",
    Verb.WORKSPACE_EXPORT_ASKED: "{actor} asked for an export of {subject}",
    Verb.WORKSPACE_EXPORT_BEGUN: "{actor} began an export of {subject}",
    Verb.WORKSPACE_EXPORTED: "{actor} made an export of {subject}",
    Verb.WORKSPACE_EXPORT_FAILED: "an export of {subject} failed",
    Verb.WORKSPACE_EXPORT_DOWNLOADED: "{actor} downloaded an export of {subject}",
    Verb.WORKSPACE_EXPORT_REMOVED: "{actor} removed an export of {subject}",
    Verb.OBJECTIVE_SET: "{actor} set the objective {subject}",
    Verb.DECLARATION_APPLIED: "{actor} applied a declaration to {subject}",
    Verb.MEMBER_ADDED: "{actor} let {subject} in as {role}",
    Verb.MEMBER_CHANGED: "{actor} changed the role of {subject}",
    Verb.MEMBER_REMOVED: "{actor} ended the membership of {subject}",
    Verb.INVITATION_SENT: "{actor} invited {subject} as {role}",
    Verb.INVITATION_REVOKED: "{actor} revoked the invitation of {subject}",
    Verb.INVITATION_ACCEPTED: "{actor} accepted the invitation of {subject}",
    Verb.TOKEN_CREATED: "{actor} made the token {subject} for {holder}",
    Verb.TOKEN_REVOKED: "{actor} revoked the token {subject}",
    Verb.BENCHMARK_CREATED: "{actor} created the benchmark {subject}",
    Verb.BENCHMARK_CHANGED: "{actor} changed the benchmark {subject}",
    Verb.CONTRACT_PUBLISHED: "{actor} published the contract of {subject}",
    Verb.BENCHMARK_IMPORTED: "{actor} imported the benchmark {subject}",
    Verb.CONTRACT_TAKEN_OVER: "{actor} took over what the source of {subject} says",
    Verb.BENCHMARK_SOURCE_SEEN: "{actor} saw what became of the source of {subject}",
    Verb.CONTRACT_CHECK_SET: "{actor} set up {subject}",
    Verb.CONTRACT_CHECK_BEGUN: "{actor} began {subject}",
    Verb.CONTRACT_CHECKED: "{actor} concluded {subject}",
    Verb.CONTRACT_CHECK_ENDED: "{actor} ended {subject}",
    Verb.DATASET_CREATED: "{actor} created the dataset {subject}",
    Verb.DATASET_CHANGED: "{actor} changed the dataset {subject}",
    Verb.DATASET_EGRESS_SET: "{actor} set what may leave with the dataset {subject}",
    Verb.DATASET_ORIGIN_SET: "{actor} said where the dataset {subject} is from",
    Verb.DATASET_VERSION_IMPORTED: "{actor} imported {subject}",
    Verb.DATASET_IMPORT_ASKED: "{actor} asked for an import into the dataset {subject}",
    Verb.DATASET_IMPORT_BEGUN: "{actor} began an import into the dataset {subject}",
    Verb.DATASET_IMPORT_FAILED: "an import into the dataset {subject} failed",
    Verb.DATASET_WINDOW_CUT: "{actor} cut a window of the dataset {subject}",
    Verb.DATASET_VERSION_INDEXED: "read the records of {subject} for comparing",
    Verb.DATASET_VERSION_REUSE_SET: "{actor} said whether {subject} may be used elsewhere",
    Verb.OVERLAP_CHECK_ASKED: "{actor} asked to compare {subject} with the holdouts anew",
    Verb.OVERLAP_CHECKED: "compared {subject}: {verdict}",
    Verb.VERDICT_OVERRULED: "{actor} overruled the verdict on {subject}: {verdict}",
    Verb.AGENT_CREATED: "{actor} created the agent {subject}",
    Verb.AGENT_CHANGED: "{actor} changed the agent {subject}",
    Verb.AGENT_VERSION_PUBLISHED: "{actor} published {subject}",
    Verb.POOL_BOUND: "{actor} bound the pool {subject}",
    Verb.POOL_CHANGED: "{actor} changed the pool {subject}",
    Verb.POOL_OPENED: "{actor} opened the pool {subject} for new work",
    Verb.POOL_UNBOUND: "{actor} took the pool {subject} away",
    Verb.SECRET_CREATED: "{actor} made the secret {subject}",
    Verb.SECRET_CHANGED: "{actor} changed who may read the secret {subject}, or what it is for",
    Verb.SECRET_ROTATED: "{actor} replaced the value of the secret {subject}",
    Verb.SECRET_REVOKED: "{actor} revoked the secret {subject}",
    Verb.DATA_KEY_REWRAPPED: "{actor} wrapped the workspace's data key anew",
    Verb.LIMIT_SET: "{actor} set the budget limit {subject}",
    Verb.LIMIT_REMOVED: "{actor} removed the budget limit {subject}",
    Verb.LEDGER_RECOUNTED: "{actor} counted the ledger anew from its entries",
    Verb.LEDGER_CORRECTED: "{actor} set balances of the ledger to what their entries say",
    Verb.SPEND_ENTERED: "{actor} entered API spend: {subject}",
    Verb.SPEND_CORRECTED: "{actor} took an entry of API spend back: {subject}",
    Verb.APPROVAL_GIVEN: "{actor} approved {subject}",
    Verb.APPROVAL_REFUSED: "{actor} refused to approve {subject}",
    Verb.APPROVAL_EXPIRED: "the request {subject} expired undecided",
    Verb.APPROVAL_VOIDED: "{actor} withdrew the request {subject}",
    Verb.SHARE_GRANTED: "{actor} shared {subject}",
    Verb.SHARE_REVOKED: "{actor} ended the share of {subject}",
    Verb.SHARE_READ: "{actor} read {subject} through a share",
    Verb.LAUNCH_ADMITTED: "{actor} launched {subject}",
    Verb.LAUNCH_HELD: "{actor} asked for {subject}, which waits for approval",
    Verb.LAUNCH_REFUSED: "{actor} asked for a run and was refused: {subject}",
    Verb.SWEEP_CREATED: "{actor} asked for the sweep {subject}",
    Verb.SWEEP_STOPPED: "{actor} stopped the sweep {subject}",
    Verb.SWEEP_ENDED: "every run of the sweep {subject} has ended",
    Verb.RUN_CANCEL_ASKED: "{actor} asked to cancel {subject}",
    Verb.RUN_CANCELLED: "{actor} cancelled {subject}",
    Verb.RUN_MANY_CANCEL_ASKED: "{actor} asked to cancel {count} runs, the first of them {subject}",
    Verb.RUN_MANY_CANCELLED: "{count} runs that had not started were cancelled, the first of them {subject}",
    Verb.RUN_PRIORITY_SET: "{actor} changed the priority of {subject}",
    Verb.ARTIFACT_KEPT_UNTIL: "{actor} changed until when the artifact {subject} is kept",
    Verb.ARTIFACT_DELETED: "{actor} deleted the artifact {subject}; it can be restored until its file is removed",
    Verb.ARTIFACT_RESTORED: "{actor} restored the artifact {subject}",
    Verb.ARTIFACT_REMOVED: "{actor} removed the file of the artifact {subject}",
    Verb.WORKSPACE_ARTIFACT_DAYS_SET: "{actor} set for how long artifacts of {subject} are kept",
    Verb.WORKSPACE_FILES_RECONCILED: "{actor} compared the stored files of {subject} with what they should be",
    Verb.PROMOTION_PROPOSED: "{actor} put an artifact forward as {subject}",
    Verb.PROMOTION_DECIDED: "{actor} promoted {artifact} as {subject}",
    Verb.PROMOTION_WITHDRAWN: "{actor} withdrew {subject}",
    Verb.RUN_PRIORITY_ASKED: "{actor} asked for priority {priority} for {subject}, which waits for approval",
    Verb.RUN_MOVED: "{actor} moved {subject} from {from} to {to}",
    Verb.RUN_MOVE_REFUSED: "{actor} tried to move {subject} from {from} to {to}, and the limits refused it",
    Verb.RUN_REQUEUED: "{actor} put {subject} back into the queue",
    Verb.RUN_ENDED: "{subject} ended",
    Verb.RUN_OVERRAN: "{subject} ended and had used more than was reserved for it",
    Verb.RUN_DECLARED_LOST: "{actor} declared {subject} lost, whose pool did not answer",
    Verb.QUEUE_HELD: "{actor} held the queue",
    Verb.QUEUE_RELEASED: "{actor} released the queue",
    Verb.WITHDRAWAL_MADE: "{actor} withdrew {subject} and what rests on it",
    Verb.WITHDRAWAL_UNDONE: "{actor} took back the withdrawal of {subject}",
    Verb.FAILURE_ACKNOWLEDGED: "{actor} took note of why runs fail: {subject}",
    Verb.RUN_REVIEWED: "{actor} has seen {subject} and what was found of it",
    Verb.REVIEW_TAKEN_BACK: "{actor} took back the review of {subject}",
    Verb.ATTEMPT_STARTED: "{actor} started an attempt at {subject}",
    Verb.ATTEMPT_RUNNING: "{subject} is running",
    Verb.ATTEMPT_ENDED: "the program of {subject} ended; its outputs are being collected",
    Verb.RUN_OUTPUTS_COLLECTED: "collected outputs of {subject} that could not be collected at its end",
    Verb.ATTEMPT_FAILED_TO_START: "an attempt at {subject} did not start",
    Verb.ATTEMPT_FOUND_ALIVE: "found an ended attempt at {subject} still at work, and ended it there",
    Verb.ARTIFACT_STORED: "{actor} stored the artifact {subject}",
    Verb.ACCESS_DENIED: "{actor} was denied the right “{permission}”",
}
GONE = "…"


def sentence(event: AuditEvent, details: dict[str, Any] | None = None) -> str:
    """Who did what to what. `details` come from the event's payload, where it is not erased."""
    known: defaultdict[str, str] = defaultdict(lambda: GONE)
    for name, value in (details or {}).items():
        if isinstance(value, str | int):
            known[name] = str(value).replace("_", " ") if name == "permission" else str(value)
    actor = f"{event.actor_label} for {event.behalf_label}" if event.behalf_label else event.actor_label
    known.update(actor=actor, subject=event.subject_label or event.subject_type or GONE)
    template = SENTENCES.get(Verb(event.verb)) if event.verb in _KNOWN else None
    return (template or f"{{actor}}: {event.verb.replace('{', '').replace('}', '')} {{subject}}").format_map(known)


_KNOWN = frozenset(verb.value for verb in Verb)
