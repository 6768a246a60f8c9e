"""Reading a stored file back, to see whether it is what its row says."""

import hashlib

from workspaces.models import Blob, NotFound
from workspaces.queries.registry import stored_content


def read_back(blob: Blob) -> str:
    """SHA-256 of the file as it lies in the store of the open workspace; empty where there is none. Reads all of it: call it outside a
    transaction."""
    found = hashlib.sha256()
    try:
        for piece in stored_content(blob):
            found.update(piece)
    except NotFound:
        return ""
    return found.hexdigest()
