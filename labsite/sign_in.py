"""The form of the sign-in page. django-allauth's, in the words of labsite."""

from typing import Any

from allauth.account.forms import LoginForm


class SignInForm(LoginForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        login, password = self.fields["login"], self.fields["password"]
        login.label = "User name or mail"
        login.widget.attrs |= {"placeholder": "", "autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}
        password.widget.attrs["placeholder"] = ""
        password.help_text = ""  # the page says below the button where a forgotten password leads
