"""Policies: a name, versions that are proposed and decided on like everything that needs a person, and people's hand on what acts."""

from contextlib import suppress
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Max
from django.utils import timezone

from runs.commands.policy_bell import ring_policies
from runs.commands.question import end_questions
from runs.expressions.answered import expressions_of
from runs.models import Policy, PolicyVersion
from runs.policy.changes import changes
from runs.policy.document import BadPolicy, read_policy
from runs.policy.document import Policy as Document
from runs.queries.policy import MOST_WAITED_FOR, Preview, preview
from runs.queries.policy_conflicts import conflict_faults
from runs.queries.policy_names import faults_beside
from workspaces import ids, scope
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.accounts import lock_ledger
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.canonical import digest
from workspaces.commands import approval as requests
from workspaces.models import Approval, Benchmark, NotFound, User
from workspaces.text import is_storable_json
from workspaces.verbs import Verb

SUBJECT = "policy"  # what an approval's subject is called
MAX_DOCUMENT_CHARACTERS = 50_000
Status = PolicyVersion.Status


@command(Verb.POLICY_CREATED, needs=Permission.PROPOSE_POLICY, kind=Kind.POLICY)
def create_policy(event: Draft, *, actor: Actor, slug: str, name: str, benchmark: str = "") -> Policy:
    """A policy without a version: it does nothing yet. Narrowed to `benchmark`, its action may name no other."""
    if actor.user is None:
        raise Refusal("A policy is made by somebody who answers for it.")
    try:
        ids.validate_slug(slug)
    except ValidationError as error:
        raise Refusal(*error.messages, field="slug") from error
    lock_ledger()
    with suppress(NotFound):
        Policy.objects.find(slug)
        raise Refusal(f"There is a policy {slug} already; choose another name.", field="slug")
    narrowed = Benchmark.objects.find(benchmark) if benchmark else None
    policy = Policy.objects.create(slug=slug, name=name.strip()[:200] or slug, benchmark=narrowed, created_by=actor.user)
    event.created(policy)
    return policy


def propose_version(*, actor: Actor, policy: Policy, document: Any, reason: str = "") -> PolicyVersion:
    """Ask for a version to act; whoever decides is told what it would have changed. One that still waits is withdrawn by this; the one that acts goes
    on until another is approved."""
    return _propose(actor=actor, policy=policy, document=document, reason=reason, seen=preview(policy, document, most=MOST_WAITED_FOR))


@command(Verb.POLICY_PROPOSED, needs=Permission.PROPOSE_POLICY, kind=Kind.POLICY)
def _propose(event: Draft, *, actor: Actor, policy: Policy, document: Any, reason: str, seen: Preview) -> PolicyVersion:
    if actor.user is None:
        raise Refusal("A policy acts under the rights of whoever proposed it, so somebody has to.")
    lock_ledger()
    policy = locked(policy)
    if policy.status == Policy.Status.RETIRED:
        raise Refusal(f"{policy.name} is retired; make another policy.")
    read = _read(policy, document)
    if seen.faults:
        raise Refusal(*seen.faults, field="document")
    if expressions_of(read) and not rights_of(actor, scope.current_id()).allows(Permission.MANAGE_WORKSPACE, Kind.WORKSPACE):
        raise Denied(
            Permission.MANAGE_WORKSPACE, Kind.WORKSPACE
        )  # the long tail of what a policy may ask is for those who look after the workspace
    last = policy.versions.order_by("-number").first()
    acting = policy.versions.filter(status=Status.ACTIVE).first()
    content_hash = digest(document)
    if acting is not None and acting.content_hash == content_hash:
        raise Refusal(f"Version {acting.number}, which acts, says exactly this.", field="document")
    for waiting in policy.versions.filter(status=Status.PROPOSED).select_for_update(no_key=True):
        event.change(waiting, status=Status.WITHDRAWN, ended_at=timezone.now())
        requests.void(event, subject_type=SUBJECT, subject_id=waiting.pk)
    version = PolicyVersion.objects.create(
        policy=policy,
        number=(last.number if last else 0) + 1,
        document=document,
        content_hash=content_hash,
        reason=reason.strip()[:1000],
        proposed_by=actor.user,
        token_id=actor.token_id,
    )
    event.created(version)
    event.about = version
    event.reason = version.reason
    requests.ask(
        event,
        subject_type=SUBJECT,
        subject_id=version.pk,
        subject_label=version.label,
        content=content_of(version, acting, seen),
        content_hash=content_hash,
        reason=version.reason,
        requested_by=actor.user,
        token_id=actor.token_id,
    )
    return version


@command(Verb.APPROVAL_GIVEN, needs=Permission.APPROVE, kind=Kind.APPROVAL)
def decide_policy(
    event: Draft, *, actor: Actor, approval: Approval, approves: bool, comment: str = "", seen_hash: str, is_alone: bool = False
) -> Approval:
    """Approve or refuse a version. Approved, it takes the place of the one that acts; what that one launched goes on."""
    lock_ledger()
    asked, person = requests.taken_up(approval, actor=actor, seen_hash=seen_hash)
    version = _locked_version(asked.subject_id)
    event.details |= {"policy": version.policy.slug, "version": version.number}
    if approves:
        requests.demand_still(version.proposed_by, Permission.PROPOSE_POLICY, Kind.POLICY, "propose policies")
        if _has_expressions(version):
            requests.demand_still(version.proposed_by, Permission.MANAGE_WORKSPACE, Kind.WORKSPACE, "propose policies with expressions")
        _hold_against_the_rest(version)
    status = requests.record_vote(
        event,
        approval=asked,
        actor=actor,
        approves=approves,
        comment=comment,
        current_hash=digest(version.document),
        content_now={"document": version.document},
        is_alone=is_alone,
    )
    if status == Approval.Status.APPROVED:
        _let_act(event, version, person)
    elif status == Approval.Status.REFUSED:
        event.change(version, status=Status.REFUSED, decided_by=person, decided_at=timezone.now(), ended_at=timezone.now())
    elif status == Approval.Status.VOID:
        event.change(version, status=Status.WITHDRAWN, ended_at=timezone.now())
    return asked


@command(Verb.POLICY_PAUSED, needs=Permission.PROPOSE_POLICY, kind=Kind.POLICY)
def pause_policy(event: Draft, *, actor: Actor, policy: Policy, reason: str) -> Policy:
    """Decide nothing until it goes on. Causes of the time between are not made up for. What it launched goes on."""
    return _set(event, policy, (Policy.Status.ACTIVE,), Policy.Status.PAUSED, reason)


@command(Verb.POLICY_RESUMED, needs=Permission.APPROVE, kind=Kind.POLICY)
def resume_policy(event: Draft, *, actor: Actor, policy: Policy, reason: str) -> Policy:
    """Let a policy go on that was paused, or that one of its limits stopped. That it may act is an approver's word."""
    return _set(event, policy, (Policy.Status.PAUSED, Policy.Status.STOPPED), Policy.Status.ACTIVE, reason)


@command(Verb.POLICY_RETIRED, needs=Permission.APPROVE, kind=Kind.POLICY)
def retire_policy(event: Draft, *, actor: Actor, policy: Policy, reason: str) -> Policy:
    """Let it act no more, for good. Its versions and decisions stay."""
    lock_ledger()  # before a row of it, as by whoever decides on a version: neither waits for the other in a circle
    retired = _set(
        event, policy, tuple(status for status in Policy.Status if status != Policy.Status.RETIRED), Policy.Status.RETIRED, reason
    )
    for version in retired.versions.filter(status=Status.PROPOSED).select_for_update(no_key=True):
        event.change(version, status=Status.WITHDRAWN, ended_at=timezone.now())
        requests.void(event, subject_type=SUBJECT, subject_id=version.pk)
    end_questions(event, retired)
    return retired


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def content_of(version: PolicyVersion, acting: PolicyVersion | None, seen: Preview) -> dict[str, Any]:
    """What an approver agrees to."""
    return {
        "asks": f"Let {version.policy.name} act as version {version.number} says",
        "policy": version.policy.slug,
        "version": version.number,
        "changes": changes(acting.document if acting else None, version.document),
        "replaces": f"version {acting.number}" if acting else "",
        "under_the_rights_of": version.proposed_by.label,
        "would_have_changed": seen.words,
        "simulation": seen.simulation,
        "running_work": "What the version before has launched goes on, and is not launched again.",
        "document": version.document,
    }


def end_policy(event: Draft, asked: Approval, status: str, reason: str) -> None:
    """Withdraw what waits for a decision; nothing happens to what does not."""
    version = _locked_version(asked.subject_id)
    if version.status == Status.PROPOSED:
        event.change(version, status=Status.WITHDRAWN, ended_at=timezone.now())


def locked(policy: Policy) -> Policy:
    return Policy.objects.select_for_update(no_key=True).get(pk=policy.pk)


def next_number(policy: Policy) -> int:
    """Of the decision that comes next; the policy is locked."""
    return int(policy.decisions.aggregate(last=Max("number"))["last"] or 0) + 1


def _read(policy: Policy, document: Any) -> Document:
    if not is_storable_json(document) or len(str(document)) > MAX_DOCUMENT_CHARACTERS:
        raise Refusal(
            f"A policy has at most {MAX_DOCUMENT_CHARACTERS:,} characters, none of which a database cannot hold.", field="document"
        )
    try:
        read = read_policy(document)
    except BadPolicy as fault:
        raise Refusal(*fault.faults, field="document") from fault
    if faults := faults_beside(policy, read):
        raise Refusal(*faults, field="document")
    return read


def _hold_against_the_rest(version: PolicyVersion) -> None:
    """Other policies may have come to act since it was proposed; what contradicts them now is not approved."""
    with suppress(BadPolicy):  # it is void or fails, which is said elsewhere
        faults = conflict_faults(version.policy, read_policy(version.document))
        if faults:
            raise Refusal(*faults)


def _has_expressions(version: PolicyVersion) -> bool:
    with suppress(BadPolicy):  # which is void or fails
        return bool(expressions_of(read_policy(version.document)))
    return False


def _let_act(event: Draft, version: PolicyVersion, by: User) -> None:
    now = timezone.now()
    for acting in version.policy.versions.filter(status=Status.ACTIVE).select_for_update(no_key=True):
        event.change(acting, status=Status.SUPERSEDED, ended_at=now)
        end_questions(event, version.policy)
    event.change(version, status=Status.ACTIVE, decided_by=by, decided_at=now)
    policy = locked(version.policy)
    if policy.status == Policy.Status.STOPPED:  # by a limit of the version before, which says nothing of this one
        event.change(policy, status=Policy.Status.ACTIVE, status_reason=f"Version {version.number} was approved.", status_at=now)
    ring_policies()


def _set(event: Draft, policy: Policy, before: tuple[str, ...], after: str, reason: str) -> Policy:
    policy = locked(policy)
    event.reason = reason.strip()[:1000]
    if not event.reason:
        raise Refusal("Say why; it stands on the policy's page.", field="reason")
    if policy.status not in before:
        raise Refusal(f"{policy.name} is {policy.get_status_display()} already.")
    event.change(policy, status=after, status_reason=event.reason, status_at=timezone.now())
    return policy


def _locked_version(version_id: Any) -> PolicyVersion:
    rows = PolicyVersion.objects.select_related("policy", "proposed_by").select_for_update(no_key=True, of=("self",))
    return rows.get(pk=version_id)
