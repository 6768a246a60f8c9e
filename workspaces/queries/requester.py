"""Who stands behind a request: whoever asked, and where a token asked, the person who made that token and holds its secret."""

import uuid
from collections.abc import Collection

from workspaces.models import Approval, AuditEvent, EventSubject
from workspaces.verbs import Verb


def requesters_of(approval: Approval) -> frozenset[uuid.UUID]:
    """Keys of the people who may not decide on it, read from the record: it says through which token was asked, and who made the token."""
    return frozenset({approval.requested_by_id}) | makers_behind([approval.pk])


def makers_behind(keys: Collection[uuid.UUID]) -> frozenset[uuid.UUID]:
    """Keys of the people who made the tokens through which these rows came to be; empty where people wrote them themselves. What a token writes,
    whoever holds its secret may have thought up, so it is theirs too wherever another person's word is wanted."""
    made = EventSubject.objects.filter(object_id__in=keys, before_hash="").exclude(event__token_id=None)
    makers = {maker_of_token(token_id) for token_id in made.values_list("event__token_id", flat=True).distinct()}
    return frozenset(maker for maker in makers if maker is not None)


def maker_of_token(token_id: uuid.UUID | None) -> uuid.UUID | None:
    """Key of the person who made a token; None where no token asked, or labsite's own console made it."""
    if token_id is None:
        return None
    made = AuditEvent.objects.filter(subject_id=token_id, verb=Verb.TOKEN_CREATED).first()
    return made.actor_id if made is not None else None
