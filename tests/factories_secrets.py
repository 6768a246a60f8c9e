"""A laboratory with a secret that its agent may read, and every spelling that a program may print a value in."""

import base64
import html
import json
import urllib.parse

from tests.factories_registry import stored
from tests.factories_runs import Laboratory, make_laboratory
from workspaces.commands.agent import publish_agent_version
from workspaces.commands.secret import create_secret
from workspaces.models import Agent, Pool, Secret

CANARY = 'kanarien/vögel+"17\\u & <sing>=%41'  # something to escape in every spelling
PLAIN = "hf_Zw8rQkT5nYc2LpV7"

# What a program does to print itself in every spelling; `value` is the secret's.
SPELLINGS = """
import base64, html, json, urllib.parse
def spellings(value):
    raw = value.encode()
    yield value
    for before in ("", "a", "ab"):
        yield base64.b64encode((before + value).encode()).decode()
        yield base64.b64encode((before + value + " and more").encode()).decode()
        yield base64.urlsafe_b64encode((before + value).encode()).decode()
    yield raw.hex()
    yield raw.hex().upper()
    for quoted in (urllib.parse.quote(value), urllib.parse.quote(value, safe=""), urllib.parse.quote_plus(value)):
        yield quoted
    yield "".join("%%%02x" % byte for byte in raw)
    yield json.dumps(value)
    yield json.dumps(value, ensure_ascii=False)
    yield json.dumps(json.dumps(value))
    yield html.escape(value)
    yield value[::-1]
    yield repr(value)
    yield ascii(value)
    yield repr(raw)
    yield repr(raw + b\"'\\"\")
    for safe in ("!'()*", "!'()*;/?:@&=+$,#"):  # JavaScript: encodeURIComponent, encodeURI
        yield urllib.parse.quote(value, safe=safe)
    for form in ("\\\\u%04x", "\\\\u%04X"):  # JSON of Go, and of json_script
        for dumped in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
            yield dumped.translate({ord(sign): form % ord(sign) for sign in "&<>"})
    escaped = html.escape(value, quote=False)
    yield escaped
    yield escaped.replace('"', "&#34;").replace("'", "&#39;")  # Jinja, Go
    yield escaped.replace('"', "&#34;").replace("'", "&#39;").replace("+", "&#43;")  # Go's templates
    yield escaped.replace('"', "&quot;").replace("'", "&#39;")
"""


def make_secret(laboratory: Laboratory, value: str = CANARY, name: str = "HF_TOKEN", **more: object) -> Secret:
    """A secret that the agent `worker` may read on `local`. Opens the scope itself."""
    with laboratory.opened():
        allowed = {"agents": [Agent.objects.find("worker")], "pools": [Pool.objects.find("local")], **more}
        return create_secret(actor=laboratory.owner, name=name, value=value, **allowed)  # type: ignore[arg-type]  # test input


def make_secret_laboratory(code: bytes, slug: str = "lab", *names: str, **settings: object) -> Laboratory:
    """A laboratory whose agent `worker` runs `code` and names HF_TOKEN, or `names`."""
    laboratory = make_laboratory(slug, **settings)  # type: ignore[arg-type]  # test input
    with laboratory.opened():
        publish_agent_version(
            actor=laboratory.owner, agent=Agent.objects.find("worker"), argv=["python", "main.py"], files=[stored("main.py", code)],
            secrets=names or ("HF_TOKEN",), wall_seconds=60,
        )  # fmt: skip
    return laboratory


def traces(value: str) -> list[bytes]:
    """Byte strings none of which may be found anywhere: the value in each spelling that stands on its own."""
    raw = value.encode()
    cores = [base64.b64encode(b"\0" * before + raw)[skipped : (before + len(raw)) * 8 // 6] for before, skipped in ((0, 0), (1, 2), (2, 3))]
    return [
        raw, raw.hex().encode(), raw.hex().upper().encode(), *cores, *(core.translate(bytes.maketrans(b"+/", b"-_")) for core in cores),
        urllib.parse.quote(value).encode(), urllib.parse.quote(value, safe="").encode(), urllib.parse.quote_plus(value).encode(),
        json.dumps(value)[1:-1].encode(), json.dumps(value, ensure_ascii=False)[1:-1].encode(), html.escape(value).encode(), value[::-1].encode(),
    ]  # fmt: skip
