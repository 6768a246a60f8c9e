"""What a secret's value may be. Refusals say what is wrong with it and hold nothing of it."""

import base64
import hashlib

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, SSHPrivateKeyTypes, load_ssh_private_key

from workspaces.audit import Refusal
from workspaces.models import Secret
from workspaces.text import is_storable

LEAST = 8  # characters; what is shorter stands in ordinary output by chance, and would be blotted out there
MOST_BYTES = 65_536
MOST_LINES = 100  # each is looked for by itself, in every spelling, in all that a run writes; a private RSA key of 8,192 bits has 90


def checked_value(kind: str, value: str) -> str:
    """The value as it is kept, character by character what was given; an SSH key gets the line end that OpenSSH wants. Refuses, naming why."""
    if not is_storable(value):
        raise Refusal("A value is text: no NUL, and nothing that is not UTF-8.", field="value")
    if not value.strip():
        raise Refusal("The value is empty.", field="value")
    if len("".join(value.split())) < LEAST:
        raise Refusal(
            f"A value has at least {LEAST} characters, blanks not counted: a shorter one could not be told from ordinary output, "
            "and would be blotted out wherever it stands by chance.",
            field="value",
        )
    size = len(value.encode())
    if size > MOST_BYTES:
        raise Refusal(f"A value has at most {MOST_BYTES:,} bytes; this has {size:,}.", field="value")
    lines = len(value.encode().splitlines())
    if lines > MOST_LINES:
        raise Refusal(
            f"A value has at most {MOST_LINES} lines; this has {lines:,}. Each line is looked for in all that a run writes, to blot it out, "
            "and many of them would hold up everybody's logs. Encode the value on one line (`base64 -w0`) and decode it in the run.",
            field="value",
        )
    if kind != Secret.Kind.SSH_KEY:
        return value
    text = value.replace("\r\n", "\n").strip() + "\n"
    _ssh_key(text)
    return text


def public_key_of(value: str) -> str:
    """The public half of an SSH private key, as a line of authorized_keys."""
    return _ssh_key(value).public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def ssh_fingerprint(public_key: str) -> str:
    """`SHA256:…`, as `ssh-keygen -l` writes it."""
    blob = base64.b64decode(public_key.split()[1])
    return f"SHA256:{base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip('=')}"


def _ssh_key(text: str) -> SSHPrivateKeyTypes:
    # The parser's own words may quote what it read; they go no further.
    try:
        return load_ssh_private_key(text.encode(), password=None)
    except TypeError:
        reason = "has a passphrase"
    except UnsupportedAlgorithm:
        reason = "is a key of a kind that labsite cannot use"
    except ValueError:
        reason = "is no private key as OpenSSH writes it"
    raise Refusal(
        f"The value {reason}. Wanted is a key without a passphrase that begins with -----BEGIN OPENSSH PRIVATE KEY-----, "
        "such as `ssh-keygen -t ed25519 -N ''` makes.",
        field="value",
    )
