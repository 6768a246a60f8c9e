"""Who stands behind a request: whoever asked, and where a token asked, the person who made that token and holds its secret."""

import uuid

from workspaces.models import Approval, AuditEvent, EventSubject
from workspaces.verbs import Verb


def requesters_of(approval: Approval) -> frozenset[uuid.UUID]:
    """Keys of the people who may not decide on it, read from the record: it says through which token was asked, and who made the token."""
    found = {approval.requested_by_id}
    asked = EventSubject.objects.filter(object_id=approval.pk, type="approval", before_hash="").select_related("event").first()
    maker = maker_of_token(asked.event.token_id) if asked is not None else None
    return frozenset(found if maker is None else found | {maker})


def maker_of_token(token_id: uuid.UUID | None) -> uuid.UUID | None:
    """Key of the person who made a token; None where no token asked, or labsite's own console made it."""
    if token_id is None:
        return None
    made = AuditEvent.objects.filter(subject_id=token_id, verb=Verb.TOKEN_CREATED).first()
    return made.actor_id if made is not None else None
