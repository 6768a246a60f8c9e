"""Archives, zip and tar.gz, of code and of data, read member by member and never unpacked to a path. Pure.

Regular files and folders only: no links, devices, sparse or encrypted members. Caps on members, bytes, ratio and depth hold while reading,
whatever the archive says of itself (facts of Python's own extractors: CVE-2025-4517, CVE-2024-12718; archive.extract: CVE-2025-59682).
An archive is whole or refused: it is read to its end, since checksums and the end-of-archive stand there.
"""

import gzip
import io
import itertools
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Self, cast

from workspaces.file_paths import BadPath, clean_path, refuse_collisions, shown_path

MAX_MEMBERS = 1_000
MAX_BYTES = 64 * 1024 * 1024
MAX_RATIO = 200
FREE_BYTES = 1024 * 1024  # up to here any ratio is taken: a short file of blanks is no bomb
MAX_DIRECTORY_BYTES = 2 * 1024 * 1024
CHUNK = 65_536
_END = struct.Struct("<4s4H2LH")
_ZeroBlock = tarfile.EOFHeaderError  # type: ignore[attr-defined]  # no stub has it
_FOLDER_WITH_CONTENT = "{} is a folder, and has content as a file does; it would be lost. Pack it anew."


class BadBundle(ValueError):  # an answer for people
    """An archive that is not taken; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class BundleFile:
    """One file of an archive; `chunks` must be read before the next file is asked for."""

    path: str
    chunks: Iterator[bytes]
    is_executable: bool


def read_bundle(archive: BinaryIO, *, most_bytes: int | None = None) -> Iterator[BundleFile]:
    """The files of a zip or a tar.gz, told apart by their first bytes, unpacked `most_bytes` together, else what code may have. Raises BadBundle,
    also while chunks are read."""
    most_bytes = MAX_BYTES if most_bytes is None else most_bytes
    start = archive.read(4)
    archive.seek(0)
    if start[:2] == b"\x1f\x8b":
        members = _tar_members(archive, most_bytes)
    elif start in (b"PK\x03\x04", b"PK\x05\x06"):
        members = _zip_members(archive, most_bytes)
    else:
        raise BadBundle("The bundle is neither a zip nor a tar.gz.")
    seen: list[str] = []
    for member in members:
        seen.append(member.path)
        yield member
    if not seen:
        raise BadBundle("There is no file in the bundle.")
    try:
        refuse_collisions(seen)
    except BadPath as error:
        raise BadBundle(str(error)) from error


def _zip_members(archive: BinaryIO, most_bytes: int) -> Iterator[BundleFile]:
    packed, announced = _refuse_directory(archive)
    budget = _Budget(packed, most_bytes)
    with _readable("zip"), zipfile.ZipFile(archive) as opened:
        # A length that is damaged swallows the entries behind it; of a zip cut behind a zip inside it, the end that is found is the inner one's.
        if len(opened.infolist()) != announced or min((member.header_offset for member in opened.infolist()), default=0) != 0:
            raise BadBundle("The zip is broken: its directory does not name all that is in it. Pack it anew.")
        for member in opened.infolist():
            budget.count_member()
            mode = member.external_attr >> 16
            kind = stat.S_IFMT(mode)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise BadBundle(f"{shown_path(member.orig_filename)} is a link or a device; a bundle holds plain files and folders.")
            if member.flag_bits & 0x1:
                raise BadBundle(f"{shown_path(member.orig_filename)} is encrypted; send it plain.")
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise BadBundle(f"{shown_path(member.orig_filename)} is packed in a way that is not read; use deflate.")
            path = _clean(member.orig_filename)
            if member.orig_filename.endswith("/") or kind == stat.S_IFDIR or not path:
                if member.file_size:
                    raise BadBundle(_FOLDER_WITH_CONTENT.format(shown_path(member.orig_filename)))
                continue
            with opened.open(member) as file:
                yield BundleFile(path, budget.chunks(cast(BinaryIO, file)), bool(mode & 0o111))


def _refuse_directory(archive: BinaryIO) -> tuple[int, int]:
    """Look at the end record as zipfile does, before zipfile makes an object of every entry; returns the size of the archive in bytes, and how
    many entries it announces."""
    size = archive.seek(0, io.SEEK_END)
    archive.seek(max(size - 65_536 - _END.size - 20, 0))
    tail = archive.read()
    place = len(tail) - _END.size
    if place < 0 or tail[place : place + 4] != b"PK\x05\x06" or tail[-2:] != b"\x00\x00":
        place = tail.rfind(b"PK\x05\x06")
    if place < 0 or len(tail) - place < _END.size:
        raise BadBundle("The zip is cut short: its end is missing.")
    _, _, _, _, members, directory, _, _ = _END.unpack_from(tail, place)
    if members > MAX_MEMBERS or directory > MAX_DIRECTORY_BYTES or tail[max(place - 20, 0) : place].startswith(b"PK\x06\x07"):
        raise BadBundle(f"A bundle may have {MAX_MEMBERS:,} files and folders; this zip announces more.")
    archive.seek(0)
    return size, members


def _tar_members(archive: BinaryIO, most_bytes: int) -> Iterator[BundleFile]:
    packed = archive.seek(0, io.SEEK_END)
    archive.seek(0)
    budget = _Budget(packed, most_bytes)
    with (
        _readable("tar.gz"),
        gzip.GzipFile(fileobj=archive) as unpacked,
        tarfile.open(fileobj=_Capped(unpacked, most_bytes), mode="r|", tarinfo=_Entry) as opened,
    ):
        for member in opened:
            budget.count_member()
            if not (member.isreg() or member.isdir()) or member.issparse():
                raise BadBundle(f"{shown_path(member.name)} is a link, a device or sparse; a bundle holds plain files and folders.")
            path = _clean(member.name)
            if (member.isdir() or not path) and member.size:
                raise BadBundle(_FOLDER_WITH_CONTENT.format(shown_path(member.name)))
            file = None if member.isdir() or not path else opened.extractfile(member)
            if file is not None:
                yield BundleFile(path, budget.chunks(cast(BinaryIO, file)), bool(member.mode & 0o111))
        _refuse_unended(cast(BinaryIO, opened.fileobj), _Budget(packed, most_bytes))


def _refuse_unended(stream: BinaryIO, padding: "_Budget") -> None:
    """Read an unpacked tar from behind the first zero block to its end: a second one and zeros, the padding of a record. gzip holds its checksum
    against what was unpacked only there, and `padding` bounds how much that may be."""
    second = stream.read(tarfile.BLOCKSIZE)
    if len(second) < tarfile.BLOCKSIZE:
        raise BadBundle("The tar.gz is cut short: its end is missing.")
    for chunk in itertools.chain([second], padding.chunks(stream)):
        if chunk.strip(b"\0"):
            raise BadBundle("The tar.gz goes on behind its end, where nothing is read; it is damaged, or two in one. Pack it anew.")


class _Entry(tarfile.TarInfo):
    """A header of a tar. tarfile takes a bad one behind the first member for the end of the archive; here only a block of zeros is."""

    __slots__ = ()

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(archive)
        except _ZeroBlock:
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"a header is damaged or cut short ({error})") from error


def _clean(name: str) -> str:
    """The path of a member, without the `./` that tar writes and the `/` of folders; empty for the root itself."""
    bare = name.removesuffix("/")
    while bare.startswith("./"):
        bare = bare[2:]
    if bare in ("", ".") and name and not name.startswith("/"):
        return ""
    try:
        return clean_path(bare)
    except BadPath as error:
        raise BadBundle(str(error)) from error


class _Budget:
    """What an archive has used so far of members and bytes."""

    def __init__(self, packed: int, most_bytes: int) -> None:
        self._packed = max(packed, 1)
        self._most = most_bytes
        self._members = 0
        self._bytes = 0

    def count_member(self) -> None:
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise BadBundle(f"A bundle may have {MAX_MEMBERS:,} files and folders; this one has more.")

    def chunks(self, file: BinaryIO) -> Iterator[bytes]:
        with _readable("bundle"):
            while chunk := file.read(CHUNK):
                self._bytes += len(chunk)
                if self._bytes > self._most:
                    raise BadBundle(f"A bundle may have {self._most // 2**20:,} MiB unpacked; this one has more.")
                if self._bytes > FREE_BYTES and self._bytes > MAX_RATIO * self._packed:
                    raise BadBundle(f"The bundle unpacks to more than {MAX_RATIO} times its size, as only a bomb does.")
                yield chunk


class _Capped(io.RawIOBase):
    """An unpacked stream that ends in BadBundle past the cap, so that no header can make tarfile read without bound."""

    def __init__(self, source: gzip.GzipFile, most_bytes: int) -> None:
        self._source = source
        self._most = most_bytes
        self._left = most_bytes + MAX_MEMBERS * 2048

    def read(self, size: int = -1) -> bytes:
        wanted = self._left + 1 if size < 0 else min(size, self._left + 1)
        found = self._source.read(wanted)
        self._left -= len(found)
        if self._left < 0:
            raise BadBundle(f"A bundle may have {self._most // 2**20:,} MiB unpacked; this one has more.")
        return found


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """Everything that a broken archive makes the readers raise, as one sentence."""
    try:
        yield
    except BadBundle:
        raise
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        EOFError,
        zlib.error,
        OSError,
        NotImplementedError,
        RuntimeError,
        struct.error,
        ValueError,  # of offsets before the beginning, numbers that are none, names in no encoding
    ) as error:
        raise BadBundle(f"The {what} is broken and cannot be read: {str(error)[:200]}") from error
