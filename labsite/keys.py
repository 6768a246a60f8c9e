"""Keys of the installation, files of mode 0600 in `<home>/keys`, made where they are missing."""

import fcntl
import hashlib
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


class SecretsKeys:
    """The keys that wrap the data keys of workspaces: the newest in `secrets.key`, older ones beside it until nothing is wrapped by them.

    They are read anew each time, so that a rotation holds for processes that run already. A key is named by the beginning of its SHA-256.
    """

    def __init__(self, home: Path) -> None:
        self._newest = home / "keys" / "secrets.key"

    def newest(self) -> tuple[str, bytes]:
        """Name and 32 raw bytes of the key that wraps from now on."""
        key = _read_or_make(self._newest, secrets.token_bytes(32))
        return _name_of(key), key

    def find(self, name: str) -> bytes | None:
        """The key of that name; None where this installation does not hold it."""
        newest, key = self.newest()
        if newest == name:
            return key
        try:
            return self._older(name).read_bytes()
        except FileNotFoundError:  # never held, or destroyed this moment
            return None

    def older(self) -> list[str]:
        """Names of keys that a rotation has replaced and that are not destroyed yet."""
        return sorted(path.name.split(".")[1] for path in self._newest.parent.glob("secrets.*.key"))

    def renew(self) -> str:
        """Put a fresh key in the place of the newest, which is kept beside it. Two that renew at once do so one after the other."""
        self.newest()
        with open(os.open(self._newest.with_name("secrets.lock"), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            name, key = self.newest()
            _read_or_make(self._older(name), key)
            fresh = secrets.token_bytes(32)
            draft = self._newest.with_name(f"secrets.key.{secrets.token_hex(8)}")
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(fresh)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._newest)
            self._settle()
        return _name_of(fresh)

    def destroy(self, name: str) -> None:
        """Remove an older key: what is still wrapped by it can never be read again."""
        self._older(name).unlink(missing_ok=True)
        self._settle()

    def _older(self, name: str) -> Path:
        return self._newest.with_name(f"secrets.{name}.key")

    def _settle(self) -> None:
        """Names of files are on the disk only once their folder is."""
        folder = os.open(self._newest.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _name_of(key: bytes) -> str:
    return hashlib.sha256(b"labsite secrets key\0" + key).hexdigest()[:16]


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
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    return path.read_bytes()
