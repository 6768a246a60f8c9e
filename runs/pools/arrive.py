"""Put labsite's files below a pool's root on its host. Sent to the host's own Python through its stdin; standard library only.

Reads one line of JSON (`root`, `name`, `files` by name, `new` where the root may be made) and answers with one. A copy is whole or absent:
it is written beside its place and gets its name, the hash of its content, at the end.
"""

import hashlib
import json
import os
import shutil
import sys

OLDEST = (3, 8)
PLACE = "launcher"  # below the root


def digest(files: "dict[str, str]") -> str:
    """A hash over names and content, which names the copy."""
    found = hashlib.sha256()
    for name, content in sorted(files.items()):
        raw = content.encode()
        found.update(f"{name}\0{len(raw)}\0".encode() + raw)
    return found.hexdigest()[:32]


def arrive(root: str, name: str, files: "dict[str, str]", *, new: bool) -> str:
    """Write the copy, unless it is there; empty, or why not, in words. Raises OSError where the disk does not take it."""
    if sys.version_info < OLDEST:
        return f"Python 3.8 or newer is needed there, and this one is {sys.version.split()[0]}"
    if digest(files) != name:
        return "the files did not arrive as they were sent"
    if not new and not os.path.isdir(root):
        return f"the pool's folder {root} is not there"
    place = os.path.join(os.path.abspath(root), PLACE)
    if not os.path.isdir(root):
        os.makedirs(root, mode=0o711, exist_ok=True)  # users of attempts pass through it, where they have some
    os.makedirs(place, mode=0o700, exist_ok=True)
    draft = os.path.join(place, f".new-{os.urandom(8).hex()}")
    try:
        os.makedirs(os.path.join(draft, "runs", "pools"), mode=0o700)
        for file, content in files.items():
            path = os.path.join(draft, "runs", "pools", file)
            with open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags | os.O_EXCL, 0o400)) as target:
                target.write(content)
        os.rename(draft, os.path.join(place, name))
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        if not os.path.isdir(os.path.join(place, name)):
            raise OSError(error.errno, f"labsite's files could not be written below {root}: {error.strerror}") from error
    return ""


if __name__ == "__main__":
    asked = json.loads(sys.stdin.buffer.readline().decode())
    number = None
    try:
        said = arrive(asked["root"], asked["name"], asked["files"], new=asked["new"])
    except OSError as error:
        said, number = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror), error.errno
    sys.stdout.write("\n" + json.dumps({"labsite": said, "errno": number}) + "\n")
