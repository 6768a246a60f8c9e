"""Who is behind a bearer token. Text: `lab_<kind>_<workspace and token, base32>_<secret>_<checksum>`."""

import base64
import hashlib
import hmac
import secrets
import uuid
import zlib
from dataclasses import dataclass

from django.utils import timezone

from workspaces import kept_query
from workspaces.access import Actor
from workspaces.models import ActorKind, Token


@dataclass(frozen=True, slots=True)
class TokenText:
    kind: str
    workspace_id: uuid.UUID
    token_id: uuid.UUID
    secret: str


def spell(kind: str, workspace_id: uuid.UUID, token_id: uuid.UUID, secret: str) -> str:
    """The text that a holder keeps; its CRC lets scanners tell it from noise."""
    place = base64.b32encode(workspace_id.bytes + token_id.bytes).decode().rstrip("=").lower()
    body = f"lab_{kind}_{place}_{secret}"
    return f"{body}_{zlib.crc32(body.encode()):08x}"


def fresh_secret() -> str:
    return secrets.token_hex(32)


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def read(text: str) -> TokenText | None:
    """Parts of a token's text, or None where it is none."""
    parts = text.split("_")
    if len(text) > 300 or len(parts) != 5 or parts[0] != "lab" or parts[1] not in Token.Kind.values:
        return None
    body = "_".join(parts[:4])
    if not hmac.compare_digest(f"{zlib.crc32(body.encode()):08x}", parts[4]):
        return None
    try:
        place = base64.b32decode(parts[2].upper() + "=" * (-len(parts[2]) % 8))
        return TokenText(kind=parts[1], workspace_id=uuid.UUID(bytes=place[:16]), token_id=uuid.UUID(bytes=place[16:32]), secret=parts[3])
    except ValueError:
        return None


def actor_of_token(text: TokenText, *, request_id: str = "") -> Actor | None:
    """The actor behind a token whose workspace is open; None where it is unknown, wrong, expired, revoked, or its holder may not sign in."""
    token = kept_query.first(Token, pk=text.token_id, kind=text.kind, related=("holder",))
    if token is None or not hmac.compare_digest(token.secret_hash, hash_secret(text.secret)):
        return None
    return actor_behind(token, request_id=request_id)


def actor_behind(token: Token, *, request_id: str = "", job_id: str = "") -> Actor | None:
    """The actor for whom a token stands, its `holder` read with it; None where it holds no longer. Nobody is asked for its secret here."""
    if token.revoked_at is not None or token.expires_at <= timezone.now() or not token.holder.is_active:
        return None
    kind = {Token.Kind.PERSON: ActorKind.PERSON, Token.Kind.SERVICE: ActorKind.SERVICE, Token.Kind.RUN: ActorKind.AGENT}[
        Token.Kind(token.kind)
    ]
    return Actor(
        kind=kind,
        user=token.holder,
        label=token.holder.label if token.kind != Token.Kind.RUN else token.name,
        behalf=token.holder if token.kind == Token.Kind.RUN else None,
        token_id=token.pk,
        token_scopes=frozenset(token.scopes),
        token_workspace_id=token.workspace_id,
        run_id=token.run_id,
        request_id=request_id,
        job_id=job_id,
    )
