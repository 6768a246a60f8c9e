"""The queue: why does mine wait?"""

from django.http import HttpResponseBase
from django.shortcuts import render

from runs.queries.queue import SHOWN, waiting_runs
from runs.views.live import live
from workspaces.pages import PageRequest


def queue(request: PageRequest) -> HttpResponseBase:
    waiting = waiting_runs()
    own = [entry for entry in waiting if request.actor.is_user(entry.run.requested_by_id)]
    context = {"waiting": waiting, "own": own[0] if own else None, "own_count": len(own), "is_cut": len(waiting) == SHOWN}
    if request.GET.get("part") == "live":
        return live(request, "runs/queue_rows.html", context)
    return render(request, "runs/queue.html", context)
