"""One effect for one Idempotency-Key: same key and body, same answer; other body, refused; while the first is at work, 409. Kept 24 hours.

The row that such a POST makes takes its id from the key, so that even after the answer has expired, or a crash before it was kept, nothing is
made twice.
"""

import hashlib
import uuid
from collections.abc import Callable
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils import timezone

from workspaces import scope
from workspaces.access import Actor
from workspaces.models import IdempotencyKey, SiteIdempotencyKey

KEPT = timedelta(hours=24)
AT_WORK = timedelta(seconds=60)  # after this the first try counts as dead; its row's id keeps a second effect out


def once(request: HttpRequest, make: Callable[[], HttpResponseBase], *, actor: Actor, streams: bool = False) -> HttpResponseBase:
    """Run `make` at most once for the request's key; without the header, or for other methods than POST, just run it."""
    key = request.headers.get("Idempotency-Key", "")
    if not key or request.method != "POST":
        return make()
    if len(key) > 200 or not key.isprintable():
        return _problem(422, "An Idempotency-Key has 1 to 200 printable characters.")
    table: type[IdempotencyKey] | type[SiteIdempotencyKey] = IdempotencyKey if scope.is_open() else SiteIdempotencyKey
    holder = str(actor.token_id or (actor.user.pk if actor.user else ""))
    route, body = request.path[:300], _body_hash(request, streams=streams)
    setattr(request, "chosen_id", _chosen_id(f"{holder}\n{route}\n{key}"))
    rows = table.objects.filter(holder=holder, route=route, key=key)
    rows.filter(created_at__lt=timezone.now() - KEPT).delete()
    try:
        with transaction.atomic():
            row = table.objects.create(holder=holder, route=route, key=key, body_hash=body)
    except IntegrityError:
        row = rows.get()
        if row.body_hash != body:
            return _problem(422, "This Idempotency-Key was used with another body; take a new key.")
        if row.status is not None:
            answer = HttpResponse(
                row.answer, status=row.status, content_type="application/json" if row.status < 400 else "application/problem+json"
            )
            answer["Idempotent-Replayed"] = "true"
            return answer
        if row.created_at > timezone.now() - AT_WORK:
            return _problem(409, "The first request with this Idempotency-Key is still at work; ask again in a moment.")
    response = make()
    if response.status_code >= 500 or response.status_code in (401, 403, 429) or not isinstance(response, HttpResponse):
        table.objects.filter(pk=row.pk).delete()
    elif getattr(request, "answer_is_secret", False):
        again = _problem(
            409, "The first request with this key was carried out, and its secret was shown once. Revoke what it made and take a new key."
        )
        table.objects.filter(pk=row.pk).update(status=409, answer=again.content.decode())
    else:
        table.objects.filter(pk=row.pk).update(status=response.status_code, answer=response.content.decode())
    return response


def _body_hash(request: HttpRequest, *, streams: bool) -> str:
    """What makes two requests the same: the body, or of one that the view reads in pieces its query, type and size."""
    if not streams:
        return hashlib.sha256(request.body).hexdigest()
    seen = [request.META.get("QUERY_STRING", ""), request.headers.get("Content-Length", "")]
    if not request.headers.get("Content-Type", "").startswith("multipart/"):  # whose boundary differs each time
        seen.append(request.headers.get("Content-Type", ""))
    return hashlib.sha256("\n".join(seen).encode()).hexdigest()


def _chosen_id(text: str) -> uuid.UUID:
    """A UUIDv8 of a text's hash (RFC 9562, 5.8); the standard library of Python 3.11 makes none beyond version 5."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:16])
    number = number & ~(0xF << 76) | 8 << 76
    return uuid.UUID(int=number & ~(0b11 << 62) | 0b10 << 62)


def _problem(status: int, detail: str) -> HttpResponse:
    body = {"type": "about:blank", "title": "Idempotency", "status": status, "detail": detail, "errors": []}
    return JsonResponse(body, status=status, content_type="application/problem+json")
