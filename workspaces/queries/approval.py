"""Requests for a decision: the inbox, and one request with everything that the approver agrees to."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from workspaces import ids
from workspaces.access import Actor, Kind, Permission, Rights
from workspaces.asked_kinds import page_of
from workspaces.asked_words import Fact, Parameter, facts_of, parameters_of
from workspaces.checklist import checks, fact_checks
from workspaces.models import Agent, AgentVersion, Approval, ApprovalVote, Pool
from workspaces.queries.requester import requesters_of


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as its page shows it. `checks` go into a checklist; `why_not` says why this reader cannot decide, empty where they can."""

    approval: Approval
    title: str
    checks: list[dict[str, Any]]
    facts: list[Fact]
    parameters: list[Parameter]
    votes: list[ApprovalVote]
    why_not: str
    missing: int = 0
    is_open: bool = field(default=False)

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
    if actor.user is None or not rights.allows(Permission.APPROVE, Kind.APPROVAL):
        return Approval.objects.none()
    return waiting_at(actor.user.pk, timezone.now())


def waiting_at(person: Any, now: Any) -> "QuerySet[Approval]":
    """The same for someone who may approve; both values, or what stands for them in a kept query."""
    waiting = Approval.objects.filter(status=Approval.Status.PENDING, expires_at__gt=now).exclude(requested_by=person)
    return waiting.exclude(pk__in=ApprovalVote.objects.filter(person=person).values("approval"))


def title_of(approval: Approval) -> str:
    """What is asked, in a phrase."""
    asks = approval.content.get("asks") if isinstance(approval.content, dict) else None
    return str(asks or approval.subject_label)


def votes_on(approval: Approval) -> list[ApprovalVote]:
    return list(ApprovalVote.objects.filter(approval=approval).select_related("person").order_by("created_at", "pk"))


def asked(approval: Approval, actor: Actor, rights: Rights) -> Asked:
    """One request with its votes and what the reader may do about it."""
    votes = votes_on(approval)
    content = approval.content if isinstance(approval.content, dict) else {"content": approval.content}
    is_open = approval.status == Approval.Status.PENDING and approval.expires_at > timezone.now()
    return Asked(
        approval=approval,
        title=title_of(approval),
        checks=checks_of(content),
        facts=facts_of(content, dict(Pool.Isolation.choices)),
        parameters=parameters_of(content, _schema(content)),
        votes=votes,
        why_not=_why_not(approval, actor, rights, votes) if is_open else "",
        missing=max(0, approval.quorum - sum(vote.approves for vote in votes)),
        is_open=is_open,
    )


def checks_of(content: Any) -> list[dict[str, Any]]:
    """The checklist of what is asked: the facts of a promotion with the gate of the policy that put it forward, or the lines of a launch's
    certificate; empty where there is neither."""
    facts, lines = (content.get(key) for key in ("facts", "certificate")) if isinstance(content, dict) else (None, None)
    if isinstance(facts, list):
        gate = content.get("gate")
        return fact_checks([*facts, *gate] if isinstance(gate, list) else facts)
    return list(checks(lines)) if isinstance(lines, list) else []


def _why_not(approval: Approval, actor: Actor, rights: Rights, votes: list[ApprovalVote]) -> str:
    if not rights.allows(Permission.APPROVE, Kind.APPROVAL):
        return "Deciding on this needs the right to approve."
    if actor.user is None or actor.user.pk == approval.requested_by_id:
        return "You asked for this yourself; another approver decides."
    if actor.user.pk in requesters_of(approval):
        return "It was asked for through a token that you made; another approver decides."
    if any(vote.person_id == actor.user.pk for vote in votes):
        return "You have decided on this; others still have to."
    return ""


def _schema(content: dict[str, Any]) -> Any:
    """The parameter schema of the agent version that is asked for; None where the request names none that is here."""
    agent = content.get("agent")
    if not isinstance(agent, dict) or not isinstance(agent.get("version"), int):
        return None
    pk, _ = ids.spellings(Agent.prefix, str(agent.get("id", "")))
    return AgentVersion.objects.filter(agent=pk, number=agent["version"]).values_list("parameter_schema", flat=True).first() if pk else None
