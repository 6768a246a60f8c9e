"""One effect for one Idempotency-Key: same key and body, same answer; other body, refused; while the first is at work, 409. Kept 24 hours.

The row that such a POST makes takes its id from the key, so that even after the answer has expired, or a crash before it was kept, nothing is
made twice. Telemetry has no such id: it is written in one transaction with the answer, so that there are both or neither.
"""

import hashlib
import hmac
import uuid
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone

from workspaces import scope
from workspaces.access import Actor
from workspaces.api.problem import problem
from workspaces.models import IdempotencyKey, SiteIdempotencyKey

KEPT = timedelta(hours=24)
# Nothing came of these, and what stood in the way may be gone the next time: no key is spent on them. A 409 is kept: a refused launch
# leaves its certificate.
WITHOUT_EFFECT = (400, 401, 403, 404, 412, 413, 415, 422, 429)
AT_WORK = timedelta(seconds=60)  # after this the first try counts as dead; its row's id keeps a second effect out
Key = IdempotencyKey | SiteIdempotencyKey


def once(
    request: HttpRequest, make: Callable[[], HttpResponseBase], *, actor: Actor, streams: bool = False, as_one: bool = False
) -> HttpResponseBase:
    """Run `make` at most once for the request's key; without the header, or for other methods than POST, just run it. `as_one`: what it
    writes and the answer are kept in one transaction, under a lock on the key."""
    key = request.headers.get("Idempotency-Key", "")
    if not key or request.method != "POST":
        return make()
    if len(key) > 200 or not key.isprintable():
        return problem(422, "An Idempotency-Key has 1 to 200 printable characters.")
    table: type[Key] = IdempotencyKey if scope.is_open() else SiteIdempotencyKey
    holder = str(actor.token_id or (actor.user.pk if actor.user else ""))
    route, body = _route(request), _body_hash(request, streams=streams)
    setattr(request, "chosen_id", _chosen_id(f"{holder}\n{route}\n{key}"))
    rows = table.objects.filter(holder=holder, route=route, key=key)
    rows.filter(created_at__lt=timezone.now() - KEPT).delete()
    try:
        with transaction.atomic():
            row: Key = table.objects.create(holder=holder, route=route, key=key, body_hash=body)
    except IntegrityError:
        known = rows.first()
        if known is None:  # the first request has ended this moment and its answer was not to be kept
            return _without_effect()
        row = known
        if row.body_hash != body:
            return problem(422, "This Idempotency-Key was used with another body; take a new key.")
        if row.status is not None:
            return _again(row)
        if row.created_at > timezone.now() - AT_WORK:
            return problem(409, "The first request with this Idempotency-Key is still at work; ask again in a moment.")
    if not as_one:
        response = make()
        _keep(row, response, is_secret=getattr(request, "answer_is_secret", False))
        return response
    with transaction.atomic():
        locked = rows.select_for_update(no_key=True).first()
        if locked is None:
            return _without_effect()
        if locked.status is not None:  # a first try that was slow, not dead
            return _again(locked)
        response = make()
        _keep(row, response)
    return response


def _without_effect() -> HttpResponse:
    return problem(409, "The first request with this Idempotency-Key has just ended without effect; ask again.")


def _keep(row: Key, response: HttpResponseBase, *, is_secret: bool = False) -> None:
    """Keep the answer for whoever asks again; what may come out otherwise next time is not kept, nor is a secret."""
    rows = type(row)._default_manager.filter(pk=row.pk)
    if response.status_code >= 500 or response.status_code in WITHOUT_EFFECT or not isinstance(response, HttpResponse):
        rows.delete()
    elif is_secret:
        shown = "The first request with this key was carried out, and its secret was shown once. Revoke what it made and take a new key."
        rows.update(status=409, answer=problem(409, shown).content.decode())
    else:
        rows.update(status=response.status_code, answer=response.content.decode())


def _again(row: Key) -> HttpResponse:
    kind = "application/json" if row.status and row.status < 400 else "application/problem+json"
    answer = HttpResponse(row.answer, status=row.status, content_type=kind)
    answer["Idempotent-Replayed"] = "true"
    return answer


def _route(request: HttpRequest) -> str:
    """The address, a workspace by its key: however it is spelled, it is the same request."""
    if not scope.is_open():
        return request.path[:300]
    return f"{scope.current_id().hex}/{request.path.split('/', 5)[-1]}"[:300]  # /api/v1/workspaces/<workspace>/…


def _body_hash(request: HttpRequest, *, streams: bool) -> str:
    """What makes two requests the same: the body, or of one that the view reads in pieces its query, type and size. Keyed: a body may hold a
    secret, which must not be found by trying from what is kept here."""
    if not streams:
        return hmac.new(settings.SECRET_KEY.encode(), request.body, hashlib.sha256).hexdigest()
    seen = [request.META.get("QUERY_STRING", ""), request.headers.get("Content-Length", "")]
    if not request.headers.get("Content-Type", "").startswith("multipart/"):  # whose boundary differs each time
        seen.append(request.headers.get("Content-Type", ""))
    return hashlib.sha256("\n".join(seen).encode()).hexdigest()


def _chosen_id(text: str) -> uuid.UUID:
    """A UUIDv8 of a text's hash (RFC 9562, 5.8); the standard library of Python 3.11 makes none beyond version 5."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:16])
    number = number & ~(0xF << 76) | 8 << 76
    return uuid.UUID(int=number & ~(0b11 << 62) | 0b10 << 62)
