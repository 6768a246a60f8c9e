"""Sealing of secrets: AES-256-GCM (NIST SP 800-38D), bound to what the sealed thing belongs to. Pure: keys and bytes in, text for columns out."""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
NONCE_BYTES = 12


class BrokenSeal(Exception):
    """It was not sealed with this key for this place: another key, another row's ciphertext, or changed bytes."""

    def __init__(self) -> None:
        super().__init__("A sealed value cannot be opened: its key is another, or it was moved or changed.")


@dataclass(frozen=True, slots=True)
class Sealed:
    """Nonce and ciphertext as base64 (RFC 4648)."""

    nonce: str
    ciphertext: str


def fresh_key() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


def seal(key: bytes, plain: bytes, *, bound_to: str) -> Sealed:
    """Seal `plain`; it opens only with the same key and the same `bound_to`, which is not secret and not stored with it."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return Sealed(_text(nonce), _text(AESGCM(key).encrypt(nonce, plain, bound_to.encode())))


def unseal(key: bytes, sealed: Sealed, *, bound_to: str) -> bytes:
    """What was sealed. Raises BrokenSeal."""
    try:
        nonce, ciphertext = base64.b64decode(sealed.nonce, validate=True), base64.b64decode(sealed.ciphertext, validate=True)
        return AESGCM(key).decrypt(nonce, ciphertext, bound_to.encode())
    except (InvalidTag, ValueError) as error:
        raise BrokenSeal from error


def fingerprint(key: bytes, plain: bytes) -> str:
    """16 hex digits that equal values under one key share. Keyed, so that a short value cannot be found by trying."""
    own = hmac.new(key, b"fingerprint", hashlib.sha256).digest()
    return hmac.new(own, plain, hashlib.sha256).hexdigest()[:16]


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
