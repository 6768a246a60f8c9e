"""A run's log: the tab's lines, what was written since, and the raw file."""

from collections.abc import Iterator
from typing import Any

from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse

from runs.models import Attempt, Run
from runs.queries.log import PIECE, read_log
from runs.queries.log_window import LogWindow, log_after, log_window
from runs.queries.run_page import attempts_of, find_run
from runs.terminal import lines_of
from runs.views.live import live
from runs.views.numbers import whole_number
from workspaces import scope
from workspaces.models import NotFound
from workspaces.pages import PageRequest

STREAMS = {"stdout": "stdout.log", "stderr": "stderr.log"}


def log_context(request: PageRequest, run: Run) -> dict[str, Any]:
    """What the tab shows; the page of the run asks for it."""
    stream, attempts, attempt = _asked(request, run)
    line = whole_number(request.GET.get("line"))
    window = log_window(run, STREAMS[stream], attempt=attempt, line=line)
    return {"streams": list(STREAMS), "attempts": attempts, "attempt": attempt, "log_line": line} | _shown(stream, attempt, window)


def run_log(request: PageRequest, run: str) -> HttpResponseBase:
    """The raw file, or with `offset` and `next` the lines that were written since, as a fragment."""
    found = find_run(run)
    stream, _, attempt = _asked(request, found)
    offset, line = whole_number(request.GET.get("offset")), whole_number(request.GET.get("next"))
    if offset is not None and line is not None:
        window = log_after(found, STREAMS[stream], attempt=attempt, offset=offset, line=line)
        return live(request, "runs/run_log_lines.html", {"run": found} | _shown(stream, attempt, window))
    return _raw(request, found, stream, attempt)


def _raw(request: PageRequest, run: Run, stream: str, attempt: Attempt | None) -> HttpResponse | StreamingHttpResponse:
    workspace_id = request.workspace.pk

    def pieces() -> Iterator[bytes]:
        offset = 0
        while True:
            with scope.open_workspace(workspace_id):
                piece = read_log(run, STREAMS[stream], offset=offset, limit=PIECE, attempt=attempt)
            if not piece.text_bytes:
                return
            yield piece.text_bytes
            offset = piece.next_offset

    response = StreamingHttpResponse(pieces(), content_type="application/octet-stream")
    number = attempt.number if attempt else 0
    response["Content-Disposition"] = f'attachment; filename="{run.public_id}-attempt-{number}-{stream}.log"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _asked(request: PageRequest, run: Run) -> tuple[str, list[Attempt], Attempt | None]:
    stream = request.GET.get("stream", "stdout")
    if stream not in STREAMS:
        raise NotFound("log")
    attempts = attempts_of(run)
    number = whole_number(request.GET.get("attempt"))
    if number is None:
        return stream, attempts, attempts[-1] if attempts else None
    chosen = next((attempt for attempt in attempts if attempt.number == number), None)
    if chosen is None:
        raise NotFound("attempt")
    return stream, attempts, chosen


def _shown(stream: str, attempt: Attempt | None, window: LogWindow) -> dict[str, Any]:
    return {"stream": stream, "attempt": attempt, "window": window, "log_lines": lines_of(window.text, first=window.first)}
