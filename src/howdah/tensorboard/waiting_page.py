"""Shows a page in the place of TensorBoard's while that would be empty, and tries again by itself.

TensorBoard answers before it has read its first event file, and while there is none. Its own page does not load again
by itself: a user who opened the link that early would see "No dashboards are active" for ever.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

from howdah.api.answer_language import preferred_language
from howdah.locale.messages import render
from howdah.spec.message import message
from howdah.tensorboard.wsgi_call import Application, call_application

LOOK_S = 2
_PAGE = """<!doctype html>
<html lang="{language}">
<meta charset="utf-8">
<meta http-equiv="refresh" content="{seconds}">
<meta name="color-scheme" content="light dark">
<title>TensorBoard</title>
<p style="font: 16px sans-serif; margin: 3em">{text}</p>
</html>
"""


class WaitingPage:
    """Answers with the waiting page at the path `home` of `application`, which is TensorBoard."""

    def __init__(self, application: Application, home: str) -> None:
        self._application, self._home = application, home
        self._is_over = False

    def is_needed(self, environ: Mapping[str, Any]) -> bool:
        """Return whether TensorBoard's page is requested, and would have no dashboard."""
        if self._is_over or environ.get("PATH_INFO") != self._home:
            return False
        self._is_over = self._has_dashboard(environ)
        return not self._is_over

    def content(self, environ: Mapping[str, Any]) -> bytes:
        """Return the page in the language that the browser asks for."""
        language = preferred_language(str(environ.get("HTTP_ACCEPT_LANGUAGE", "")))
        text = message(
            "TensorBoard has nothing to show yet: it is still reading the event files, or there are none so far. "
            "This page looks again every {seconds} seconds.",
            seconds=LOOK_S,
        )
        shown = html.escape(render(text, language))
        return _PAGE.format(language=language, seconds=LOOK_S, text=shown).encode()

    def _has_dashboard(self, environ: Mapping[str, Any]) -> bool:
        """Send TensorBoard the request that its own page sends. If the answer is of an unknown kind, let that page
        handle it."""
        asked = {name: value for name, value in environ.items() if name != "HTTP_ACCEPT_ENCODING"}  # not compressed
        asked.update(REQUEST_METHOD="GET", PATH_INFO=f"{self._home}data/plugins_listing")
        status, _, body = call_application(self._application, asked)
        return status != 200 or any(plugin["enabled"] for plugin in json.loads(body).values())
