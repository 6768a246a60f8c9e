"""What is sealed in the open workspace, opened: the only place where a secret's value comes out of the database. Nothing of it is shown."""

import uuid
from collections.abc import Sequence

from django.conf import settings

from workspaces import kept_query, scope
from workspaces.models import DataKey, Secret, SecretUse
from workspaces.sealing import BrokenSeal, Sealed, unseal


def open_data_key(row: DataKey) -> bytes:
    """The workspace's data key. Raises BrokenSeal where the installation's key that wraps it is not here."""
    key = settings.SECRETS_KEYS.find(row.wrapped_by)
    if key is None:
        raise BrokenSeal
    return unseal(key, Sealed(row.nonce, row.wrapped), bound_to=key_place())


def data_key() -> bytes:
    """The key of the open workspace. Raises BrokenSeal where there is none, or none that opens it."""
    for is_last in (False, True):
        row = DataKey.objects.first()
        try:
            if row is None:
                raise BrokenSeal
            return open_data_key(row)
        except BrokenSeal:
            # A rotation may have wrapped it anew, and destroyed the key before, since the row was read.
            if is_last:
                raise
    raise AssertionError("the second look raises or returns")


def value_of(secret: Secret) -> str:
    """The secret's value. Raises BrokenSeal."""
    return unseal(data_key(), Sealed(secret.nonce, secret.ciphertext), bound_to=secret_place(secret.pk, secret.version)).decode()


def uses_of(attempt_key: str) -> kept_query.Question:
    """What `handed_values` asks, for one who asks for more in the same round trip."""
    return kept_query.question(SecretUse, attempt_key=attempt_key, related=("secret",))


def handed_values(attempt_key: str, found: Sequence[SecretUse] | None = None) -> dict[str, str]:
    """What an attempt was handed and may still print, by the secret's name; nothing once it is collected. `found` is what `uses_of` has found. Raises
    BrokenSeal."""
    if found is None:
        [found] = kept_query.ask_together([uses_of(attempt_key)])
    uses = [use for use in found if use.ciphertext]
    if not uses:
        return {}
    key = data_key()
    return {
        use.secret.name: unseal(
            key, Sealed(use.nonce, use.ciphertext), bound_to=use_place(use.secret_id, use.version, attempt_key)
        ).decode()
        for use in uses
    }


# --- What a sealed thing is bound to: moved to another row, workspace or version it does not open --------------------------------------------


def key_place() -> str:
    return f"data key|{scope.current_id().hex}"


def secret_place(secret_id: uuid.UUID, version: int) -> str:
    return f"secret|{scope.current_id().hex}|{secret_id.hex}|{version}"


def use_place(secret_id: uuid.UUID, version: int, attempt_key: str) -> str:
    return f"use|{scope.current_id().hex}|{secret_id.hex}|{version}|{attempt_key}"
