"""Opens the page in a real browser, Debian's Chromium by Playwright, and checks its accessibility with axe.

Watches all the time for things that a page must never do: send requests to another origin, run code from a job, or
break its own policy.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, TimeoutError, expect, sync_playwright

import howdah as package

CHROMIUM = "/usr/bin/chromium"
ROOT = Path(__file__).parents[2]
AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
BUILT = (Path(package.__file__).parent / "api" / "static" / "index.html.gz").exists()
SIZE = {"width": 1280, "height": 720}
LIMIT_MS = 90_000
"""Limit of each wait for the page, in milliseconds."""
expect.set_options(timeout=LIMIT_MS)
SCREENS = os.environ.get("HOWDAH_SCREENS", "")
"""A directory for pictures of every screen, if it is set."""
_RUN = "axe.run(document, {resultTypes: ['violations']}).then(found => JSON.stringify(found.violations))"
_NAME = "(at => (at.getAttribute('aria-label') || at.textContent).trim())(document.activeElement)"
EXECUTED = "executed"
NASTY = f"<img src=x onerror=\"document.title='{EXECUTED}'\">"


def missing() -> str:
    """Return why no browser test can run here."""
    if not Path(CHROMIUM).exists():
        return f"no {CHROMIUM} on this machine"
    if not AXE.exists() or not BUILT:
        return "the page is not built: tools/frontend dev"
    return ""


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # As root, Chromium's own sandbox cannot be.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=LIMIT_MS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def served(html: str) -> Iterator[str]:
    """Serve a page of another origin, and give its address."""

    class Wiki(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Wiki) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def open_page(browser: Browser, link: str, **context: Any) -> Page:
    """Open another user's page, without cookies from elsewhere."""
    page = browser.new_context(**context).new_page()
    page.context.set_default_timeout(LIMIT_MS)
    page.goto(link)
    return page


class Tab:
    """Opens a tab at `link`, in a light or dark theme; `wrong` must be empty at the end."""

    def __init__(
        self, browser: Browser, link: str, theme: str = "light", language: str = "en-GB", beside: Tab | None = None
    ) -> None:
        self.theme = theme
        if beside is not None:  # of the same person, with the same cookies
            context = beside.page.context
        else:
            context = browser.new_context(viewport=SIZE, color_scheme=_scheme(theme), locale=language)  # type: ignore[arg-type]
        context.set_default_timeout(LIMIT_MS)
        self.page: Page = context.new_page()
        self.wrong: list[str] = []
        self._origin = "{0.scheme}://{0.netloc}/".format(urlsplit(link))
        self.page.on("request", self._asked)
        self.page.on("console", self._keep_message)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.goto(link)
        self.page.wait_for_selector("main :is(h1, [role=table])")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self._origin, "data:", "blob:")):
            self.wrong.append(f"asked {request.url}")

    def _keep_message(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text or "Uncaught" in message.text:
            self.wrong.append(message.text)

    def go(self, place: str) -> None:
        """Open a view of the page; the argument is the part of the address after `#/`."""
        self.page.evaluate("place => { location.hash = '#/' + place }", place)

    def sees(self, text: str, within: str = "body", limit_ms: float = LIMIT_MS) -> None:
        try:
            self.page.locator(within).get_by_text(text).first.wait_for(timeout=limit_ms)
        except TimeoutError as error:
            shown = self.page.locator("main").inner_text()[:2000]
            raise AssertionError(f"{text!r} is not on the page, which shows: {shown}") from error

    def reach(self, role: str, name: str, key: str = "Tab", maximum: int = 60) -> None:
        """Press `key` until the element with this role and name has the focus."""
        wanted = self.page.locator(":focus").and_(self.page.get_by_role(role, name=name))  # type: ignore[arg-type]
        seen = []
        for _ in range(maximum):
            self.page.keyboard.press(key)
            if wanted.count():
                return
            seen.append(str(self.page.evaluate(_NAME))[:30])
        raise AssertionError(f"{name!r} is not reached by the keyboard, which goes through {seen}")

    def looked_over(self, name: str) -> list[str]:
        """Return serious accessibility violations of the current screen; save a screenshot if wanted."""
        if SCREENS:
            self.page.screenshot(path=f"{SCREENS}/{name}{'-dark' if self.theme == 'dark' else ''}.png")
        world = self.page.context.new_cdp_session(self.page)
        frame = world.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
        made = world.send(
            "Page.createIsolatedWorld", {"frameId": frame, "worldName": "axe"}
        )  # beyond the page's policy
        beside = {"contextId": made["executionContextId"]}
        world.send("Runtime.evaluate", {"expression": AXE.read_text(), **beside})
        answer = world.send(
            "Runtime.evaluate", {"expression": _RUN, "awaitPromise": True, "returnByValue": True, **beside}
        )
        world.detach()
        return [f"{name}: {_line(one)}" for one in json.loads(answer["result"]["value"]) if _serious(one)]


def _scheme(theme: str) -> str:
    return "dark" if theme == "dark" else "light"


def _serious(violation: dict[str, Any]) -> bool:
    return violation["impact"] in ("serious", "critical")


def _line(violation: dict[str, Any]) -> str:
    where = re.sub(r"\s+", " ", violation["nodes"][0]["html"])[:200]
    return f"{violation['id']} ({len(violation['nodes'])}): {where}"
