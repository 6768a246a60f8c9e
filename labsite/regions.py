"""Where the files of workspaces lie: regions, each a name and a folder or a bucket of S3, of which a workspace has one."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from workspaces.bucket import Bucket

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}(?:/[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}){0,7})?")
_S3_REGION = re.compile(r"[a-z0-9-]{1,40}")


def read_regions(text: str, *, own: Path, closed: Iterable[Path], home: Path, told: Mapping[str, str]) -> dict[str, Path | Bucket]:
    """Regions by name, from `name=folder` and `name=s3://bucket/prefix` pairs between commas. `local` is always among them: `own`, unless the
    text says another place. What a bucket needs besides stands in `told` (the environment), its keys in `home`.

    `closed` are folders in which no region may lie, and which none may hold. Raises ValueError with a sentence for the operator.
    """
    named: dict[str, Path | Bucket] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        name, equals, place = pair.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise ValueError(f"{pair[:80]!r} is no name=folder; a name has lower-case letters, digits, - and _, 64 at most")
        if name in named:
            raise ValueError(f"the region {name} is named twice")
        if place.startswith("s3://"):
            named[name] = _bucket(name, place, home, told)
        elif not Path(place).is_absolute():
            raise ValueError(f"the folder of the region {name} is not a whole path: {place[:80]!r}")
        else:
            named[name] = Path(place)
    regions = {"local": own} | named
    _demand_apart({name: root for name, root in regions.items() if isinstance(root, Path)}, closed)
    _demand_buckets_apart({name: bucket for name, bucket in regions.items() if isinstance(bucket, Bucket)})
    return regions


def missing_regions(regions: Mapping[str, Path | Bucket], *, home: Path) -> list[str]:
    """Names of the regions whose folder is not there, as where a disk is not mounted, or whose keys are not. A folder in `home` is made with
    its first file. No bucket is asked: one that is away for a minute takes no site down."""
    return sorted(name for name, place in regions.items() if not _is_there(place, home))


def _is_there(place: Path | Bucket, home: Path) -> bool:
    if isinstance(place, Bucket):
        return place.keys_file.is_file()
    return (place.parent if place.is_relative_to(home) else place).is_dir()


def _bucket(name: str, address: str, home: Path, told: Mapping[str, str]) -> Bucket:
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    prefix = prefix.rstrip("/")
    if not _BUCKET.fullmatch(bucket) or not _PREFIX.fullmatch(prefix):
        raise ValueError(f"the region {name} is no s3://bucket/prefix: {address[:80]!r}")
    words = f"LABSITE_S3_{name.upper().replace('-', '_')}"
    endpoint, region = told.get(f"{words}_ENDPOINT", "").rstrip("/"), told.get(f"{words}_REGION", "us-east-1")
    if endpoint:
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.path or parts.query or parts.fragment:
            raise ValueError(f"{words}_ENDPOINT is scheme, host and port, such as https://s3.example.org, without a path or keys")
    if not _S3_REGION.fullmatch(region):
        raise ValueError(f"{words}_REGION is no region of S3: {region[:40]!r}")
    size = told.get(f"{words}_COPIES", "20000000000")
    if not (size.isascii() and size.isdigit() and len(size) < 19):
        raise ValueError(f"{words}_COPIES is bytes: {size[:40]!r}")
    return Bucket(bucket, prefix, home / "store" / f"{name}.s3", home / "keys" / f"s3.{name}", endpoint, region, int(size))


def _demand_apart(folders: dict[str, Path], closed: Iterable[Path]) -> None:
    whole = {name: root.resolve() for name, root in folders.items()}
    for name, root in whole.items():
        for other, place in whole.items():
            if other != name and root.is_relative_to(place):
                raise ValueError(f"the folder of the region {name} lies in that of {other}: {folders[name]}")
        for place in (path.resolve() for path in closed):
            if root.is_relative_to(place) or place.is_relative_to(root):
                raise ValueError(f"the folder of the region {name} must lie outside of {place}, and not around it: {folders[name]}")


def _demand_buckets_apart(buckets: dict[str, Bucket]) -> None:
    for name, bucket in buckets.items():
        for other, place in buckets.items():
            is_same = other != name and (bucket.endpoint, bucket.bucket) == (place.endpoint, place.bucket)
            if is_same and f"{bucket.prefix}/".startswith(f"{place.prefix}/" if place.prefix else ""):
                raise ValueError(f"the place of the region {name} lies in that of {other}: s3://{bucket.bucket}/{bucket.prefix}")
