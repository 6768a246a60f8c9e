"""Every command of docs/laboratories.md, run against a labsite that is started for that, once both laboratories have done their first work.

Each `sh` block must end with code 0; blocks share their variables. Prints how long the first finished run of each laboratory took.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BLOCK = re.compile(r"^([ ]*)```sh\n(.*?)^[ ]*```$", re.MULTILINE | re.DOTALL)
WAIT_SECONDS = 420


def blocks() -> list[str]:
    text = (ROOT / "docs" / "laboratories.md").read_text()
    return ["\n".join(line.removeprefix(indent) for line in body.splitlines()) for indent, body in BLOCK.findall(text)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def asked(url: str, token: str) -> dict[str, object]:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310  # our own address
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
        return dict(json.load(answer))


def token_of(workspace: str, environment: dict[str, str]) -> str:
    command = [sys.executable, "manage.py", "create_token", "--as", "admin", "--user", "admin", "--workspace", workspace]
    command += ["--scopes", "run:read", "--days", "1"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.strip().splitlines()[-1] if done.returncode == 0 else ""


def wait_for(wanted: dict[str, int], base: str, environment: dict[str, str], *, began: float) -> None:
    """Until so many runs of each workspace have succeeded; prints when the first of each had, and when all had."""
    tokens, firsts, left = dict.fromkeys(wanted, ""), set[str](), dict(wanted)
    while left and time.monotonic() - began < WAIT_SECONDS:
        for workspace, count in list(left.items()):
            tokens[workspace] = tokens[workspace] or token_of(workspace, environment)
            if not tokens[workspace]:
                continue
            found = asked(f"{base}/api/v1/workspaces/{workspace}/runs?status=succeeded", tokens[workspace])["items"]
            assert isinstance(found, list)
            if found and workspace not in firsts:
                firsts.add(workspace)
                print(f"{workspace}: first finished run after {time.monotonic() - began:.0f} s", flush=True)
            if len(found) >= count:
                del left[workspace]
                print(f"{workspace}: {len(found)} runs succeeded after {time.monotonic() - began:.0f} s", flush=True)
        time.sleep(1)
    if left:
        raise SystemExit(f"not within {WAIT_SECONDS} s: {left}")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="labsite-tutorials-") as folder:
        port = free_port()
        base = f"http://127.0.0.1:{port}"
        os.chmod(folder, 0o711)  # noqa: S103  # users of runs pass through to their folders
        environment = os.environ | {
            "LABSITE_HOME": f"{folder}/home", "LABSITE_RUNS": f"{folder}/runs", "LABSITE_PORT": str(port), "LABSITE": base,
        }  # fmt: skip
        began = time.monotonic()
        up = subprocess.Popen([sys.executable, "manage.py", "up"], cwd=ROOT, env=environment, start_new_session=True)
        try:
            wait_for({"autogo-main": 9, "w2s-medqa": 28}, base, environment, began=began)
            script = "set -euo pipefail\n" + "\n".join(blocks())
            subprocess.run(["bash", "-c", script], cwd=ROOT, env=environment, check=True, timeout=120)
            print(f"{len(blocks())} blocks of commands ran")
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(60)


if __name__ == "__main__":
    main()
