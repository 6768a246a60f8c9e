"""What somebody must say who acts on what others rely on."""

from workspaces.audit import Refusal

MOST = 1000  # characters that are kept


def because(reason: str, ask: str) -> str:
    """The reason that must be given, at most 1,000 characters of it; `ask` says who will read it. Raises Refusal where there is none."""
    given = reason.strip()[:MOST]
    if not given:
        raise Refusal(ask, field="reason")
    return given
