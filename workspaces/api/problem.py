"""Errors of the API as application/problem+json (RFC 9457): one form for whatever answers below `/api/`."""

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse

ADDRESSES = "/api/"


def problem(status: int, detail: str, *, errors: list[dict[str, Any]] | None = None, **more: Any) -> HttpResponse:
    """The answer: `title` says the status, `detail` what is wrong in a sentence, `errors` each fault with the field that it is about."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail, "errors": errors or [], **more}
    return JsonResponse(body, status=status, content_type="application/problem+json")


def missing(noun: str) -> HttpResponse:
    """The one answer for foreign and missing things."""
    return problem(404, f"There is no such {noun} here.")


def not_allowed(method: str | None, allowed: list[str]) -> HttpResponse:
    """405 with `Allow`, for an address that is there and a method that it does not take."""
    answer = problem(405, f"This address does not take {method}; it takes {' and '.join(allowed)}.")
    answer["Allow"] = ", ".join(allowed)
    return answer


def wants_problem(request: HttpRequest) -> bool:
    """Does the request ask the API, so that even what fails before or beside its routes must be answered in its form?"""
    return request.path_info.startswith(ADDRESSES)
