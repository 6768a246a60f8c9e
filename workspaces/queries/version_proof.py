"""The proof that a version holds one file: from the version's one hash alone, without the rest of its manifest."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workspaces import manifest
from workspaces.audit import Refusal
from workspaces.models import DatasetVersion, NotFound


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    sha256: str
    bytes: int


def proof_in(version: DatasetVersion, path: str) -> dict[str, Any]:
    """The proof as its reader gets it (docs/version_proof.md). Raises NotFound; refuses a version whose hash proves no single file."""
    if version.hash_form != manifest.TREE:
        raise Refusal(
            f"Version {version.number} was frozen under a hash of its whole manifest, which proves all files together and none alone; its next "
            "version has a tree."
        )
    try:
        proof = manifest.proof_of(_entries(version), path)
    except LookupError as error:
        raise NotFound("file") from error
    return {
        "version": version.public_id,
        "content_hash": version.content_hash,
        "entry": proof.entry,
        "index": proof.place,
        "count": proof.count,
        "hashes": list(proof.hashes),
    }


def _entries(version: DatasetVersion) -> Iterator[_Entry]:
    for path, sha256, size in version.files.values_list("path", "blob__sha256", "blob__bytes"):
        yield _Entry(path, sha256, size)
