"""Addresses of files on other machines as people write them, https or s3, and what is asked for: for S3 an address that is signed anew for each
request, so that one reader, with one guard, reads both. Pure.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from runs.outbound import Forbidden, Listed, target_of

if TYPE_CHECKING:
    from obstore.store import S3Credential  # the library has the name for readers of types alone

SIGNED_FOR = timedelta(minutes=10)  # to begin an answer; what is under way goes on
DEFAULT_REGION = "us-east-1"
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
REGION = re.compile(r"[a-z0-9-]{1,40}")


@dataclass(frozen=True, slots=True)
class Place:
    """A file elsewhere: what people call it, its own name, and how its address is made for one request."""

    shown: str
    name: str
    sign: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Keys:
    access_key_id: str
    secret_access_key: str


def keys_of(value: str) -> Keys:
    """Out of a secret's value, `ACCESS_KEY_ID:SECRET_ACCESS_KEY`. Forbidden for anything else; nothing of it is said."""
    key, colon, secret = value.strip().partition(":")
    if not colon or not key or not secret:
        raise Forbidden("The secret is not of the form ACCESS_KEY_ID:SECRET_ACCESS_KEY.")
    return Keys(key, secret)


def place_of(address: str, *, endpoint: str = "", region: str = "", keys: Keys | None = None, listed: Listed = ()) -> Place:
    """Forbidden for what is no address that may be read; where its host lies is looked at when it is read."""
    if not address.startswith("s3://"):
        target = target_of(address, listed)
        return Place(target.shown, _name(target.path.partition("?")[0]), lambda: address)
    bucket, _, key = address.removeprefix("s3://").partition("/")
    if not BUCKET.fullmatch(bucket) or not key or key.endswith("/") or len(key.encode()) > 1024:
        raise Forbidden(f"{address[:200]} names no object; write s3://bucket/key.")
    if region and not REGION.fullmatch(region):
        raise Forbidden(f"{region[:40]} is no region of S3.")
    region = region or DEFAULT_REGION
    base = endpoint.rstrip("/") or f"https://s3.{region}.amazonaws.com"
    target = target_of(base, listed)
    if target.path != "/":
        raise Forbidden("An S3 endpoint is scheme, host and port, without a path.")
    if keys is None:
        return Place(f"s3://{bucket}/{key}", _name(key), lambda: f"{base}/{bucket}/{quote(key)}")
    import obstore  # noqa: PLC0415  # 4 MB in each process, and none but those that read from buckets need it
    from obstore.store import S3Store  # noqa: PLC0415

    store = S3Store(
        bucket, endpoint=base, region=region, credential_provider=lambda: _credential(keys), virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )  # fmt: skip
    return Place(f"s3://{bucket}/{key}", _name(key), lambda: str(obstore.sign(store, "GET", key, SIGNED_FOR)))


def _credential(keys: Keys) -> "S3Credential":
    """Through a provider, since beside plain keys the library takes what the machine's environment holds, and a session's token of this machine
    would be signed into what strangers get."""
    return {"access_key_id": keys.access_key_id, "secret_access_key": keys.secret_access_key, "token": None, "expires_at": None}


def _name(path: str) -> str:
    """The last part of a path, as a file may be called; `file` where it ends in none."""
    return unquote(urlsplit(path).path.rpartition("/")[2]) or "file"
