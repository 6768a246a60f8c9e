"""How people sign in: django-allauth, with sign-up only by invitation."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class Adapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Nobody signs up by themselves; an invitation's own page makes the account."""
        return False

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        # allauth counts failures by name alone, so that a stranger's guesses would lock the owner out everywhere.
        counted: str = super()._get_login_attempts_cache_key(request, **credentials)
        return f"{self.get_client_ip(request)}:{counted}"
