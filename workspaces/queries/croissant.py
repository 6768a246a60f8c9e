"""A version of a dataset as its Croissant says it."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from workspaces.audit import Refusal
from workspaces.croissant import Described, DescribedFile, document_of, published_on
from workspaces.croissant_tables import Column, columns_of
from workspaces.models import Dataset, DatasetFile, DatasetVersion, NotFound
from workspaces.queries.registry import beginning_of, files_of

BYTES = 65_536  # of a table, to know its columns by
MOST_TABLES = 20  # of a version; of further ones the file is named, and no column
DELIMITERS = {"csv": ",", "tsv": "\t"}


def croissant_of(dataset: Dataset, version: DatasetVersion | None, *, page: str, address: Callable[[str], str]) -> dict[str, Any]:
    """The JSON-LD. `page`: the dataset's own address; `address`: where a file of the version is served. What grows has no files of its own: its
    windows do."""
    name = f"{dataset.name}, version {version.number}" if version else dataset.name
    hashed = (
        f", SHA-256 of its manifest's tree {version.content_hash}" if version and version.hash_form == DatasetVersion.HashForm.TREE else ""
    )
    files = files_of(version) if version else []
    columns = _columns_of(files)
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
            files=tuple(
                DescribedFile(file.path, address(file.path), file.blob.sha256, file.blob.bytes, columns.get(file.path, ()))
                for file in files
            ),
        )
    )


def _tables(files: Iterable[DatasetFile]) -> Iterable[tuple[DatasetFile, str]]:
    """The first tables, each with what stands between its cells."""
    endings = ((file, file.path.rpartition(".")[2].lower()) for file in files)
    return islice(((file, DELIMITERS[ending]) for file, ending in endings if ending in DELIMITERS), MOST_TABLES)


def _columns_of(files: Iterable[DatasetFile]) -> dict[str, tuple[Column, ...]]:
    """By path, as far as the store can be asked: what else is known of the files is said all the same."""
    found = {}
    for file, delimiter in _tables(files):
        try:
            text, is_cut = beginning_of(file.blob, BYTES)
        except NotFound:
            continue
        except Refusal:  # the store is away: the next file would be waited for as long
            break
        if text is not None:
            found[file.path] = columns_of(text, delimiter=delimiter, is_cut=is_cut)
    return found
