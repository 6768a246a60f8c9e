"""Games that evaluations have played, read from the file of pairs that each has left: `{"schema": "labsite.pairs.v1", "matches": [{"first": sha256,
"second": sha256, "pairs": [how often the first had 0, 1/2, 1, 3/2, 2 points of a pair of games with colours swapped]}]}`."""

import json
from collections.abc import Sequence

from runs.models import Artifact
from runs.policy.sequential import OUTCOMES
from workspaces.audit import Refusal
from workspaces.models import NotFound
from workspaces.queries.registry import stored_content
from workspaces.store import StoreAway, StoreDamaged, StoreMissing

PAIRS_KIND, PAIRS_SCHEMA = "pairs", "labsite.pairs.v1"
MOST_FILE_BYTES, MOST_PAIRS = 2**20, 1_000_000
LOST = (NotFound, Refusal, StoreAway, StoreDamaged, StoreMissing)  # what a file may answer instead of its content

Match = tuple[str, str, Sequence[int]]


def matches_in(file: Artifact) -> list[Match] | None:
    """(first, second, outcomes) of each match; None where the file cannot be read, or is not as it should be."""
    if file.blob.bytes > MOST_FILE_BYTES:
        return None
    try:
        document = json.loads(b"".join(stored_content(file.blob)))
        found: list[Match] = []
        for match in document["matches"] if document["schema"] == PAIRS_SCHEMA else ():
            first, second, pairs = match["first"], match["second"], match["pairs"]
            if len(pairs) != OUTCOMES or any(type(count) is not int or not 0 <= count <= MOST_PAIRS for count in pairs):
                return None
            if not isinstance(first, str) or not isinstance(second, str):
                return None
            found.append((first, second, pairs))
    except (ValueError, TypeError, KeyError, RecursionError, *LOST):
        return None
    return found


def pairs_of(file: Artifact, first: str, second: str) -> list[int] | None:
    """How often the first of two, by their hashes, had 0, 1/2, 1, 3/2 and 2 points of a pair; None where the file says nothing of the two, or is not
    as it should be."""
    counts = [0] * OUTCOMES
    for one, other, pairs in matches_in(file) or ():
        if first != second and {one, other} == {first, second}:
            counts = [count + more for count, more in zip(counts, pairs if one == first else pairs[::-1], strict=True)]
    return counts if sum(counts) else None
