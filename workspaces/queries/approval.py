"""Requests for a decision: the inbox, and one request with everything that the approver agrees to."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from workspaces import ids, scope
from workspaces.access import Actor, Kind, Permission, Rights, rights_of
from workspaces.asked_kinds import Behind, asked_kinds, choices_of, page_of
from workspaces.asked_words import Fact, Parameter, facts_of, parameters_of, what_changed
from workspaces.checklist import checks, fact_checks
from workspaces.models import Agent, AgentVersion, Approval, ApprovalComment, ApprovalVote, Delegation, Pool
from workspaces.queries.approval_rule import Rule, roles_reached
from workspaces.queries.approval_talk import talk_on
from workspaces.queries.decider import approvers_of, delegated_to, why_not, why_not_alone


@dataclass(frozen=True, slots=True)
class InName:
    """Somebody who is away and named the reader; `why_not` says why the reader cannot decide for them, empty where they can."""

    delegation: Delegation
    why_not: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as its page shows it. `checks` go into a checklist; `why_not` says why this reader cannot decide, empty where they can.

    `demands`: how many must approve, and of which role. `may_break`: the glass, being an owner whose word as usual does not do.
    `is_stale`: what was asked has changed since, so that an approval would make it void; `since` says what. `behind`: the policy that asked.
    """

    approval: Approval
    title: str
    checks: list[dict[str, Any]]
    facts: list[Fact]
    parameters: list[Parameter]
    votes: list[ApprovalVote]
    why_not: str
    missing: int = 0
    is_open: bool = field(default=False)
    demands: str = ""
    talk: list[ApprovalComment] = field(default_factory=list)
    names: list[InName] = field(default_factory=list)
    may_break: bool = False
    is_own: bool = False
    may_write: bool = False
    may_refuse: bool = False
    choices: list[str] | None = None
    is_stale: bool = False
    since: list[str] = field(default_factory=list)
    behind: Behind = field(default_factory=Behind)

    @property
    def is_question(self) -> bool:
        """It is answered, by one of `choices` or in one's own words, and not approved."""
        return self.choices is not None

    @property
    def is_as_asked(self) -> bool:
        return not self.is_stale

    @property
    def may_approve(self) -> bool:
        return self.is_open and not self.why_not and not self.is_stale

    @property
    def changes(self) -> list[str]:
        """Lines of a policy that went and came; empty for other requests."""
        lines = self.approval.content.get("changes") if isinstance(self.approval.content, dict) else None
        return [str(line) for line in lines] if isinstance(lines, list) else []

    def page_in(self, workspace: str) -> str:
        """Address of the subject's page in the workspace of this slug; empty where it has none."""
        found = page_of(self.approval.subject_type, self.approval.subject_id, self.approval.content)
        with suppress(NoReverseMatch):
            return reverse(found[0], args=[workspace, *found[1:]]) if found else ""
        return ""


def approvals(*, status: str = "") -> "QuerySet[Approval]":
    """Requests, those of one status or all."""
    rows = Approval.objects.select_related("requested_by")
    return rows.filter(status=status) if status else rows


def waiting_for(actor: Actor, rights: Rights) -> "QuerySet[Approval]":
    """Open requests that wait for this person's word: those that they did not ask for and have not decided on. What was asked for through a
    token of theirs is among them, and says on its page why it is another's; asking the record for each would cost every page."""
    roles = roles_reached(rights)
    return waiting_at(tuple(roles), actor.user.pk, timezone.now()) if actor.user is not None and roles else Approval.objects.none()


def waiting_at(roles: Sequence[str], person: Any, now: Any) -> "QuerySet[Approval]":
    """The same for someone whose word is that of `roles`; person and instant are values, or what stands for them in a kept query."""
    waiting = Approval.objects.filter(status=Approval.Status.PENDING, expires_at__gt=now, role__in=roles).exclude(requested_by=person)
    return waiting.exclude(pk__in=ApprovalVote.objects.filter(Q(person=person) | Q(behalf=person)).values("approval"))


def title_of(approval: Approval) -> str:
    """What is asked, in a phrase."""
    asks = approval.content.get("asks") if isinstance(approval.content, dict) else None
    return str(asks or approval.subject_label)


def votes_on(approval: Approval) -> list[ApprovalVote]:
    return list(ApprovalVote.objects.filter(approval=approval).select_related("person", "behalf").order_by("created_at", "pk"))


def changed_since(approval: Approval, content_hash: str, content: Any) -> list[str] | None:
    """What of a request is another thing now, in sentences; None where it is what was asked. `content_hash` is that of what would be asked now, its
    `content` may be None where there are no words for it."""
    if approval.content_hash == content_hash:
        return None
    return what_changed(approval.content, content) if content is not None else []


def _since(approval: Approval) -> list[str] | None:
    """As whoever decides would find it; None too where the kind cannot tell before."""
    kind = asked_kinds().get(approval.subject_type)
    now = kind.now(approval) if kind is not None and kind.now is not None and isinstance(approval.content, dict) else None
    return changed_since(approval, now.content_hash, now.content) if now is not None else None


def _behind(approval: Approval, rights: Rights) -> Behind:
    kind = asked_kinds().get(approval.subject_type)
    found = kind.behind(approval) if kind is not None and kind.behind is not None and isinstance(approval.content, dict) else Behind()
    return found.seen(lambda about: rights.allows(Permission.VIEW, about))


def asked(approval: Approval, actor: Actor, rights: Rights) -> Asked:
    """One request with its votes and what the reader may do about it."""
    votes = votes_on(approval)
    content = approval.content if isinstance(approval.content, dict) else {"content": approval.content}
    is_open = approval.status == Approval.Status.PENDING and approval.expires_at > timezone.now()
    why = why_not(approval, actor, rights) if is_open else ""
    names = _names(approval, actor) if is_open else []
    is_own = is_open and actor.is_user(approval.requested_by_id)
    since = _since(approval) if is_open else None
    behind = _behind(approval, rights)
    return Asked(
        approval=approval,
        title=title_of(approval),
        checks=checks_of(content),
        facts=facts_of(
            content,
            dict(Pool.Isolation.choices),
            approval.subject_type,
            {key: (page.name, page.argument) for key, page in behind.pages.items()},
        ),
        parameters=parameters_of(content, _schema(content)),
        votes=votes,
        why_not=why,
        missing=max(0, approval.quorum - approvers_of(approval)) if is_open else 0,
        is_open=is_open,
        demands=Rule(approval.subject_type, approval.quorum, approval.role).words,
        talk=talk_on(approval),
        names=names,
        may_break=is_open and since is None and not why_not_alone(approval, actor, rights),
        is_own=is_own,
        may_refuse=is_open and not (why and why_not(approval, actor, rights, approves=False)),
        may_write=is_open and (is_own or rights.allows(Permission.APPROVE, Kind.APPROVAL)),
        choices=choices_of(approval.subject_type, approval.content),
        is_stale=since is not None,
        since=since or [],
        behind=behind,
    )


def _names(approval: Approval, actor: Actor) -> list[InName]:
    if actor.user is None:
        return []
    found = []
    for delegation in delegated_to(actor.user, timezone.now()):
        named = replace(actor, behalf=delegation.giver, delegation_id=delegation.pk)
        found.append(InName(delegation, why_not(approval, named, rights_of(named, scope.current_id()))))
    return found


def checks_of(content: Any) -> list[dict[str, Any]]:
    """The checklist of what is asked: the facts of a promotion with the gate of the policy that put it forward, or the lines of a launch's
    certificate; empty where there is neither."""
    facts, lines = (content.get(key) for key in ("facts", "certificate")) if isinstance(content, dict) else (None, None)
    if isinstance(facts, list):
        gate = content.get("gate")
        said = {(fact.get("name"), fact.get("verdict")) for fact in facts if isinstance(fact, dict)}
        # A gate may ask what every promotion is asked anyway; where both say the same it is told once.
        gate = gate if isinstance(gate, list) else []
        more = [fact for fact in gate if isinstance(fact, dict) and (fact.get("name"), fact.get("verdict")) not in said]
        return fact_checks([*facts, *more])
    return list(checks(lines)) if isinstance(lines, list) else []


def _schema(content: dict[str, Any]) -> Any:
    """The parameter schema of the agent version that is asked for; None where the request names none that is here."""
    agent = content.get("agent")
    if not isinstance(agent, dict) or not isinstance(agent.get("version"), int):
        return None
    pk, _ = ids.spellings(Agent.prefix, str(agent.get("id", "")))
    return AgentVersion.objects.filter(agent=pk, number=agent["version"]).values_list("parameter_schema", flat=True).first() if pk else None
