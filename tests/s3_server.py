"""A real S3 server on loopback for tests: moto's, in an environment of its own, or the one that LABSITE_TEST_S3 names
(`endpoint key secret bucket`)."""

import http.client
import os
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import obstore
import pytest
from django.conf import settings
from obstore.store import S3Store

from workspaces.bucket import Bucket

SERVER = Path(settings.BASE_DIR) / ".venv-s3" / "bin" / "moto_server"


@dataclass(frozen=True, slots=True)
class S3Server:
    endpoint: str
    key: str
    secret: str
    bucket: str

    def region(self, folder: Path, *, copy_bytes: int = 1_000_000_000) -> Bucket:
        """A place of its own in the bucket, with the keys where an installation has them."""
        keys = folder / "keys"
        keys.touch(mode=0o600)
        keys.write_text(f"{self.key}:{self.secret}\n")
        return Bucket(self.bucket, f"tests/{secrets.token_hex(6)}", folder / "here", keys, self.endpoint, copy_bytes=copy_bytes)

    def client(self, bucket: Bucket) -> S3Store:
        """For the test itself, beside the store."""
        return S3Store(
            bucket.bucket, prefix=bucket.prefix, endpoint=self.endpoint, region="us-east-1", access_key_id=self.key, secret_access_key=self.secret,
            client_options={"allow_http": True},
        )  # fmt: skip

    def names(self, bucket: Bucket) -> list[str]:
        """Keys of all objects below the prefix."""
        return sorted(entry["path"] for batch in obstore.list(self.client(bucket)) for entry in batch)


@contextmanager
def running_server() -> Iterator[S3Server]:
    """Skips the test where there is none."""
    named = os.environ.get("LABSITE_TEST_S3", "").split()
    if named:
        yield S3Server(*named)
        return
    if not SERVER.exists():
        pytest.skip("no S3 server here; `make .venv-s3/installed` makes its environment")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(  # our own server, on loopback
        [SERVER, "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while not _answers(port) and time.monotonic() < deadline:
            time.sleep(0.1)  # until the deadline above
        line = http.client.HTTPConnection("127.0.0.1", port)
        line.request("PUT", "/lab-tests")  # moto asks nobody for a signature
        assert line.getresponse().status == 200
        line.close()
        yield S3Server(f"http://127.0.0.1:{port}", "AKIAEXAMPLE", "a-secret-key", "lab-tests")
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0
