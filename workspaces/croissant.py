"""Croissant 1.1 (MLCommons, 2026), the JSON-LD of data sets: written by hand and read with suspicion. Pure.

Written is what labsite knows: files with their hashes, licence, version, where it is from, and the columns of a table that names them. Read are
the file objects with an address and a SHA-256 of their own; what is inside an archive, or named by a pattern, is refused in words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workspaces.croissant_tables import Column
from workspaces.licences import BadLicence, address_of, expression_of

CONFORMS_TO = "http://mlcommons.org/croissant/1.1"
CONFORMS = re.compile(r"https?://mlcommons\.org/croissant/1\.[01]")
# The context of the specification, word for word: its readers compare.
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
FORMATS = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "json": "application/json",
    "jsonl": "application/jsonlines",
    "ndjson": "application/jsonlines",
    "parquet": "application/vnd.apache.parquet",
    "txt": "text/plain",
    "zip": "application/zip",
    "gz": "application/gzip",
}
SHA256 = re.compile(r"[0-9a-fA-F]{64}")
CREATIVE_COMMONS = re.compile(r"https?://creativecommons\.org/licenses/([a-z-]+)/(\d\.\d)(?:/.*)?")
CC0 = re.compile(r"https?://creativecommons\.org/publicdomain/zero/1\.0(?:/.*)?")


class BadCroissant(ValueError):  # an answer for people
    """A description that is not taken; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class DescribedFile:
    """`address` is absolute. `bytes` is None where the description does not say them."""

    path: str
    address: str
    sha256: str
    bytes: int | None
    columns: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A data set as a Croissant says it; `licence` is an SPDX expression, `version` a text such as 3.0.0."""

    name: str
    description: str = ""
    licence: str = ""
    url: str = ""
    version: str = ""
    published: str = ""
    creator: str = ""
    cite_as: str = ""
    is_live: bool = False
    files: tuple[DescribedFile, ...] = ()


def document_of(data: Described) -> dict[str, Any]:
    """The JSON-LD. What is not known is left out, but for a licence of which that is said."""
    said = {
        "description": data.description,
        "license": address_of(data.licence) or data.licence,
        "url": data.url,
        "version": data.version,
        "datePublished": data.published,
        "creator": {"@type": "sc:Person", "name": data.creator} if data.creator else None,
        "citeAs": data.cite_as,
    }
    tables = [_record_set(file, number) for number, file in enumerate(data.files, start=1) if file.columns]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": data.name,
        **{key: value for key, value in said.items() if value},
        "isLiveDataset": data.is_live,
        "distribution": [_file_object(file, number) for number, file in enumerate(data.files, start=1)],
        **({"recordSet": tables} if tables else {}),
    }


def published_on(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d")


def read_document(document: object) -> Described:
    """What a Croissant says, with each file's address and SHA-256. Raises BadCroissant."""
    try:
        return _read(document)
    except RecursionError as error:
        raise BadCroissant("It is nested too deep to be read.") from error


def _read(document: object) -> Described:
    if not isinstance(document, dict):
        raise BadCroissant("A Croissant is a JSON object.")
    conforms = document.get("conformsTo", document.get("dct:conformsTo"))
    named = [conforms] if isinstance(conforms, str | dict) else conforms if isinstance(conforms, list) else []
    if not any(CONFORMS.fullmatch(_text(entry)) for entry in named):
        raise BadCroissant(f"It does not say that it conforms to {CONFORMS_TO}.")
    name = _text(document.get("name"))
    if not name:
        raise BadCroissant("It has no name.")
    distribution = document.get("distribution")
    entries = distribution if isinstance(distribution, list) else [distribution] if distribution else []
    if not entries:
        raise BadCroissant("It names no file: its distribution is empty.")
    return Described(
        name=name,
        description=_text(document.get("description")),
        licence=licence_in(document.get("license")),
        url=_text(document.get("url")),
        version=_text(document.get("version")),
        published=_text(document.get("datePublished")),
        creator=_person(document.get("creator")),
        cite_as=_text(document.get("citeAs")),
        is_live=document.get("isLiveDataset") is True,
        files=tuple(_described_file(entry) for entry in entries),
    )


def licence_in(value: object) -> str:
    """An SPDX expression for what a Croissant says of its licence; LicenseRef-… for what SPDX does not list, nothing for nothing."""
    text = _text(value if not isinstance(value, list) else value[0] if value else "")
    bare = re.sub(r"^https?://(?:www\.)?spdx\.org/licenses/", "", text).removesuffix(".html").strip("/")
    creative = CREATIVE_COMMONS.fullmatch(text)
    if creative is not None:
        bare = f"CC-{creative[1].upper()}-{creative[2]}"
    elif CC0.fullmatch(text):
        bare = "CC0-1.0"
    try:
        return expression_of(bare)
    except BadLicence:
        return f"LicenseRef-{re.sub('[^A-Za-z0-9.-]+', '-', bare).strip('-.')[:100] or 'unnamed'}"


def _file_object(file: DescribedFile, number: int) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": f"file-{number}",  # readers take no blanks in it
        "name": file.path,
        "contentUrl": file.address,
        "contentSize": f"{file.bytes} B",
        "encodingFormat": FORMATS.get(file.path.rpartition(".")[2].lower(), "application/octet-stream"),
        "sha256": file.sha256,
    }


def _record_set(file: DescribedFile, number: int) -> dict[str, Any]:
    """The rows of a table. Names of columns stand in `name` and `column` alone: an `@id` would not take every one."""
    return {
        "@type": "cr:RecordSet",
        "@id": f"rows-{number}",
        "name": file.path,
        "description": f"Rows of {file.path}, by its header.",
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"rows-{number}/{place}",
                "name": column.name,
                "dataType": column.data_type,
                "source": {"fileObject": {"@id": f"file-{number}"}, "extract": {"column": column.name}},
            }
            for place, column in enumerate(file.columns, start=1)
        ],
    }


def _described_file(entry: object) -> DescribedFile:
    if not isinstance(entry, dict):
        raise BadCroissant("An entry of its distribution is no object.")
    shown = (_text(entry.get("name")) or _text(entry.get("@id")))[:100]
    kind = _text(entry.get("@type")).rpartition(":")[2].rpartition("/")[2]
    if kind != "FileObject":
        raise BadCroissant(f"{shown or 'An entry'} is a {kind[:40] or 'thing without type'}: files are taken one by one, not by a pattern.")
    if entry.get("containedIn"):
        raise BadCroissant(f"{shown} is inside another file; name the archive itself, or the file by an address of its own.")
    sha256 = _text(entry.get("sha256"))
    if not SHA256.fullmatch(sha256):
        raise BadCroissant(f"{shown} has no SHA-256, so what comes could not be checked against it.")
    address = _text(entry.get("contentUrl"))
    if not address.startswith(("https://", "http://", "s3://")):
        raise BadCroissant(f"{shown} has no address of its own: contentUrl is {address[:100] or 'empty'}.")
    size = re.fullmatch(r"(\d{1,18}) ?(?:B|bytes)?", _text(entry.get("contentSize")))
    return DescribedFile(_text(entry.get("name")) or _text(entry.get("@id")), address, sha256.lower(), int(size[1]) if size else None)


def _person(value: object) -> str:
    people = value if isinstance(value, list) else [value]
    names: Sequence[str] = [_text(person.get("name")) if isinstance(person, dict) else _text(person) for person in people]
    return ", ".join(name for name in names if name)[:200]


def _text(value: object) -> str:
    """A text as JSON-LD may spell it: plain, by language, as a value, as a thing with an address."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list):
        return _text(value[0]) if value else ""
    if isinstance(value, dict):
        found = next((value[key] for key in ("@value", "en", "@id", "url", "name") if key in value), None)
        return _text(found if found is not None else next(iter(value.values()), ""))
    return ""
