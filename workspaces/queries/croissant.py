"""A version of a dataset as its Croissant says it."""

from collections.abc import Callable
from typing import Any

from workspaces.croissant import Described, DescribedFile, document_of, published_on
from workspaces.models import Dataset, DatasetVersion
from workspaces.queries.registry import files_of


def croissant_of(dataset: Dataset, version: DatasetVersion | None, *, page: str, address: Callable[[str], str]) -> dict[str, Any]:
    """The JSON-LD. `page`: the dataset's own address; `address`: where a file of the version is served. What grows has no files of its own: its
    windows do."""
    name = f"{dataset.name}, version {version.number}" if version else dataset.name
    hashed = (
        f", SHA-256 of its manifest's tree {version.content_hash}" if version and version.hash_form == DatasetVersion.HashForm.TREE else ""
    )
    files = files_of(version) if version else []
    return document_of(
        Described(
            name=dataset.name,
            description=dataset.description or dataset.name,
            licence=version.licence if version and version.licence else dataset.licence,
            url=page,
            version=f"{version.number}.0.0" if version else "0.0.0",
            published=published_on(version.created_at if version else dataset.created_at),
            creator=version.created_by.label if version else "",
            cite_as=f"{name} ({(version or dataset).public_id}{hashed}), {page}",
            is_live=dataset.is_live,
            files=tuple(DescribedFile(file.path, address(file.path), file.blob.sha256, file.blob.bytes) for file in files),
        )
    )
