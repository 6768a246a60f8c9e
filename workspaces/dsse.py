"""Signed envelopes: DSSE v1 (github.com/secure-systems-lab/dsse) with Ed25519 (RFC 8032), and the public key as a JSON Web Key (RFC 8037). Pure.

What is signed is `DSSEv1 <length of type> <type> <length of body> <body>`, which nothing else of labsite signs, so that one key serves.
"""

import base64
import hashlib
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

IN_TOTO = "application/vnd.in-toto+json"


def envelope(body: bytes, key: Ed25519PrivateKey, *, payload_type: str = IN_TOTO) -> dict[str, Any]:
    """`body` in an envelope with one signature, as JSON."""
    signature = key.sign(signed_bytes(body, payload_type))
    return {
        "payload": base64.b64encode(body).decode(),
        "payloadType": payload_type,
        "signatures": [{"keyid": key_id(key.public_key()), "sig": base64.b64encode(signature).decode()}],
    }


def body_of(enveloped: dict[str, Any], key: Ed25519PublicKey) -> bytes | None:
    """What the envelope holds, if the holder of `key` signed it; else None."""
    try:
        body = base64.b64decode(enveloped["payload"], validate=True)
        for signature in enveloped["signatures"]:
            if signature["keyid"] == key_id(key):
                key.verify(base64.b64decode(signature["sig"], validate=True), signed_bytes(body, enveloped["payloadType"]))
                return body
    except (InvalidSignature, KeyError, TypeError, ValueError):
        return None
    return None


def signed_bytes(body: bytes, payload_type: str) -> bytes:
    """The pre-authentication encoding."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(body), body)


def key_id(key: Ed25519PublicKey) -> str:
    """SHA-256 of the raw public key, 64 hex digits."""
    return hashlib.sha256(_raw(key)).hexdigest()


def web_key(key: Ed25519PublicKey) -> dict[str, str]:
    """The public key as an entry of a JSON Web Key Set."""
    x = base64.urlsafe_b64encode(_raw(key)).decode().rstrip("=")
    return {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": key_id(key), "x": x}


def _raw(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)
