"""What there is to say of one node of a walk."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Described:
    """`url` is the thing's page, `lineage_url` the page of its own lineage; both are empty where there is none or the reader may not see it.
    `doubt`: what is not known or not in order about it. `attributes` are for machines."""

    label: str
    url: str = ""
    lineage_url: str = ""
    when: datetime | None = None
    by: str = ""
    doubt: str = ""
    is_hidden: bool = False
    public_id: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)


Rows = Iterable[tuple[uuid.UUID, Described]]
