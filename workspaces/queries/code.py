"""The code of an agent version: one file as lines to read, and the whole bundle as a zip. Nothing of it is executed or unpacked."""

import tempfile
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from workspaces.local_store import StoreDamaged
from workspaces.models import Agent, AgentFile, AgentVersion, NotFound
from workspaces.queries.registry import beginning_of, find_agent_file, find_agent_version, stored_content

SHOWN_BYTES = 256 * 1024
SHOWN_LINES, SHOWN_COLUMNS = 3_000, 1_000
IN_MEMORY = 4 * 1024 * 1024
CHUNK = 65_536
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say: the same version is the same bytes


@dataclass(frozen=True, slots=True)
class Code:
    """`lines` is None where the file is no UTF-8 text; `is_cut`: there is more than is shown."""

    version: AgentVersion
    file: AgentFile
    lines: list[str] | None
    is_cut: bool


def code_of(agent: Agent, version: str, path: str) -> Code:
    """The beginning of one file of an agent's version. Raises NotFound."""
    found = find_agent_version(agent, version)
    file = find_agent_file(found, path)
    text, is_cut = beginning_of(file.blob, SHOWN_BYTES)
    if text is None:
        return Code(found, file, None, is_cut)
    lines = text.split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    cut = is_cut or len(lines) > SHOWN_LINES or any(len(line) > SHOWN_COLUMNS for line in lines)
    return Code(found, file, [_shown(line) for line in lines[:SHOWN_LINES]], cut)


def _shown(line: str) -> str:
    """A line as it is read by a machine: characters that would hide or reorder what stands there are written out."""
    line = line.removesuffix("\r")[:SHOWN_COLUMNS]
    hidden = {character for character in line if character != "\t" and unicodedata.category(character) in ("Cc", "Cf")}
    return "".join(f"\\u{ord(character):04x}" if character in hidden else character for character in line) if hidden else line


def bundle_of(version: AgentVersion) -> tuple[Iterator[bytes], int]:
    """All files of the version as a zip, and its size in bytes. Raises NotFound where the store has lost one, or has other bytes."""
    packed = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # _Pieces closes it
    try:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in version.files.select_related("blob").order_by("path"):
                entry = zipfile.ZipInfo(file.path, ZIP_EPOCH)
                entry.external_attr = (0o100755 if file.is_executable else 0o100644) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                with archive.open(entry, "w") as target:
                    for chunk in stored_content(file.blob):
                        target.write(chunk)
    except BaseException as error:
        packed.close()
        if isinstance(error, StoreDamaged):
            raise NotFound("file") from error
        raise
    size = packed.tell()
    packed.seek(0)
    return _Pieces(packed), size


class _Pieces:
    """The pieces of a file that is closed at its end, or with the answer that carries it: a generator that nobody starts closes nothing."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = self.file.read(CHUNK)
        if not piece:
            self.file.close()
            raise StopIteration
        return piece

    def close(self) -> None:
        self.file.close()
