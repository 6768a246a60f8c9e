"""What is answered where no view answers: the API in its own form, pages as Django does."""

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import render
from django.views import defaults

from workspaces.api.problem import problem, wants_problem


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What the server could not read as a request, with the limit that it passed where it was one."""
    words = _unreadable(exception)
    if wants_problem(request):
        return problem(400, words)
    return render(request, "400.html", {"words": words}, status=400)


def _unreadable(exception: Exception) -> str:
    if isinstance(exception, RequestDataTooBig):
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0
        return f"The form holds more than {most:,} bytes beside its files; shorten what was filled in."
    if isinstance(exception, TooManyFieldsSent):
        return f"The request has more than {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,} fields; send fewer at once."
    if isinstance(exception, TooManyFilesSent):
        return f"The form has more than {settings.DATA_UPLOAD_MAX_NUMBER_FILES:,} files; send fewer at once, or an archive."
    if isinstance(exception, MultiPartParserError):
        return "The form is broken: its parts, or the name of a file in it, cannot be read."
    return "The request cannot be read as it stands."


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return problem(403, "This is not allowed here.") if wants_problem(request) else defaults.permission_denied(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Addresses that nobody has declared; whatever workspace they seem to name, the body is the same."""
    if wants_problem(request):
        return problem(404, "There is no such address; /api/v1/openapi.json lists those that there are.")
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    if wants_problem(request):
        return problem(500, "Something went wrong in labsite; its log says what. A POST with an Idempotency-Key may be sent again.")
    return defaults.server_error(request)
