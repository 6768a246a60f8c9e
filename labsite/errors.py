"""What is answered where no view answers: the API in its own form, pages as Django does."""

from django.http import HttpRequest, HttpResponse
from django.views import defaults

from workspaces.api.problem import problem, wants_problem


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return problem(400, "The request cannot be read as it stands.") if wants_problem(request) else defaults.bad_request(request, exception)


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
