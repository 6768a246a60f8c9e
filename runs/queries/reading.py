"""Reading a stored file back, to see whether it is what its row says."""

import hashlib

from workspaces import scope
from workspaces.damage import note_damage
from workspaces.models import Blob
from workspaces.store import StoreMissing, store_of


def read_back(blob: Blob) -> str:
    """SHA-256 of the file as it lies in the store of the open workspace; empty where there is none. Reads all of it: call it outside a
    transaction."""
    found = hashlib.sha256()
    try:
        for piece in store_of(blob.region).open(scope.current_id(), blob.sha256):
            found.update(piece)
    except StoreMissing:
        return ""
    if found.hexdigest() != blob.sha256:
        note_damage(blob.region, scope.current_id(), blob.sha256)
    return found.hexdigest()
