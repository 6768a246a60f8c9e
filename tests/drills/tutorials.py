"""Every command of docs/laboratories.md, and the README's by curl, run against a labsite that is started for that, once both laboratories
have done their first work: `python tests/drills/tutorials.py`.

Each block must end with code 0; blocks of a document share their variables. The README's last one breaks the record, and must be told so.
Target: the first finished run of each laboratory within 90 s of `manage.py up` on an installed environment; missed, the exit code is 1.
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

from tests.targets import judged, leave
from tests.tutorial_blocks import blocks

ROOT = Path(__file__).resolve().parent.parent.parent
README_BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WAIT_SECONDS, FIRST_SECONDS = 420, 90
READ_KEY = """read_key() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"; }"""


def readme_script(base: str) -> tuple[str, str]:
    """The README's commands by curl, and those that break the record. An id that a reader copies from an answer is taken from it."""
    found = README_BLOCK.findall((ROOT / "README.md").read_text())
    by_curl, approving, breaking = (
        next(block for block in found if word in block) for word in ("API=http", "APPROVAL_ID", "dbshell --owner")
    )
    before, request, after = by_curl.replace("http://127.0.0.1:8000", base).partition("lab $API/runs -H")
    body, end, after = after.partition("}'\n")
    launch = request + body + end.rstrip("\n")
    held = launch.replace('"gpu_hours": 0.05', '"gpu_hours": 2').replace("Idempotency-Key: first", "Idempotency-Key: held")
    assert held != launch
    parts = [
        before + launch + " > run.json", f"RUN_ID=$(read_key run.json id)\n{after.replace('RUN_ID', '$RUN_ID')}",
        f"{held} > held.json\nAPPROVAL_ID=$(read_key held.json approval)\nlab $API/approvals/$APPROVAL_ID > approval.json",
        "CONTENT_HASH=$(read_key approval.json content_hash)",
        approving.replace("APPROVAL_ID", "$APPROVAL_ID").replace("CONTENT_HASH", "'$CONTENT_HASH'"),
    ]  # fmt: skip
    return "\n".join(parts), breaking


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
                seconds = time.monotonic() - began
                verdict = judged(f"first finished run of {workspace}", seconds <= FIRST_SECONDS)
                print(f"{workspace}: first finished run after {seconds:.0f} s    target {FIRST_SECONDS} s: {verdict}", flush=True)
            if len(found) >= count:
                del left[workspace]
                print(f"{workspace}: {len(found)} runs succeeded after {time.monotonic() - began:.0f} s", flush=True)
        time.sleep(1)
    if left:
        raise SystemExit(f"not within {WAIT_SECONDS} s: {left}")


def follow_readme(base: str, folder: Path, environment: dict[str, str]) -> None:
    by_curl, breaking = readme_script(base)
    # The README's commands name files of the checkout; answers are kept in the drill's folder.
    keep = re.sub(r"\b(run|held|approval)\.json", rf"{folder}/\1.json", f"{READ_KEY}\n{by_curl}")
    subprocess.run(["bash", "-c", f"set -euo pipefail\n{keep}"], cwd=ROOT, env=environment, check=True, timeout=120)
    print("\nthe README's commands by curl ran")
    done = subprocess.run(["bash", "-ec", breaking], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert "UPDATE 1" in done.stdout or "UPDATE 2" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1, f"the record was rewritten unnoticed: {done.stdout}{done.stderr}"
    print("the README's change of the record was noticed:", done.stdout.strip().splitlines()[-1])


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="labsite-tutorials-") as folder:
        port = free_port()
        base = f"http://127.0.0.1:{port}"
        os.chmod(folder, 0o711)  # noqa: S103  # users of runs pass through to their folders
        environment = os.environ | {
            "LABSITE_HOME": f"{folder}/home", "LABSITE_RUNS": f"{folder}/runs", "LABSITE_PORT": str(port), "LABSITE": base,
            "no_proxy": "*",
        }  # fmt: skip
        Path(folder, "runs").mkdir(mode=0o711)
        subprocess.run([sys.executable, "-m", "labsite.embedded.pool_python", f"{folder}/runs"], cwd=ROOT, env=environment, check=True)
        began = time.monotonic()
        up = subprocess.Popen([sys.executable, "manage.py", "up"], cwd=ROOT, env=environment, start_new_session=True)
        try:
            wait_for({"autogo-main": 9, "w2s-medqa": 26}, base, environment, began=began)
            script = "set -euo pipefail\n" + "\n".join(blocks())
            subprocess.run(["bash", "-c", script], cwd=ROOT, env=environment, check=True, timeout=120)
            print(f"{len(blocks())} blocks of commands ran")
            follow_readme(base, Path(folder), environment)
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(60)


if __name__ == "__main__":
    main()
    leave()
