"""People say that they have seen a run that deserved it, and take that back."""

from collections.abc import Sequence

from django.utils import timezone

from runs.models import Review, Run
from runs.review import Finding
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.verbs import Verb


@command(Verb.RUN_REVIEWED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def review_run(event: Draft, *, actor: Actor, run: Run, findings: Sequence[Finding], comment: str) -> Review:
    """Take a run off the list of those that deserve a person. `findings` are what its reader was shown and is still found: what was found since, or
    is of a kind that they may not see, keeps the run there for others."""
    given = comment.strip()[:1000]
    if not given:
        raise Refusal("Say what came of it; others will read it.", field="comment")
    if actor.user is None:
        raise Refusal("A person reviews a run, who answers for it.")
    if not findings:
        raise Refusal("Nothing of what was shown is found of this run any more, or somebody has seen it meanwhile.")
    event.reason = given
    review = Review.objects.create(run=run, findings=[finding.key for finding in findings], comment=given, reviewed_by=actor.user)
    event.created(review)
    event.about = run
    event.details["found"] = [finding.title for finding in findings]
    return review


@command(Verb.REVIEW_TAKEN_BACK, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def take_back_review(event: Draft, *, actor: Actor, review: Review) -> Review:
    """Put the run back on the list, if what was found of it still is."""
    if actor.user is None:
        raise Refusal("A person takes a review back.")
    review = Review.objects.select_for_update(no_key=True, of=("self",)).select_related("run").get(pk=review.pk)
    if review.taken_back_at is not None:
        raise Refusal("This review has been taken back already.")
    event.about = review.run
    event.change(review, taken_back_at=timezone.now(), taken_back_by=actor.user)
    return review
