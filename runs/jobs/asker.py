"""Whoever asked for work that labsite launches later, with the rights of this moment."""

import uuid

from workspaces.access import Actor
from workspaces.models import Token, User
from workspaces.queries.token import actor_behind


def asker_of(user: User, token_id: uuid.UUID | None, *, job_id: str) -> Actor | None:
    """None where it was a token that has ended since."""
    if token_id is None:
        return Actor.of(user, job_id=job_id)
    token = Token.objects.select_related("holder").filter(pk=token_id).first()
    return actor_behind(token, job_id=job_id) if token is not None else None
