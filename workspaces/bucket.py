"""Where a region of S3 is. Apart from the store itself, whose library costs 4 MB: processes of installations without buckets do not load it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Bucket:
    """Where a region of S3 is: `local` is its folder on this machine, `keys_file` holds ACCESS_KEY_ID:SECRET_ACCESS_KEY and is readable to nobody
    else. An empty endpoint is Amazon's."""

    bucket: str
    prefix: str
    local: Path
    keys_file: Path
    endpoint: str = ""
    region: str = "us-east-1"
    copy_bytes: int = 20_000_000_000
