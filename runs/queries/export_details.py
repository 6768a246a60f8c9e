"""Which details of events stay: the record is a table like others, so what no other table may say leaves in none of its details either.

They are withheld whole, since the chain holds the hash of the whole. Labels of the record are part of its hashes and always leave: none may be in
words of a run (`label` of a model), but for the names that it gives to artifacts and metrics.
"""

from collections.abc import Iterable, Mapping

from django.db.models import BooleanField, F, Func, Value

BESIDES = ("email", "secret.fingerprint")  # what details say of invitations and new secrets, beside what they note as changed


def tells_what_stays(without: Mapping[str, Iterable[str]]) -> Func:
    """Do the details of a payload hold a column that stays, by `{model: columns}`, or an address?"""
    changed = sorted({f"changed.*.{column.removesuffix('_id')}" for columns in without.values() for column in columns})
    path = f"$.details ? ({' || '.join(f'exists(@.{name})' for name in (*BESIDES, *changed))})"
    return Func(
        F("body"),
        Value(path),
        function="jsonb_path_exists",
        template="%(function)s(%(expressions)s::jsonpath)",
        output_field=BooleanField(),
    )
