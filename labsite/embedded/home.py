"""The data folder of one installation (LABSITE_HOME): what lies where, who may use it, and the addresses of the servers inside it."""

import fcntl
import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

CHECKOUT = Path(__file__).resolve().parents[2]
SOCKET_FOLDER_BYTES = 93  # a socket's whole path may have 107 (unix(7)); PostgreSQL adds `/.s.PGSQL.5432`
OWN_NAMES = frozenset(
    {
        "keys",
        "lock",
        "logs",
        "postgres",
        "postgres.new",
        "programs",
        "programs.new",
        "run",
        "running.json",
        "stamps",
        "static",
        "store",
        "valkey",
    }
)


class StartError(Exception):
    """labsite cannot start here; the text is one line for the operator that says why and what would help."""


@dataclass(frozen=True)
class Home:
    """Paths inside the data folder. Making one touches nothing."""

    path: Path

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Home":
        """The folder LABSITE_HOME names, else `.labsite` in the checkout."""
        return cls(Path(environment.get("LABSITE_HOME") or CHECKOUT / ".labsite").absolute())

    @property
    def postgres(self) -> Path:
        return self.path / "postgres"

    @property
    def valkey(self) -> Path:
        return self.path / "valkey"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def stamps(self) -> Path:
        return self.path / "stamps"

    @property
    def sockets(self) -> Path:
        """Folder of both servers' sockets: `run` in the data folder, or a private temporary one where its path is too long for that."""
        inside = self.path / "run"
        if len(os.fsencode(inside)) <= SOCKET_FOLDER_BYTES and not set(str(inside)) & set(",\"'"):
            return inside
        name = f"labsite-{os.geteuid()}-{hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]}"
        places = [os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"]  # noqa: S108  # a private folder whose owner is checked
        fitting = [Path(place) / name for place in places if place and len(os.fsencode(Path(place) / name)) <= SOCKET_FOLDER_BYTES]
        return fitting[0] if fitting else inside

    @property
    def valkey_socket(self) -> Path:
        return self.sockets / "valkey.sock"

    @property
    def sign_ins(self) -> Path:
        """The first people's sign-ins from the moment they are chosen until somebody has been shown them: a start that is ended in between
        must not lose them."""
        return self.path / "keys" / "first-sign-ins"

    def password(self, role: str) -> str | None:
        """The stored password of `role` (a PostgreSQL role, or `valkey`); None before the first start."""
        try:
            return (self.path / "keys" / f"{role}.password").read_text()
        except OSError:
            return None

    def ensure_password(self, role: str) -> str:
        """The password of `role`; made at random and stored with mode 0600 where there is none."""
        known = self.password(role)
        if known:
            return known
        fresh = secrets.token_urlsafe(32)
        write_private(self.path / "keys" / f"{role}.password", fresh)
        return fresh

    def addresses(self) -> dict[str, str]:
        """DATABASE_URL, LABSITE_OWNER_DATABASE_URL and REDIS_URL of the servers in this folder; none before the first start."""
        known = {}
        for variable, role in (("DATABASE_URL", "labsite_app"), ("LABSITE_OWNER_DATABASE_URL", "labsite_owner")):
            if password := self.password(role):
                known[variable] = self.postgres_url(role, password)
        if password := self.password("valkey"):
            known["REDIS_URL"] = f"unix://{quote(str(self.valkey_socket))}?db=0&password={quote(password)}"
        return known

    def postgres_url(self, role: str, password: str, database: str = "labsite") -> str:
        """libpq URL of a database on this folder's server."""
        return f"postgresql:///{database}?host={quote(str(self.sockets), safe='')}&user={role}&password={quote(password)}"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder (mode 0700, like its parts) and hold it for this process; the kernel frees it however the process ends.

        Raises StartError where another process holds it, or the folder cannot be ours.
        """
        with self._refusing_os_errors():
            self._claim()
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StartError(f"already running in {self.path}: {self.running()}") from None
            with self._refusing_os_errors():
                self._make_parts()
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _refusing_os_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StartError(
                f"the data folder {self.path} is not writable ({error.strerror}: {error.filename}); set LABSITE_HOME to another"
            ) from error

    def _claim(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = self.path.stat().st_uid
        if owner != os.geteuid():
            raise StartError(f"the data folder {self.path} belongs to user {owner}; start as that user, or set LABSITE_HOME to another")
        names = {entry.name for entry in self.path.iterdir()}
        if "lock" not in names and names - OWN_NAMES:
            raise StartError(
                f"{self.path} is not a data folder of labsite: it holds {min(names - OWN_NAMES)!r}; set LABSITE_HOME to another"
            )

    def _make_parts(self) -> None:
        self.path.chmod(0o700)
        for part in (self.path / "keys", self.path / "store", self.logs, self.stamps, self.valkey, self.sockets):
            part.mkdir(mode=0o700, exist_ok=True)
        # Outside the data folder anyone could have made it before us.
        if self.sockets.is_symlink() or (os.geteuid() != 0 and self.sockets.stat().st_uid != os.geteuid()):
            raise StartError(f"{self.sockets} belongs to someone else; remove it, or give LABSITE_HOME a shorter path")
        self.sockets.chmod(0o700)

    def note_running(self, address: str) -> None:
        """Leave behind, for a second start, who runs here and where it answers."""
        write_private(self.path / "running.json", json.dumps({"pid": os.getpid(), "address": address}))

    def running(self) -> str:
        """Who runs here, in words."""
        try:
            note = json.loads((self.path / "running.json").read_text())
            return f"process {note['pid']} at {note['address']}"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process is starting or stopping"

    def was_left_running(self) -> bool:
        """Did the last supervisor end without saying so (killed, power cut)?"""
        return (self.path / "running.json").exists()

    def note_stopped(self) -> None:
        (self.path / "running.json").unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step; only its owner may read it."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)
