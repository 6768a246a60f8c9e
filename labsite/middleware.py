"""Two rules for every answer and every request."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest

Next = Callable[[HttpRequest], HttpResponse]


def never_store(get_response: Next) -> Next:
    """What stands behind a sign-in is kept by no cache (`Cache-Control: no-store`); pages that poll by ETag say `no-cache` themselves."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware


def refuse_unreadable(get_response: Next) -> Next:
    """Refuse NUL bytes and lone surrogates in path and query: PostgreSQL could not store them and no name here holds them."""

    def middleware(request: HttpRequest) -> HttpResponse:
        texts = [request.path_info, *(text for pair in request.GET.lists() for text in (pair[0], *pair[1]))]
        for text in texts:
            if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
                return HttpResponseBadRequest(
                    "The address holds a character that cannot be read (NUL or half a surrogate pair).\n", content_type="text/plain"
                )
        return get_response(request)

    return middleware
