"""How people sign in: django-allauth, with sign-up only by invitation."""

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class Adapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth carries no types
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Nobody signs up by themselves; an invitation's own page makes the account."""
        return False
