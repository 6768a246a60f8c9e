"""Fragments that a page asks for again and again: an ETag over what they say, 304 while that stays the same (RFC 9110, 13.1.2)."""

import hashlib
from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag

from workspaces.pages import PageRequest


def live(request: PageRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """Render a fragment. It may be kept by the reader's browser, which asks each time whether it still holds."""
    body = render_to_string(template, context, request).encode()
    etag = _tag(body)
    response = _kept(HttpResponse(body), etag)
    return get_conditional_response(request, etag=etag, response=response) or response


def live_since(request: PageRequest, template: str, stamp: str, context: Callable[[], dict[str, Any]]) -> HttpResponse:
    """The same for a fragment that is costly to make: `stamp` says the same as long as the fragment would, and nothing is made then."""
    who = (request.get_full_path(), request.actor.user and request.actor.user.pk, sorted(request.rights.grants), template)
    etag = _tag(repr((stamp, who)).encode())
    unchanged = get_conditional_response(request, etag=etag)
    return _kept(unchanged or HttpResponse(render_to_string(template, context(), request)), etag)


def _tag(content: bytes) -> str:
    return quote_etag(hashlib.sha256(content).hexdigest()[:32])


def _kept(response: HttpResponse, etag: str) -> HttpResponse:
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    response["Vary"] = "Cookie, HX-Request"
    return response
