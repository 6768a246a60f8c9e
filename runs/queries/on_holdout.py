"""Was a score measured on the holdout of its contract: by a run that evaluates and was given exactly that version?

What a run reports of itself was not, whatever it says, nor was what an evaluation found that read something else.
"""

import uuid
from collections.abc import Collection

from django.db.models import Exists, OuterRef

from runs.admission import EVALUATE
from runs.models import Evaluation, RunInput


def read_holdout() -> Exists:
    """The same as a condition on evaluations; never where the contract names no holdout, or one that is not here."""
    return Exists(RunInput.objects.filter(run=OuterRef("run"), run__kind=EVALUATE, dataset_version=OuterRef("contract__holdout")))


def on_holdout(keys: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Those of these evaluations that were."""
    return set(Evaluation.objects.filter(read_holdout(), pk__in=keys).values_list("pk", flat=True))
