"""Letters to people, where the installation can send any (EMAIL_URL)."""

import smtplib

import structlog
from django.conf import settings
from django.core.mail import send_mail
from django.urls import reverse

from workspaces.models import Invitation

log = structlog.get_logger(__name__)


def link_of(invitation: Invitation, secret: str, *, workspace: str) -> str:
    """The address that accepts the invitation; the one place where its secret stands."""
    return f"{settings.LABSITE_URL}{reverse('invitation-accept', args=[workspace, invitation.pk.hex, secret])}"


def is_configured() -> bool:
    return not str(settings.EMAIL_BACKEND).endswith("dummy.EmailBackend")


def send_invitation(invitation: Invitation, link: str, *, workspace: str) -> bool:
    """Mail the link to whom it is for. False where no mail goes out; the page then says to hand the link over."""
    if not is_configured():
        return False
    text = (
        f"{invitation.invited_by.label} invites you to the workspace {workspace} as {invitation.role}.\n\n{link}\n\n"
        f"The link works once, for {invitation.email} only, until {invitation.expires_at:%d %B %Y %H:%M} UTC.\n"
    )
    try:
        send_mail(f"Invitation to {' '.join(workspace.split())}", text, None, [invitation.email])
    except (OSError, smtplib.SMTPException) as error:
        log.warning("invitation not mailed", error=type(error).__name__)
        return False
    return True
