"""Rules for every answer and every request."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from workspaces.api.problem import problem, wants_problem
from workspaces.text import is_storable

Next = Callable[[HttpRequest], HttpResponse]


def never_store(get_response: Next) -> Next:
    """What stands behind a sign-in is kept by no cache (`Cache-Control: no-store`); pages that poll by ETag say `no-cache` themselves."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware


def refuse_strangers_bodies(get_response: Next) -> Next:
    """Take no large body from someone who has not signed in: Django spools a form to disk before any view can ask who sends it."""

    def middleware(request: HttpRequest) -> HttpResponse:
        announced = request.headers.get("Content-Length") or "0"
        large = "chunked" in request.headers.get("Transfer-Encoding", "") or (
            announced.isdigit() and int(announced) > settings.API_BODY_BYTES
        )
        if large and not request.user.is_authenticated and "Authorization" not in request.headers:
            return _refused(request, 413, "Sign in before sending this much.")
        return get_response(request)

    return middleware


def refuse_unreadable(get_response: Next) -> Next:
    """Refuse NUL bytes and lone surrogates in path and query: PostgreSQL could not store them and no name here holds them."""

    def middleware(request: HttpRequest) -> HttpResponse:
        texts = [request.path_info, *(text for pair in request.GET.lists() for text in (pair[0], *pair[1]))]
        for text in texts:
            if not is_storable(text):
                return _refused(request, 400, "The address holds a character that cannot be read (NUL or half a surrogate pair).")
        return get_response(request)

    return middleware


def _refused(request: HttpRequest, status: int, words: str) -> HttpResponse:
    if wants_problem(request):
        return problem(status, words)
    return HttpResponse(f"{words}\n", status=status, content_type="text/plain")
