"""Writing about a request without deciding: a question of whoever may decide, an answer of whoever asked."""

from workspaces import scope
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.commands.notification import notify
from workspaces.models import Approval, ApprovalComment, ApprovalVote, Notification, User
from workspaces.queries.approval import title_of
from workspaces.text import unreadable
from workspaces.verbs import Verb

LONGEST = 2000
MOST = 200  # on one request


@command(Verb.APPROVAL_COMMENTED, needs=Permission.VIEW, kind=Kind.APPROVAL)
def comment_on(event: Draft, *, actor: Actor, approval: Approval, text: str) -> ApprovalComment:
    """Write about an open request. Whoever asked may, and whoever may decide; those who wrote, voted or asked before are told."""
    asked = Approval.objects.select_for_update(no_key=True).get(pk=approval.pk)
    writer, said = actor.user, text.strip()
    if writer is None:
        raise Refusal("Only a person asks.")
    rights = rights_of(actor, scope.current_id())
    is_own = asked.requested_by_id == writer.pk and rights.may_write(Kind.APPROVAL)
    if not is_own and not rights.allows(Permission.APPROVE, Kind.APPROVAL):
        raise Denied(Permission.APPROVE, Kind.APPROVAL)
    if asked.status != Approval.Status.PENDING:
        raise Refusal(f"This request was decided before: {asked.get_status_display()}.")
    if not said:
        raise Refusal("Write what you want to know.", field="text")
    if len(said) > LONGEST:
        raise Refusal(f"At most {LONGEST:,} characters.", field="text")
    if unreadable(said, lines=True):
        raise Refusal(unreadable(said, lines=True), field="text")
    if ApprovalComment.objects.filter(approval=asked).count() >= MOST:
        raise Refusal(f"{MOST} were written about this already; talk to each other.")
    comment = ApprovalComment.objects.create(approval=asked, person=writer, text=said)
    event.created(comment)
    event.about = asked
    _tell(asked, comment, writer)
    return comment


def _tell(asked: Approval, comment: ApprovalComment, writer: User) -> None:
    """Once for each person and request: a notification that was seen is a fresh one again."""
    keys = {asked.requested_by_id}
    keys |= set(ApprovalVote.objects.filter(approval=asked).values_list("person", flat=True))
    keys |= set(ApprovalComment.objects.filter(approval=asked).values_list("person", flat=True))
    told = Notification.objects.filter(cause=Notification.Cause.APPROVAL_COMMENTED, subject_id=asked.pk)
    told.exclude(person=writer).delete()
    notify(
        User.objects.filter(pk__in=keys - {writer.pk}),
        cause=Notification.Cause.APPROVAL_COMMENTED,
        subject_type="approval",
        subject_id=asked.pk,
        label=title_of(asked),
        words=f"{writer.label}: {comment.text}",
    )
