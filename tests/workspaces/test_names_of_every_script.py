"""Names with joiners, marks and blanks of their scripts: files that are sent in forms, what people call things, columns."""

from typing import Any

import pytest
from django.test import Client

from tests.factories import make_workspace
from workspaces.croissant_tables import columns_of
from workspaces.text import is_name

ORDINARY = ("می‌خواهم", "علی‌رضا", "👩‍🔬", "no\xa0break", "全\u3000角", "क्‍ष")


def test_what_people_may_call_something() -> None:
    assert all(is_name(name) for name in ORDINARY)
    assert not any(is_name(name) for name in ("", "\u200c", " \u3000", "a\nb", "a\x00", "\u202eevil", "half \udcff"))


def test_a_table_whose_columns_have_such_names_has_columns() -> None:
    head = ",".join(ORDINARY)
    assert [column.name for column in columns_of(f"{head}\n1,2,3,4,5,6\n", delimiter=",", is_cut=False)] == list(ORDINARY)


@pytest.mark.django_db
def test_a_file_that_a_form_sends_keeps_its_name(client: Client, settings: Any, tmp_path: Any) -> None:
    settings.LABSITE_REGIONS = {"local": tmp_path}
    _, actor = make_workspace("lab", region="local")
    assert actor.user is not None
    client.force_login(actor.user)
    client.post("/api/v1/workspaces/lab/datasets", {"slug": "table"}, content_type="application/json")
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\nh\n{name}\n\r\n'
        for name in (*ORDINARY, "folder/be\x07ll")
    ]
    body = "".join(parts) + '--x\r\nContent-Disposition: form-data; name="complete"\r\n\r\n1\r\n--x--\r\n'
    address = "/api/v1/workspaces/lab/datasets/table/versions"
    answer = client.generic("POST", f"{address}?role=train", body.encode(), content_type="multipart/form-data; boundary=x")
    assert answer.status_code == 201, answer.content
    assert {file["path"] for file in answer.json()["files"]} == {*ORDINARY, "bell"}
    download = client.get(f"{address}/1/files/{ORDINARY[0]}")
    assert download.status_code == 200
    assert "%E2%80%8C" in download["Content-Disposition"], "the joiner travels back, too"
