"""Real Chromium against labsite's own pages, served by threads of this process from the test database in the application's role."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.visitor import Visitor
from workspaces.access import Actor

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip

Visit = Callable[..., Visitor]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """One browser for this folder's tests of a process. Playwright's loop is ended with it, so that other tests meet none."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not program or not Path(program).exists():
        pytest.skip("Chromium is missing: `make system` installs it, or set CHROMIUM=/path/to/chromium")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Django refuses its ORM where a loop runs in the thread; here the loop is Playwright's and calls none of it.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Browser, live_server: Any, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """Opens a browser of its own for each person: `visit(actor)`; nobody is signed in by `visit()`. What the pages complain of fails the test."""
    made: list[Visitor] = []
    with ExitStack() as stack:

        def open_browser(actor: Actor | None = None, *, width: int = 1440, scheme: str = "light", **options: Any) -> Visitor:
            context = chromium.new_context(
                viewport={"width": width, "height": 1000}, color_scheme=scheme, base_url=live_server.url, **options  # type: ignore[arg-type]  # a literal
            )  # fmt: skip
            context.set_default_timeout(20_000)
            stack.callback(context.close)
            visitor = Visitor(context, base=live_server.url, shots=f"{request.node.name}-{len(made) + 1}")
            if actor is not None:
                visitor.be(actor)
            made.append(visitor)
            return visitor

        yield open_browser
        for visitor in made:
            visitor.page.goto("about:blank")  # no request is under way when the tables are emptied
    complaints = [text for visitor in made for text in visitor.complaints]
    assert not complaints, "\n".join(complaints)
