"""Fragments that a page asks for again and again: an ETag over what they say, 304 while that stays the same (RFC 9110, 13.1.2)."""

import hashlib
from typing import Any

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag

from workspaces.pages import PageRequest


def live(request: PageRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """Render a fragment. It may be kept by the reader's browser, which asks each time whether it still holds."""
    body = render_to_string(template, context, request).encode()
    response = HttpResponse(body)
    etag = quote_etag(hashlib.sha256(body).hexdigest()[:32])
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    response["Vary"] = "Cookie, HX-Request"
    return get_conditional_response(request, etag=etag, response=response) or response
