"""Tokens of the open workspace with their last use; never their secret."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from workspaces.models import Token, TokenUse, User
from workspaces.queries.paging import Page, newest_first


@dataclass(frozen=True, slots=True)
class TokenRow:
    token: Token
    used_at: datetime | None
    address: str

    @property
    def status(self) -> str:
        if self.token.revoked_at is not None:
            return "revoked"
        return "expired" if self.token.expires_at <= timezone.now() else "active"


def tokens(*, holder: User | None = None, live_only: bool = False, limit: int = 500) -> list[TokenRow]:
    """Newest first; of one holder, or of everybody. Tokens of runs end with their run and are left out."""
    rows = _tokens(holder)
    if live_only:
        rows = rows.filter(revoked_at=None, expires_at__gt=timezone.now())
    return _rows(list(rows.order_by("-created_at", "-pk")[:limit]))


def page_of_tokens(*, holder: User | None = None, cursor: str = "", size: int = 50) -> Page[TokenRow]:
    """The same by pages, ended ones among them. Raises BadCursor."""
    page = newest_first(_tokens(holder), cursor=cursor, size=size)
    return Page(items=_rows(page.items), next=page.next)


def _tokens(holder: User | None) -> "QuerySet[Token]":
    rows = Token.objects.exclude(kind=Token.Kind.RUN).select_related("holder")
    return rows if holder is None else rows.filter(holder=holder)


def _rows(found: list[Token]) -> list[TokenRow]:
    uses = {use.token_id: use for use in TokenUse.objects.filter(token__in=[row.pk for row in found])}
    return [_row(row, uses.get(row.pk)) for row in found]


def row_of(token: Token) -> TokenRow:
    return _row(token, TokenUse.objects.filter(token=token).first())


def _row(token: Token, use: TokenUse | None) -> TokenRow:
    return TokenRow(token=token, used_at=use.used_at if use else None, address=use.address if use else "")
