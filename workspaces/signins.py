"""Sign-ins in the installation's record. Signals, because it is Django that knows of them; the only ones beside `connection_created`."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest
from django.utils import timezone

from workspaces.access import Actor
from workspaces.models import ActorKind, SiteEvent, User
from workspaces.site_audit import SiteDraft, SiteVerb, site_command

FAILURES_A_MINUTE = 30  # over the whole installation, so that guessing cannot fill the record


@site_command(SiteVerb.SIGNED_IN, needs=None, public_reason="who has just shown their password leaves this trace")
def record_sign_in(event: SiteDraft, *, actor: Actor, address: str) -> None:
    event.subject = actor.user
    event.details["address"] = address


@site_command(SiteVerb.SIGNED_OUT, needs=None, public_reason="who signs out leaves this trace")
def record_sign_out(event: SiteDraft, *, actor: Actor) -> None:
    event.subject = actor.user


@site_command(SiteVerb.SIGN_IN_FAILED, needs=None, public_reason="who tries a password leaves this trace")
def record_failed_sign_in(event: SiteDraft, *, actor: Actor, user: User | None, address: str) -> None:
    event.subject = user
    event.details["address"] = address


def connect() -> None:
    user_logged_in.connect(_signed_in, dispatch_uid="labsite.signed_in")
    user_logged_out.connect(_signed_out, dispatch_uid="labsite.signed_out")
    user_login_failed.connect(_failed, dispatch_uid="labsite.sign_in_failed")


def _signed_in(*, request: HttpRequest | None, user: User, **_: Any) -> None:
    record_sign_in(actor=Actor.of(user), address=_address(request))


def _signed_out(*, user: User | None, **_: Any) -> None:
    if user is not None:
        record_sign_out(actor=Actor.of(user))


def _failed(*, credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    recent = SiteEvent.objects.filter(verb=SiteVerb.SIGN_IN_FAILED, recorded_at__gte=timezone.now() - timedelta(minutes=1))
    if recent.count() >= FAILURES_A_MINUTE:
        return
    # What was typed is not kept: now and then it is a password. A name is, where it is somebody's.
    name = str(credentials.get("username") or "")[:150]
    user = User.objects.filter(username__iexact=name).first() if name.isprintable() else None
    record_failed_sign_in(actor=Actor(kind=ActorKind.PERSON, label="a visitor"), user=user, address=_address(request))


def _address(request: HttpRequest | None) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))[:45] if request is not None else ""
