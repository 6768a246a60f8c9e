#!/usr/bin/env python3
"""Is this export of a labsite workspace whole, and its audit record unbroken?    python3 verify.py [FOLDER] [--key HEX]

Needs Python 3.8 and nothing else; signatures (Ed25519) are checked where the package `cryptography` is at hand, and it is said where not.
Without --key they are checked against the key that stands in the export itself: that shows that everything was signed by one holder, not whose
key it is. Compare it with the one that the installation states (page of the export, or `labsite` administrators).

Exit code: 0 whole, 1 something is wrong (the first fault of each kind is named), 2 this is no export that can be read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import stat
import sys
from typing import Any, Callable, Iterator

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    HAS_ED25519 = True
except ImportError:
    HAS_ED25519 = False

FORMAT, VERSION = "labsite.export", 1
CHUNK = 1 << 20
# Form 1 of the event's hash: canonical JSON (keys sorted, no blanks, UTF-8) of these columns, with the subjects' as lists.
EVENT = ("id", "workspace_id", "version", "sequence", "created_at", "recorded_at", "actor_kind", "actor_id", "actor_label", "behalf_id",
         "behalf_label", "verb", "subject_type", "subject_id", "subject_label", "command_id", "request_id", "job_id", "token_id",
         "payload_hash", "previous_hash")  # fmt: skip
SUBJECT = ("id", "position", "type", "object_id", "label", "before_hash", "after_hash", "created_at")


class Fault(Exception):  # the answer of a check
    """Something is not as the export says; the message is a sentence."""


def check(folder: str, say: Callable[[str], object], key: str = "") -> list[str]:
    """Look at everything; returns the faults as sentences, none where all is whole. Raises Fault where it is no export at all."""
    manifest, raw = read_manifest(folder)
    faults = []
    looks: list[tuple[str, Callable[[], str]]] = [
        ("files", lambda: check_files(folder, manifest)),
        ("contents", lambda: check_blobs(folder, manifest)),
        ("record", lambda: check_chain(folder, manifest)),
        ("checkpoints", lambda: check_checkpoints(folder, manifest, key)),
        ("signature", lambda: check_signature(folder, manifest, raw, key)),
    ]
    for words, look in looks:
        try:
            say(f"{words}: {look()}")
        except Fault as fault:
            faults.append(f"{words}: {fault}")
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            faults.append(f"{words}: cannot be read ({type(error).__name__}: {error})")
    return faults


def read_manifest(folder: str) -> tuple[dict[str, Any], bytes]:
    try:
        with open(os.path.join(folder, "MANIFEST.json"), "rb") as file:
            raw = file.read()
        manifest = json.loads(raw)
    except (OSError, ValueError) as error:
        raise Fault(f"MANIFEST.json cannot be read: {error}.") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise Fault("This is no export of labsite.")
    if manifest.get("version") != VERSION:
        raise Fault("This export has version {} of the format; this program knows {}.".format(manifest.get("version"), VERSION))
    return manifest, raw


def check_files(folder: str, manifest: dict[str, Any]) -> str:
    """Every file as the manifest says, and none besides."""
    listed = {entry["path"]: entry for entry in manifest["files"]}
    for path, entry in listed.items():
        size, digest, lines = measure(folder, path)
        if size != entry["bytes"]:
            raise Fault("{} has {} bytes, {} were written.".format(path, size, entry["bytes"]))
        if digest != entry["sha256"]:
            raise Fault(f"{path} was changed: its SHA-256 is another one.")
        if entry.get("rows") is not None and lines != entry["rows"]:
            raise Fault("{} has {} rows, {} were written.".format(path, lines, entry["rows"]))
    own = {"MANIFEST.json", "MANIFEST.sig"}
    for path in walk(folder):
        if path not in listed and path not in own and not path.startswith("blobs/"):
            raise Fault(f"{path} is not in the manifest.")
    return f"{len(listed)} as written"


def check_blobs(folder: str, manifest: dict[str, Any]) -> str:
    """Every stored file has the content that its name says."""
    named = set()
    count = total = 0
    for line in lines_of(folder, "blobs.jsonl"):
        sha256, path = line["sha256"], blob_path(line["sha256"])
        named.add(path)
        if sha256 in manifest["missing"]:
            continue
        size, digest, _ = measure(folder, path)
        if digest != sha256 or size != line["bytes"]:
            raise Fault(f"{path} was changed: it does not have the content that its name says.")
        count, total = count + 1, total + size
    for path in walk(os.path.join(folder, "blobs")):
        if "blobs/" + path not in named:
            raise Fault(f"blobs/{path} is not on the list.")
    gone = ", {} were missing in the store".format(len(manifest["missing"])) if manifest["missing"] else ""
    return f"{count} files with {total} bytes{gone}"


def check_chain(folder: str, manifest: dict[str, Any]) -> str:
    """Every event follows the one before it, and its hash is that of what is written."""
    subjects, payloads = Group(folder, "tables/event_subjects.jsonl"), Group(folder, "tables/event_payloads.jsonl")
    count, head, kept = 0, "0" * 64, 0
    for event in lines_of(folder, "tables/audit_events.jsonl"):
        count += 1
        if event["sequence"] != count:
            raise Fault("Event {} is missing: event {} stands in its place.".format(count, event["sequence"]))
        if event["previous_hash"] != head:
            raise Fault(f"Event {count} does not follow the event before it.")
        if event["version"] != 1:
            raise Fault("Event {} says version {} of the hash's form, which there is not.".format(count, event["version"]))
        stored = {name: event[name] for name in EVENT}
        stored["subjects"] = [[subject[name] for name in SUBJECT] for subject in subjects.of(event["id"])]
        if sha256_of(stored) != event["hash"]:
            raise Fault("Event {} ({}) was changed: its hash is not that of what is written.".format(count, event["verb"]))
        for payload in payloads.of(event["id"]):
            kept += 1
            if hashlib.sha256(payload["salt"].encode() + canonical(payload["body"])).hexdigest() != event["payload_hash"]:
                raise Fault("The details of event {} ({}) were changed.".format(count, event["verb"]))
        head = event["hash"]
    for rest in (subjects, payloads):
        if rest.next is not None:
            raise Fault(f"{rest.path} has rows of events that are not there, or not in their order.")
    if (count, head) != (manifest["chain"]["count"], manifest["chain"]["head"]):
        raise Fault("The record ends with event {}; the manifest says {}.".format(count, manifest["chain"]["count"]))
    return f"{count} events, unbroken; details of {count - kept} are not here (erased, or withheld)"


def check_checkpoints(folder: str, manifest: dict[str, Any], key: str) -> str:
    """Each signed position of the record is the record's."""
    wanted = {}
    for line in lines_of(folder, "checkpoints.jsonl"):
        signed = json.dumps({name: line[name] for name in line if name != "signature"}, sort_keys=True, separators=(",", ":")).encode()
        if line["workspace"] != manifest["workspace"]["id"]:
            raise Fault("A checkpoint is another workspace's.")
        if line["key"] != (key or manifest["key"]):
            raise Fault("A checkpoint was signed with another key.")
        verify(line["key"], signed, line["signature"], "The checkpoint at event {}".format(line["count"]))
        wanted[line["count"]] = line["head"]
    total = len(wanted)
    for event in lines_of(folder, "tables/audit_events.jsonl"):
        if wanted.pop(event["sequence"], event["hash"]) != event["hash"]:
            raise Fault("The checkpoint at event {} is not that of this record: the record was rewritten.".format(event["sequence"]))
    wanted.pop(0, None)
    if wanted:
        raise Fault(f"A checkpoint names event {min(wanted)}, which is not there.")
    return "{}, all of this record{}".format(total, "" if HAS_ED25519 else " (signatures NOT checked: install the package cryptography)")


def check_signature(folder: str, manifest: dict[str, Any], raw: bytes, key: str) -> str:
    """The manifest was signed by the installation, so nothing in it was exchanged together with its hashes."""
    with open(os.path.join(folder, "MANIFEST.sig"), encoding="utf-8") as file:
        signed = json.load(file)
    if signed["key"] != manifest["key"] or (key and signed["key"] != key):
        raise Fault("MANIFEST.json was signed with another key.")
    verify(signed["key"], raw, signed["signature"], "MANIFEST.json")
    return "MANIFEST.json {} {}".format("is signed with" if HAS_ED25519 else "names, NOT checked, the key", signed["key"])


def verify(key: str, content: bytes, signature: str, what: str) -> None:
    if HAS_ED25519:
        try:
            Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature), content)
        except (InvalidSignature, ValueError):
            raise Fault(f"{what} does not bear the signature of its key.") from None


class Group:
    """Rows of a file that belong to one event, read along with the events, which stand in the same order."""

    def __init__(self, folder: str, path: str) -> None:
        self.path, self._lines = path, lines_of(folder, path)
        self.next: dict[str, Any] | None = next(self._lines, None)

    def of(self, event_id: str) -> Iterator[dict[str, Any]]:
        while self.next is not None and self.next["event_id"] == event_id:
            yield self.next
            self.next = next(self._lines, None)


def canonical(value: Any) -> bytes:
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def sha256_of(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


def plain(value: Any) -> Any:
    """Fractions as their shortest text, so that no parser changes them."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else repr(value)
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def blob_path(sha256: str) -> str:
    if len(sha256) != 64 or sha256.strip("0123456789abcdef"):
        raise Fault(f"blobs.jsonl names {sha256[:80]!r}, which is no SHA-256.")
    return f"blobs/{sha256[:2]}/{sha256}"


def lines_of(folder: str, path: str) -> Iterator[dict[str, Any]]:
    with open(os.path.join(folder, path), encoding="utf-8", newline="\n") as file:
        for line in file:
            yield json.loads(line)


def measure(folder: str, path: str) -> tuple[int, str, int]:
    """Bytes, SHA-256 and line ends of a plain file inside the folder; links are not followed."""
    if path.startswith("/") or ".." in path.split("/") or "\\" in path:
        raise Fault(f"{path[:200]!r} leads out of the export.")
    place = os.path.join(folder, *path.split("/"))
    try:
        if not stat.S_ISREG(os.lstat(place).st_mode):
            raise Fault(f"{path} is no plain file.")
    except OSError:
        raise Fault(f"{path} is missing.") from None
    digest, size, ends = hashlib.sha256(), 0, 0
    with open(place, "rb") as file:
        while True:
            piece = file.read(CHUNK)
            if not piece:
                return size, digest.hexdigest(), ends
            digest.update(piece)
            size, ends = size + len(piece), ends + piece.count(b"\n")


def walk(folder: str) -> Iterator[str]:
    for base, folders, names in os.walk(folder):
        for name in names + [one for one in folders if os.path.islink(os.path.join(base, one))]:
            yield os.path.relpath(os.path.join(base, name), folder).replace(os.sep, "/")


def main() -> int:
    parser = argparse.ArgumentParser(description="Is this export whole, and its audit record unbroken?")
    parser.add_argument("folder", nargs="?", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--key", default="", help="public key of the installation, 64 hex digits")
    asked = parser.parse_args()
    try:
        faults = check(asked.folder, lambda words: sys.stdout.write(words + "\n"), asked.key)
    except Fault as fault:
        sys.stdout.write(f"{fault}\n")
        return 2
    for fault_words in faults:
        sys.stdout.write(f"WRONG  {fault_words}\n")
    sys.stdout.write("The export is %s.\n" % ("NOT whole" if faults else "whole"))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
