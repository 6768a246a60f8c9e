"""A person before a browser: where they go, what they read and press, and everything that the page complains of meanwhile."""

import os
import re
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Locator, Page, Response

from tests.factories_pages import client_of
from workspaces.access import Actor

SHOTS = Path(__file__).parent / "shots"
VIOLATION = "document.addEventListener('securitypolicyviolation', e => console.error('CSP forbids', e.violatedDirective, e.blockedURI))"
GRAVE = ("serious", "critical")
AXE = Axe().axe_script


class Visitor:
    """One browser context with one page. `complaints` gathers console messages, script errors and dialogs; the fixture wants none of them."""

    def __init__(self, context: BrowserContext, *, base: str, shots: str) -> None:
        self.context = context
        self._base = base
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.expected: set[int] = set()  # statuses of answers that the test provokes; Chromium writes each to the console
        self._shots = re.sub(r"[^\w.-]+", "-", shots)[:80]
        context.add_init_script(VIOLATION)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self._complain(f"script: {error}"))
        self.page.on("dialog", self._dialog)

    def _console(self, message: ConsoleMessage) -> None:
        status = re.search(r"server responded with a status of (\d+)", message.text)
        if status is None or int(status[1]) not in self.expected:
            self._complain(message.text)

    def _dialog(self, dialog: Dialog) -> None:
        self._complain(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _complain(self, text: str) -> None:
        self.complaints.append(f"{self.page.url}: {text}")

    # --- Being someone, going somewhere ---------------------------------------------------------------------------------------------------

    def be(self, actor: Actor) -> None:
        """Be signed in, without the form."""
        cookie = client_of(actor).cookies[settings.SESSION_COOKIE_NAME]
        self.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": self._base}])

    def sign_in(self, name: str, password: str) -> None:
        self.go("/accounts/login/")
        self.page.get_by_label("Username").or_(self.page.locator("[name=login]")).first.fill(name)
        self.page.locator("[name=password]").fill(password)
        self.press("Sign in")

    def go(self, path: str) -> Response:
        response = self.page.goto(path)
        assert response is not None
        assert response.status < 400 or response.status in self.expected, f"{path} answers {response.status}"
        return response

    # --- Reading and pressing -------------------------------------------------------------------------------------------------------------

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    def press(self, name: str, *, within: Locator | None = None) -> None:
        (within or self.page).get_by_role("button", name=name, exact=True).first.click()

    def follow(self, name: str | re.Pattern[str], *, within: Locator | None = None) -> None:
        exact = isinstance(name, str)
        (within or self.main).get_by_role("link", name=name, exact=exact).first.click()

    def reads(self, text: str | re.Pattern[str], *, within: Locator | None = None, seconds: float = 20) -> Locator:
        """The first place where the text can be seen; waits for it."""
        found = (within or self.page.locator("body")).get_by_text(text).locator("visible=true").first
        found.wait_for(timeout=seconds * 1000)
        return found

    # --- Judging a page -------------------------------------------------------------------------------------------------------------------

    def sideways(self) -> str:
        """What makes the page wider than the window; empty where nothing does."""
        found: str = self.page.evaluate(
            """() => { const root = document.documentElement;
            if (root.scrollWidth <= root.clientWidth) return "";
            const wide = [...document.querySelectorAll("main *, header *")].filter(e => e.getBoundingClientRect().right > root.clientWidth + 1);
            return `${root.scrollWidth} px in ${root.clientWidth}: ` + wide.slice(0, 3).map(e => e.outerHTML.slice(0, 90)).join(" | "); }"""
        )
        return found

    def barriers(self, *rules: str) -> list[str]:
        """Serious and critical findings of axe, of all rules or of those named."""
        options: dict[str, Any] = {"resultTypes": ["violations"]}
        if rules:
            options["runOnly"] = {"type": "rule", "values": list(rules)}
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE)  # by the browser's debugger, which the page's policy does not bind
        found = self.page.evaluate("options => axe.run(options).then(found => found.violations)", options)
        return [
            f"{fault['id']} ({fault['impact']}) × {len(fault['nodes'])}: {fault['nodes'][0]['html'][:160]}"
            + ("" if "color" not in fault["id"] else f" {fault['nodes'][0]['any'][0]['message'][:120]}")
            for fault in found
            if fault["impact"] in GRAVE
        ]

    def shoot(self, name: str) -> None:
        """Keep a picture of the whole page, where LABSITE_SHOTS asks for pictures."""
        if os.environ.get("LABSITE_SHOTS"):
            SHOTS.mkdir(exist_ok=True)
            self.page.screenshot(path=SHOTS / f"{self._shots}-{name}.png", full_page=True)
