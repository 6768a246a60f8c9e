"""What was written about a request, and who decides for whom."""

from django.db.models import Q, QuerySet

from workspaces.models import Approval, ApprovalComment, Delegation, User


def talk_on(approval: Approval) -> list[ApprovalComment]:
    """The oldest first."""
    return list(ApprovalComment.objects.filter(approval=approval).select_related("person").order_by("created_at", "pk"))


def delegations_of(user: User) -> "QuerySet[Delegation]":
    """Given by this person or to them, the newest first."""
    rows = Delegation.objects.filter(Q(giver=user) | Q(delegate=user)).select_related("giver", "delegate")
    return rows.order_by("-created_at", "-pk")
