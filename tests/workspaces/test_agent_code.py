"""An agent's code is read on its page as text, and downloaded file by file or as one zip that can be published again."""

import io
import stat
import zipfile
from typing import Any

import pytest
from django.http import StreamingHttpResponse
from django.test import Client

from tests.factories_pages import client_of
from tests.factories_resources import join
from tests.factories_runs import Laboratory, make_laboratory
from workspaces.access import Role
from workspaces.bundles import read_bundle
from workspaces.commands.agent import create_agent, publish_agent_version
from workspaces.commands.blob import receive_file
from workspaces.queries import code as code_queries

PAGE = "/workspaces/lab/agents/reader/"
FILES: dict[str, bytes] = {
    "main.py": b"print('<script>alert(1)</script>')\r\nx = 1\n",
    "tools/hidden.py": "ok = True  # \u202e not shown \u200b\n".encode(),
    "tools/weights.bin": b"\x00\xff" * 10,
    "tools/run now.sh": b"#!/bin/sh\n",
    "empty.py": b"",
}


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    made = make_laboratory()
    with made.opened():
        agent = create_agent(actor=made.owner, slug="reader")
        files = [receive_file(path, [content], is_executable=path.endswith(".sh")) for path, content in FILES.items()]
        publish_agent_version(actor=made.owner, agent=agent, argv=["python", "main.py"], files=files)
    return made


@pytest.fixture
def reader(laboratory: Laboratory) -> Client:
    with laboratory.opened():
        return client_of(join(laboratory.owner, "reader", Role.VIEWER))


def downloaded(client: Client, address: str) -> tuple[bytes, Any]:
    response = client.get(address)
    assert isinstance(response, StreamingHttpResponse)
    content = b"".join(response)
    assert int(response["Content-Length"]) == len(content)
    return content, response


def test_each_file_is_text_with_numbered_lines(reader: Client) -> None:
    assert 'href="/workspaces/lab/agents/reader/?version=1&amp;file=tools%2Fhidden.py#code"' in reader.get(PAGE).content.decode()
    body = reader.get(PAGE, {"version": "1", "file": "main.py"}).content.decode()
    assert "print(&#x27;&lt;script&gt;alert(1)&lt;/script&gt;&#x27;)</span>" in body
    assert 'id="L2"' in body
    assert 'id="L3"' not in body


def test_what_would_hide_in_a_line_is_written_out(reader: Client) -> None:
    body = reader.get(PAGE, {"version": "1", "file": "tools/hidden.py"}).content.decode()
    assert r"ok = True  # \u202e not shown \u200b" in body
    assert "\u202e" not in body


@pytest.mark.parametrize(
    ("path", "words"), [("tools/weights.bin", "This is no text"), ("empty.py", "The file is empty"), ("tools/run now.sh", "#!/bin/sh")]
)
def test_no_text_and_nothing_are_said(reader: Client, path: str, words: str) -> None:
    assert words in reader.get(PAGE, {"version": "1", "file": path}).content.decode()


def test_a_large_file_is_cut_and_says_so(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_queries, "SHOWN_BYTES", 10)
    body = reader.get(PAGE, {"version": "1", "file": "main.py"}).content.decode()
    assert "This is its beginning" in body
    assert "x = 1" not in body


@pytest.mark.parametrize(
    "query", [{"version": "9", "file": "main.py"}, {"version": "1", "file": "../main.py"}, {"version": "x", "file": "a"}]
)
def test_what_is_not_there_is_not_found(reader: Client, query: dict[str, str]) -> None:
    assert reader.get(PAGE, query).status_code == 404


def test_a_file_is_downloaded_as_it_is_and_never_run_by_the_browser(reader: Client) -> None:
    for path, wanted in FILES.items():
        content, response = downloaded(reader, f"{PAGE}versions/1/files/{path}")
        assert content == wanted
        assert response["Content-Disposition"].startswith("attachment")
        assert response["Content-Type"] == "application/octet-stream"


def test_the_bundle_is_a_zip_that_can_be_published_again(reader: Client) -> None:
    content, response = downloaded(reader, f"{PAGE}versions/1/bundle/")
    assert 'filename="reader-1.zip"' in response["Content-Disposition"]
    assert {file.path: b"".join(file.chunks) for file in read_bundle(io.BytesIO(content))} == FILES
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        assert {entry.filename for entry in opened.infolist() if entry.external_attr >> 16 & stat.S_IXUSR} == {"tools/run now.sh"}
    assert downloaded(reader, f"{PAGE}versions/1/bundle/")[0] == content
