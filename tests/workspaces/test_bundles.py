"""Archives of code: what is read, and every trick that must not be. The archives are made here, never kept."""

import gzip
import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable

import pytest

from tests.factories_archives import CONTENTS, DAMAGED, packed
from workspaces import bundles
from workspaces.bundles import BadBundle, read_bundle

Zip = Callable[[zipfile.ZipFile], None]


def zipped(fill: Zip) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        fill(archive)
    return raw.getvalue()


def tarred(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for member, content in members:
            member.size = len(content) if member.isreg() else member.size
            archive.addfile(member, io.BytesIO(content))
    return raw.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, mode: int = 0o644, link: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.mode, found.linkname = kind, mode, link
    return found


def read(content: bytes) -> dict[str, tuple[bytes, bool]]:
    return {file.path: (b"".join(file.chunks), file.is_executable) for file in read_bundle(io.BytesIO(content))}


def entry(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def named(names: Iterable[str]) -> Zip:
    def fill(archive: zipfile.ZipFile) -> None:
        for name in names:
            archive.writestr(name, b"x")

    return fill


def test_zip_and_tar_give_the_same_files() -> None:
    def fill(archive: zipfile.ZipFile) -> None:
        archive.writestr(entry("code/", stat.S_IFDIR | 0o755), b"")
        archive.writestr("code/main.py", b"print(1)")
        archive.writestr(entry("run.sh", stat.S_IFREG | 0o755), b"#!/bin/sh")

    expected = {"code/main.py": (b"print(1)", False), "run.sh": (b"#!/bin/sh", True)}
    assert read(zipped(fill)) == expected
    parts = ((member("./"), b""), (member("./code", tarfile.DIRTYPE), b""))
    parts[0][0].type = tarfile.DIRTYPE
    assert read(tarred(*parts, (member("./code/main.py"), b"print(1)"), (member("./run.sh", mode=0o755), b"#!/bin/sh"))) == expected


NAMES = [
    "../evil",
    "/etc/passwd",
    "a/../../evil",
    "a\\..\\evil",
    "C:/evil",
    "a/./b",
    "a//b",
    "nul\x00byte",
    "/".join("a" * 20),
    "x" * 300,
    "a\nb",
]


@pytest.mark.parametrize("name", NAMES)
def test_bad_names(name: str) -> None:
    def fill(archive: zipfile.ZipFile) -> None:
        info = zipfile.ZipInfo("placeholder")
        info.filename = info.orig_filename = name
        archive.writestr(info, b"x")

    with pytest.raises(BadBundle):
        read(zipped(fill))
    if "\x00" not in name:
        with pytest.raises(BadBundle):
            read(tarred((member(name), b"x")))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_tar_links_and_devices(kind: bytes) -> None:
    with pytest.raises(BadBundle, match="link"):
        read(tarred((member("main.py"), b"x"), (member("link", kind, link="main.py"), b"")))


def test_tar_sparse() -> None:
    info = member("sparse")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "sparse", "GNU.sparse.realsize": "99999999999"}
    with pytest.raises(BadBundle):
        read(tarred((info, b"1\n0\n1\n" + b"\x00" * 512)))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
def test_zip_links_and_devices(kind: int) -> None:
    with pytest.raises(BadBundle, match="link"):
        read(zipped(lambda archive: archive.writestr(entry("link", kind | 0o777), b"/etc/passwd")))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("names", [("a.py", "a.py"), ("A.py", "a.py"), ("é.py", "e\u0301.py"), ("a", "a/b"), ("straße", "STRASSE")])
def test_names_that_are_one_file(names: tuple[str, str]) -> None:
    with pytest.raises(BadBundle):
        read(zipped(named(names)))


def test_too_many_members() -> None:
    def fill(count: int) -> Zip:
        return named(f"{number}.txt" for number in range(count))

    assert len(read(zipped(fill(bundles.MAX_MEMBERS)))) == bundles.MAX_MEMBERS
    with pytest.raises(BadBundle, match="1,000"):
        read(zipped(fill(bundles.MAX_MEMBERS + 1)))
    with pytest.raises(BadBundle, match="1,000"):
        read(tarred(*((member(f"{number}"), b"") for number in range(bundles.MAX_MEMBERS + 1))))


def test_too_many_bytes_whatever_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "MAX_BYTES", 100_000)
    big = b"".join(str(number).encode() for number in range(30_000))
    with pytest.raises(BadBundle):
        read(zipped(lambda archive: archive.writestr("big", big)))
    with pytest.raises(BadBundle):
        read(tarred((member("big"), big)))


def test_bombs_are_stopped_by_their_ratio() -> None:
    with pytest.raises(BadBundle, match="bomb"):
        read(zipped(lambda archive: archive.writestr("zeros", b"\x00" * 20_000_000)))
    with pytest.raises(BadBundle, match="bomb"):
        read(tarred((member("zeros"), b"\x00" * 20_000_000)))


def test_long_name_header_cannot_fill_the_memory() -> None:
    header = member("././@LongLink", tarfile.GNUTYPE_LONGNAME)
    header.size = 2**33
    stream = header.tobuf(tarfile.GNU_FORMAT) + b"\x00" * (bundles.MAX_BYTES + 4_000_000)
    with pytest.raises(BadBundle, match="MiB"):
        read(gzip.compress(stream, 1))


def test_encrypted_and_rare_packing() -> None:
    def bz2(archive: zipfile.ZipFile) -> None:
        archive.writestr("a", b"x", zipfile.ZIP_BZIP2)

    with pytest.raises(BadBundle, match="deflate"):
        read(zipped(bz2))
    content = bytearray(zipped(lambda archive: archive.writestr("a", b"x")))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(BadBundle, match="encrypted"):
        read(bytes(content))


@pytest.mark.parametrize("keep", [1, 4, 30, 60, 90, 110])
def test_cut_archives(keep: int) -> None:
    with pytest.raises(BadBundle):
        read(zipped(lambda archive: archive.writestr("a.py", b"print(1)"))[:keep])
    with pytest.raises(BadBundle):
        read(tarred((member("a.py"), zlib.compress(b"print(1)") * 40))[:keep])


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_archive_is_not_read_in_part(name: str) -> None:
    make, words = DAMAGED[name]
    with pytest.raises(BadBundle, match=words):
        read(make())


@pytest.mark.parametrize("zeros", [1024, 512 * 20, 2**20])
def test_the_padding_of_any_writer_is_taken(zeros: int) -> None:
    """Two blocks alone are what some write; GNU tar fills a record, of 10 KiB unless told otherwise."""
    found = read(packed(lambda tar: tar.rstrip(b"\x00").ljust(512 * 6, b"\x00") + bytes(zeros)))
    assert found == {name: (content, False) for name, content in CONTENTS.items()}


def test_a_gzip_in_parts_is_whole() -> None:
    """As parallel packers write it: several gzip members, one behind the other, are one stream."""
    whole = gzip.decompress(packed(lambda tar: tar))
    assert len(read(gzip.compress(whole[:1500]) + gzip.compress(whole[1500:]))) == 3


def test_wrong_checksum() -> None:
    content = zipped(lambda archive: archive.writestr("a.py", b"print(1)", zipfile.ZIP_STORED)).replace(b"print(1)", b"print(2)")
    with pytest.raises(BadBundle, match="broken"):
        read(content)


@pytest.mark.parametrize(
    "content", [b"", b"text", b"\x7fELF", b"PK\x05\x06" + b"\x00" * 18, gzip.compress(b"no tar", mtime=0), gzip.compress(b"", mtime=0)]
)
def test_no_archives(content: bytes) -> None:
    with pytest.raises(BadBundle):
        read(content)
