"""Archives that came damaged: each can be read in part, and none may be."""

import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable

BLOCK = tarfile.BLOCKSIZE
MEMBER = 2 * BLOCK  # a header, and a content of less than a block
CONTENTS = {f"{name}.csv": f"h\n{name}1\n{name}2\n".encode() for name in "abc"}


def plain_tar() -> bytes:
    """Three files of `CONTENTS`, two blocks of zeros, and the padding of a record."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, content in CONTENTS.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return raw.getvalue()


def changed(content: bytes, place: int, by: bytes) -> bytes:
    return content[:place] + by + content[place + len(by) :]


def packed(change: Callable[[bytes], bytes]) -> bytes:
    return gzip.compress(change(plain_tar()), mtime=0)


def flipped() -> bytes:
    """One byte of what is packed differs, and gzip's checksum is still that of the whole."""
    altered = packed(lambda tar: tar.replace(b"b1", b"x1"))
    return altered[:-8] + packed(lambda tar: tar)[-8:]


def empty_last(tar: bytes) -> bytes:
    """The last file is empty and its header is bad: what follows is zeros, as behind an end."""
    entry = tarfile.TarInfo("d.csv").tobuf()
    return tar[: 3 * MEMBER] + changed(entry, 148, b"000000\0 ") + bytes(20 * BLOCK)


def named(kind: bytes, name: str) -> bytes:
    """A tar.gz of a good file and one of `kind` with content."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz", format=tarfile.USTAR_FORMAT) as archive:
        for member, given in (("a.csv", tarfile.REGTYPE), (name, kind)):
            entry = tarfile.TarInfo(member)
            entry.type, entry.size = given, 2
            archive.addfile(entry, io.BytesIO(b"1\n"))
    return raw.getvalue()


def zipped(name: str, mode: int) -> bytes:
    """A zip of a good file and of one called `name` with `mode` and content."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr("a.csv", b"h\n1\n")
        entry = zipfile.ZipInfo(name)
        entry.external_attr = mode << 16
        archive.writestr(entry, b"h\n2\n")
    return raw.getvalue()


def swallowed() -> bytes:
    """The directory's first entry says that its comment is as long as the entry behind it, so that this is none."""
    whole = zipped("b.csv", stat.S_IFREG | 0o644)
    first, last, end = whole.index(b"PK\x01\x02"), whole.rindex(b"PK\x01\x02"), whole.index(b"PK\x05\x06")
    return changed(whole, first + 32, (end - last).to_bytes(2, "little"))


def cut_behind_an_inner_zip() -> bytes:
    """The end that is found in it is the inner one's, which names other files."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr("a.csv", b"h\n1\n")
        archive.writestr("inner.zip", zipped("b.csv", stat.S_IFREG | 0o644))
        archive.writestr("c.csv", b"h\n3\n")
    return raw.getvalue()[: raw.getvalue().index(b"c.csv")]


DAMAGED: dict[str, tuple[Callable[[], bytes], str]] = {
    "second header": (lambda: packed(lambda tar: changed(tar, MEMBER + 148, b"000000\0 ")), "header is damaged"),
    "header of an empty file": (lambda: packed(empty_last), "header is damaged"),
    "cut behind the first file": (lambda: packed(lambda tar: tar[:MEMBER]), "cut short"),
    "cut in the second header": (lambda: packed(lambda tar: tar[: MEMBER + 100]), "cut short"),
    "cut in the second file": (lambda: packed(lambda tar: tar[: MEMBER + BLOCK + 3]), "end of data"),
    "no end": (lambda: packed(lambda tar: tar[: 3 * MEMBER]), "cut short"),
    "half an end": (lambda: packed(lambda tar: tar[: 3 * MEMBER + BLOCK]), "cut short"),
    "a zero block between": (lambda: packed(lambda tar: tar[:MEMBER] + bytes(BLOCK) + tar[MEMBER:]), "behind its end"),
    "two in one": (lambda: packed(lambda tar: tar + tar), "behind its end"),
    "something behind the end": (lambda: packed(lambda tar: tar[:-1] + b"x"), "behind its end"),
    "a bomb behind the end": (lambda: packed(lambda tar: tar + bytes(8 * 2**20)), "bomb"),
    "content": (flipped, "CRC check failed"),
    "trailer": (lambda: changed(whole := packed(lambda tar: tar), len(whole) - 8, b"\0\0\0\0"), "CRC check failed"),
    "length in the trailer": (lambda: changed(whole := packed(lambda tar: tar), len(whole) - 4, b"\0\0\0\0"), "length"),
    "no trailer": (lambda: packed(lambda tar: tar)[:-8], "broken"),
    "half a trailer": (lambda: packed(lambda tar: tar)[:-4], "broken"),
    "something behind gzip": (lambda: packed(lambda tar: tar) + b"text", "broken"),
    "file without a name": (lambda: named(tarfile.REGTYPE, "."), "is a folder, and has content"),
    "folder with content": (lambda: named(tarfile.DIRTYPE, "b.csv"), "is a folder, and has content"),
    "zip folder by its mode": (lambda: zipped("b.csv", stat.S_IFDIR | 0o755), "is a folder, and has content"),
    "zip folder by its name": (lambda: zipped("b/", stat.S_IFREG | 0o644), "is a folder, and has content"),
    "zip with an entry swallowed": (swallowed, "does not name all"),
    "zip cut behind an inner zip": (cut_behind_an_inner_zip, "does not name all"),
}
