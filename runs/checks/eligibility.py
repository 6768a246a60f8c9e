"""The checks of a promotion, in the order in which they are shown. A new one joins by its line here."""

from collections.abc import Callable

from runs.checks.candidate import Candidate
from runs.checks.data import egress_known, licences_known, nothing_held_out, nothing_unsaid, nothing_withdrawn, ran_apart
from runs.checks.making import file_is_whole, run_succeeded
from runs.checks.score import has_score, no_step_back
from runs.eligibility import Fact

CHECKS: tuple[Callable[[Candidate], Fact], ...] = (
    has_score,
    no_step_back,
    licences_known,
    egress_known,
    nothing_held_out,
    nothing_unsaid,
    nothing_withdrawn,
    ran_apart,
    run_succeeded,
    file_is_whole,
)


def facts_of(candidate: Candidate) -> list[Fact]:
    """Every check of the candidate as things stand now. Writes nothing."""
    return [check(candidate) for check in CHECKS]
