"""Upload and download: `make bench BENCH=transfer ARGS="[--large] [--mlflow PATH]"`.

One file, over loopback, by one client that reads and writes pieces of 1 MiB: sent to labsite as a version of a dataset and fetched from there,
as labsite is served (gunicorn's command of `manage.py up`); and to a bare server of a few lines that reads, hashes and writes the same bytes,
forced to the same disk, and sends them back hashed. With `--mlflow` (the program of an environment of its own) also to the artifact proxy of an
MLflow server. Each upload is a file of its own everywhere, since writing over one whose pages are in memory is faster. All take turns, each upload
beside one of each other server: what counts is the median of the ratios of such pairs, so that it can be told on a machine that does other things
too. With `--large` the file has 1 GiB, else 256 MiB. Also a resumable upload in pieces of 64 MiB.
Targets: at least 60 % of the bare server's speed each way, in pieces too, and no slower than MLflow's proxy.
"""

import base64
import hashlib
import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django.setup()

from django.conf import settings  # noqa: E402  # after the settings are read, as everything below
from django.core.management import call_command  # noqa: E402

from labsite.management.commands.up import web_server  # noqa: E402
from tests.factories_people import make_token  # noqa: E402
from tests.factories_runs import make_laboratory  # noqa: E402
from tests.targets import judged, leave  # noqa: E402
from workspaces.commands.dataset import create_dataset  # noqa: E402

MIB = 1_048_576
SIZE = (1024 if "--large" in sys.argv else 256) * MIB
MLFLOW = sys.argv[sys.argv.index("--mlflow") + 1] if "--mlflow" in sys.argv else ""
SHARE, TURNS, PIECE = 0.6, 5, 64 * MIB
READY_SECONDS = 180


class Bare(BaseHTTPRequestHandler):
    """Reads, hashes and writes; reads, hashes and sends."""

    protocol_version = "HTTP/1.1"
    folder = Path()

    def do_PUT(self) -> None:
        left, digest = int(self.headers["Content-Length"]), hashlib.sha256()
        with (self.folder / self.path.strip("/")).open("wb") as file:
            while left:
                piece = self.rfile.read(min(MIB, left))
                digest.update(piece)
                file.write(piece)
                left -= len(piece)
            file.flush()
            os.fsync(file.fileno())
        self._head(len(digest.hexdigest()))
        self.wfile.write(digest.hexdigest().encode())

    def do_GET(self) -> None:
        digest = hashlib.sha256()
        self._head((self.folder / self.path.strip("/")).stat().st_size)
        with (self.folder / self.path.strip("/")).open("rb", buffering=0) as file:
            while piece := file.read(MIB):
                digest.update(piece)
                self.wfile.write(piece)

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _head(self, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()


class Client:
    """One client for all servers."""

    def __init__(self, port: int, **headers: str) -> None:
        self.port, self.headers = port, headers

    def ask(self, method: str, path: str, turn: int = -1, start: int = 0, count: int = 0, **headers: str) -> tuple[str, float]:
        """Send `count` bytes of a turn and read the answer; the header Location, and the seconds that it took."""
        began = time.perf_counter()
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        body = pieces(turn, start, count) if count else None
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request(method, path, body=body, headers={**self.headers, **sent, "Content-Length": str(count)})
        answer = line.getresponse()
        if answer.status >= 300:
            sys.exit(f"{method} {path} answered {answer.status}: {answer.read(2000)!r}")
        while answer.read(MIB):
            pass
        line.close()
        return answer.getheader("Location", ""), time.perf_counter() - began


def main() -> None:
    call_command("migrate", verbosity=0)
    laboratory = make_laboratory("bench")
    _, text = make_token(laboratory.workspace, laboratory.owner, "dataset:read", "dataset:write")
    with laboratory.opened():
        create_dataset(actor=laboratory.owner, slug="large")
    with tempfile.TemporaryDirectory(dir=settings.LABSITE_HOME) as folder, ExitStack() as running:
        ours = Client(running.enter_context(served(lambda port: web_server(f"127.0.0.1:{port}"), "/livez")), Authorization=f"Bearer {text}")
        bare = Client(running.enter_context(bare_server(Path(folder))))
        theirs = Client(running.enter_context(served(mlflow_command(Path(folder)), "/health"))) if MLFLOW else None
        measure(ours, bare, theirs)
    leave()


def measure(ours: Client, bare: Client, theirs: Client | None) -> None:
    base, proxy = "/api/v1/workspaces/bench", "/api/2.0/mlflow-artifacts/artifacts"
    sent: dict[str, list[float]] = {"labsite": [], "bare": [], "mlflow": [], "pieces": []}
    fetched: dict[str, list[float]] = {"labsite": [], "bare": [], "mlflow": []}
    for turn in range(1, TURNS + 1):
        sent["bare"].append(bare.ask("PUT", f"/{turn}", turn, 0, SIZE)[1])
        sent["labsite"].append(ours.ask("POST", f"{base}/datasets/large/versions?role=train&path=large.bin", turn, 0, SIZE)[1])
        if theirs is not None:
            sent["mlflow"].append(theirs.ask("PUT", f"{proxy}/{turn}.bin", turn, 0, SIZE)[1])
        began = time.perf_counter()
        in_pieces(ours, base, turn)
        sent["pieces"].append(time.perf_counter() - began)
        fetched["bare"].append(bare.ask("GET", f"/{turn}")[1])
        fetched["labsite"].append(ours.ask("GET", f"{base}/datasets/large/versions/{2 * turn - 1}/files/large.bin")[1])
        if theirs is not None:
            fetched["mlflow"].append(theirs.ask("GET", f"{proxy}/{turn}.bin")[1])
    tell("upload", sent)
    tell("download", fetched)


def tell(what: str, seconds: dict[str, list[float]]) -> None:
    speed = {name: SIZE / MIB / min(taken) for name, taken in seconds.items() if taken}
    print(f"{what} of {SIZE // MIB} MiB, the best of each, MiB/s: " + ", ".join(f"{name} {value:,.0f}" for name, value in speed.items()))
    share = beside(seconds["bare"], seconds["labsite"])
    print(f"  {share:.2f} of the bare server, at least {SHARE}: {judged(what, share >= SHARE)}")
    if "pieces" in seconds:
        share = beside(seconds["bare"], seconds["pieces"])
        print(f"  in pieces {share:.2f} of the bare server, at least {SHARE}: {judged(f'{what} in pieces', share >= SHARE)}")
    if seconds["mlflow"]:
        ratio = beside(seconds["mlflow"], seconds["labsite"])
        print(f"  {ratio:.2f} of MLflow's proxy, at least 1: {judged(f'{what} beside MLflow', ratio >= 1)}")


def beside(theirs: list[float], ours: list[float]) -> float:
    """How fast ours is for theirs: the median of what each turn says, whose two stood right beside each other."""
    ratios = [their / our for their, our in zip(theirs, ours, strict=True)]
    print("    by turn: " + ", ".join(f"{ratio:.2f}" for ratio in ratios))
    return median(ratios)


def in_pieces(ours: Client, base: str, turn: int) -> None:
    """By tus, each piece a request of its own."""
    told = f"filename {base64.b64encode(b'pieces.bin').decode()}"
    begun, _ = ours.ask("POST", f"{base}/uploads", Tus_Resumable="1.0.0", Upload_Length=str(SIZE), Upload_Metadata=told)
    place = urlsplit(begun).path
    for offset in range(0, SIZE, PIECE):
        kind = "application/offset+octet-stream"
        ours.ask("PATCH", place, TURNS + turn, offset, PIECE, Tus_Resumable="1.0.0", Upload_Offset=str(offset), Content_Type=kind)
    ours.ask("POST", f"{base}/datasets/large/versions?role=train&upload={place.rpartition('/')[2]}")


def pieces(turn: int, start: int, count: int) -> Iterator[bytes]:
    """Other bytes in each turn, so that nothing is there already."""
    block = bytearray(hashlib.shake_256(b"bench").digest(MIB))
    for number in range(start // MIB, (start + count) // MIB):
        block[:16] = turn.to_bytes(8, "big") + number.to_bytes(8, "big")
        yield bytes(block)


@contextmanager
def served(command_of: Callable[[int], list[str]], path: str) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(command_of(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + READY_SECONDS
        while not _answers(port, path):
            if time.monotonic() > deadline or process.poll() is not None:
                sys.exit(f"{command_of(port)[0]} does not answer")
            time.sleep(0.2)  # until the deadline above
        yield port
    finally:
        process.terminate()
        process.wait()


@contextmanager
def bare_server(folder: Path) -> Iterator[int]:
    """In a process of its own, as the others."""
    Bare.folder = folder
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bare)
    child = os.fork()
    if child == 0:
        server.serve_forever()
    try:
        yield server.server_port
    finally:
        os.kill(child, 15)
        os.waitpid(child, 0)
        server.server_close()


def mlflow_command(folder: Path) -> Callable[[int], list[str]]:
    store = f"sqlite:///{folder}/mlflow.db"
    return lambda port: [
        MLFLOW, "server", "--host", "127.0.0.1", "--port", str(port), "--backend-store-uri", store, "--artifacts-destination",
        str(folder / "mlflow"), "--serve-artifacts", "--workers", "2",
    ]  # fmt: skip


def _answers(port: int, path: str) -> bool:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        line.request("GET", path)
        return line.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        line.close()


if __name__ == "__main__":
    main()
