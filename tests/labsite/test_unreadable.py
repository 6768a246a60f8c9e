"""What cannot be read as a request: the answer says why and what to do, the log has one line and no trace."""

import io
import logging
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from tests.factories import make_user

FORM = "application/x-www-form-urlencoded"
NO_BOUNDARY = ("multipart/form-data", b"abc")
LONG_NAME = (
    "multipart/form-data; boundary=zz",
    b'--zz\r\nContent-Disposition: form-data; name="file"; filename="' + b"x" * 5000 + b'"\r\n\r\na\r\n--zz--\r\n',
)


@pytest.fixture
def log() -> Any:
    """What the installation's own log handler writes."""
    handler = next(one for one in logging.getLogger().handlers if getattr(one.formatter, "processors", None))
    assert isinstance(handler, logging.StreamHandler)
    written = io.StringIO()
    before = handler.setStream(written)
    yield written
    handler.setStream(before)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "body", "word"),
    [
        (FORM, b"theme=" + b"x" * 3_000_000, "2,621,440 bytes"),
        (FORM, b"theme=x&" * 2_000, "1,000 fields"),
        (*NO_BOUNDARY, "broken"),
        (*LONG_NAME, "broken"),
    ],
)
def test_a_form_that_cannot_be_read_is_told_why(log: io.StringIO, kind: str, body: bytes, word: str) -> None:
    client = Client()
    client.force_login(make_user("ada"))
    answer = client.post("/preferences/", body, content_type=kind)
    assert answer.status_code == 400
    assert word in answer.content.decode()
    assert "Nothing was changed" in answer.content.decode()
    assert "Traceback" not in log.getvalue()
    assert log.getvalue().count("\n") in (1, 2), log.getvalue()  # what Django says of it, and the request's own line


@pytest.mark.django_db
def test_so_is_a_name_of_another_host(log: io.StringIO) -> None:
    assert "elsewhere.example" not in settings.ALLOWED_HOSTS
    assert Client().get("/accounts/login/", HTTP_HOST="elsewhere.example").status_code == 400
    assert "elsewhere.example" in log.getvalue()
    assert "Traceback" not in log.getvalue()
