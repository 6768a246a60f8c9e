"""Shares of workspaces in the engines that they share: figures of the whole site, asked by its named function (runs/queries/site.py)."""

import uuid
from collections.abc import Iterable

from runs.queries.site import engine_shares
from runs.share import Turn, turn_of
from workspaces import scope


def turns(engines: Iterable[uuid.UUID]) -> dict[uuid.UUID, Turn]:
    """Engines on which others go before the open workspace. Not inside a transaction: a site scope is opened for the question."""
    own, found = scope.current_id(), {}
    with scope.open_site("whose turn it is on an engine that workspaces share"):
        for engine in sorted(set(engines)):
            shares = engine_shares(engine, asking=own)
            mine = shares.pop(own, None)
            turn = turn_of(mine, shares.values()) if mine is not None and shares else None
            if turn is not None:
                found[engine] = turn
    return found
