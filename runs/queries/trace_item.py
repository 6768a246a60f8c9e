"""What a trace is made of: steps in order, each with what stands in it."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from runs.queries.lineage_edges import NodeKind


@dataclass(frozen=True, slots=True)
class Item:
    """One thing of a step. `verdict`: yes, no, person (waits for one), unknown. `is_gap`: what should be known here is not, or does not hold.
    `url` and `who_url` are empty where there is no page or the reader may not see it."""

    label: str
    kind: NodeKind | None = None
    id: str = ""
    url: str = ""
    who: str = ""
    who_url: str = ""
    when: datetime | None = None
    verdict: str = "yes"
    words: str = ""
    is_gap: bool = False

    @property
    def values(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Step:
    """`more`: how many things of it are not shown."""

    key: str
    title: str
    items: tuple[Item, ...]
    more: int = 0
