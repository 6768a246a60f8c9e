"""Keys of the installation, files of mode 0600 in `<home>/keys`, made where they are missing."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


def django_key(home: Path) -> str:
    """The key that signs sessions and one-time links; LABSITE_SECRET_KEY wins over the file."""
    given = os.environ.get("LABSITE_SECRET_KEY")
    if given:
        return given
    try:
        return _read_or_make(home / "keys" / "django.key", secrets.token_urlsafe(64).encode()).decode()
    except OSError as error:
        raise SystemExit(f"labsite: the data folder {home} is not writable ({error.strerror}); set LABSITE_HOME to another.") from error


def signing_key(home: Path) -> Ed25519PrivateKey:
    """The Ed25519 key (RFC 8032) that signs audit checkpoints; its file holds the 32 raw bytes."""
    fresh = Ed25519PrivateKey.generate().private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    return Ed25519PrivateKey.from_private_bytes(_read_or_make(home / "keys" / "checkpoint.key", fresh))


def _read_or_make(path: Path, fresh: bytes) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        pass
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Written aside and linked into place: of two processes that start at once, one wins and both read the winner's key.
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(fresh)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    return path.read_bytes()
