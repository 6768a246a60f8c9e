"""Is this database the one that the installation is in, or a copy of it of which nobody has said yet what it is?"""

from typing import Any

from django.db.models import QuerySet

from workspaces import kept_query
from workspaces.models import Installation
from workspaces.models.installation import ThisDatabase

UNDECIDED = (
    "This database was restored from another one, so nothing is started, watched, collected or removed until an operator says what it is: "
    "manage.py restored --apart where the other one lives on or this is a drill, manage.py restored --take-over where it is gone for good."
)


def is_copy() -> bool:
    """Was this database restored, and nobody has decided on it yet? Then labsite's own jobs do nothing (`UNDECIDED`)."""
    return bool(kept_query.ask(_copies))


def copies() -> kept_query.Question:
    """What `is_copy` asks, a row where it is one; for one who asks for more in the same round trip."""
    return kept_query.Question(_copies, (), {})


def _copies() -> "QuerySet[Any, Any]":
    return Installation.objects.filter(is_current=True).exclude(database=ThisDatabase()).values_list("epoch")
