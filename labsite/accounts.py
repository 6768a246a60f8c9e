"""How people sign in: django-allauth, with sign-up only by invitation."""

from typing import Any

from allauth.account import urls
from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest
from django.urls import URLPattern

# Of allauth's pages those that labsite has words for; sign-up stays to say that it is closed, addresses are the site operators' matter.
KEPT = frozenset(
    {
        *("account_login", "account_logout", "account_signup", "account_inactive", "account_reauthenticate"),
        *("account_change_password", "account_set_password", "account_reset_password", "account_reset_password_done"),
        *("account_reset_password_from_key", "account_reset_password_from_key_done"),
    }
)


def urlpatterns() -> list[URLPattern]:
    return [pattern for pattern in urls.urlpatterns if pattern.name in KEPT]


class Adapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Nobody signs up by themselves; an invitation's own page makes the account."""
        return False

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        # allauth counts failures by name alone, so that a stranger's guesses would lock the owner out everywhere.
        counted: str = super()._get_login_attempts_cache_key(request, **credentials)
        return f"{self.get_client_ip(request)}:{counted}"
