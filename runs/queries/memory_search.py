"""Full-text search of memory, through the function of the database that compares with the open workspace itself (contracts.md B)."""

import re
import uuid
from dataclasses import dataclass

from django.db import connection

from workspaces import scope
from workspaces.search_text import LONGEST, Unsearchable
from workspaces.text import UNSTORABLE, is_storable

COUNTED_TO = 1000
# Of dashes that say `not` only the last before a word: PostgreSQL refuses to nest more than 32 (`tsquery stack too small`).
_DASHES = re.compile(r"-(?=\W*-)")


@dataclass(frozen=True, slots=True)
class Hit:
    """`matches` counts what matches at the same trust, up to COUNTED_TO; so many are ranked."""

    id: uuid.UUID
    trust: str
    rank: float
    matches: int


def find_words(text: str, *, collection: str = "", kind: str = "", most: int = 20) -> list[Hit]:
    """The best `most` of each trust, best first. `text` as people type it: words, "a phrase", -without, or. Raises Unsearchable."""
    scope.current_id()  # nothing is found where no workspace is open; say so rather than answer nothing
    asked = text.strip()
    if len(asked) > LONGEST:
        raise Unsearchable(f"A search takes up to {LONGEST} characters; this has {len(asked):,}.")
    if not is_storable(asked + collection + kind):
        raise Unsearchable(f"Nothing here says that: it holds {UNSTORABLE}.")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, trust, rank, matches FROM lab_memory_search(%s, %s, %s, %s)", [_DASHES.sub("", asked), collection, kind, most]
        )
        return [Hit(*row) for row in cursor.fetchall()]
