"""Who stands behind a request: whoever asked, and where a token asked, the person who made that token and holds its secret."""

import uuid

from workspaces.models import Approval, AuditEvent, EventSubject
from workspaces.verbs import Verb


def requesters_of(approval: Approval) -> frozenset[uuid.UUID]:
    """Keys of the people who may not decide on it, read from the record: it says through which token was asked, and who made the token."""
    found = {approval.requested_by_id}
    asked = EventSubject.objects.filter(object_id=approval.pk, type="approval", before_hash="").select_related("event").first()
    if asked is not None and asked.event.token_id is not None:
        made = AuditEvent.objects.filter(subject_id=asked.event.token_id, verb=Verb.TOKEN_CREATED).first()
        if made is not None and made.actor_id is not None:
            found.add(made.actor_id)
    return frozenset(found)
