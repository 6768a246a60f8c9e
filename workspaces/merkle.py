"""One hash over many entries that can prove each of them: the Merkle tree of RFC 6962, section 2.1. Pure; hashes are SHA-256 as bytes.

A leaf is hashed behind 0x00 and an inner node behind 0x01, so that neither can be passed off as the other.
"""

import hashlib
from collections.abc import Sequence


def leaf_hash(content: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + content).digest()


def root_of(leaves: Sequence[bytes]) -> bytes:
    """The hash of the tree over these leaf hashes, in this order; that of no leaves is the hash of nothing."""
    return _levels(leaves)[-1][0] if leaves else hashlib.sha256(b"").digest()


def proof_of(leaves: Sequence[bytes], place: int) -> list[bytes]:
    """The hashes that lead from leaf number `place`, from 0, to the root, lowest first. Raises IndexError where there is no such leaf."""
    if not 0 <= place < len(leaves):
        raise IndexError(place)
    proof = []
    for level in _levels(leaves)[:-1]:
        sibling = place ^ 1
        if sibling < len(level):
            proof.append(level[sibling])
        place //= 2
    return proof


def is_proof(leaf: bytes, place: int, count: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Does `proof` show that the tree of `count` leaves with this root has `leaf` at `place`? (RFC 9162, section 2.1.3.2.)"""
    if not 0 <= place < count:
        return False
    found, last, left = leaf, count - 1, list(proof)
    while last:
        if place % 2 or place < last:
            if not left:
                return False
            sibling = left.pop(0)
            found = _inner(sibling, found) if place % 2 else _inner(found, sibling)
        place, last = place // 2, last // 2
    return not left and found == root


def _levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """From the leaves up to the root; the last of an odd number goes up as it is, which gives RFC 6962's split at the largest power of two."""
    levels = [list(leaves)]
    while len(level := levels[-1]) > 1:
        pairs = [_inner(level[place], level[place + 1]) for place in range(0, len(level) - 1, 2)]
        levels.append(pairs + level[len(level) - len(level) % 2 :])
    return levels


def _inner(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()
