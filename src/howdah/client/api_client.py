"""Calls the REST API of a history server or a master. A program with a link may do what a browser may.

The link is that of the page (`howdah page`, `howdah history`); its tokens are after the `#`, or in the query.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

from howdah.api.errors import error_for_status
from howdah.errors import EngineUnavailable, HowdahError, NotPermitted, SpecError, StagingError

TIMEOUT_S = 60.0
EVENTS_PER_CALL = 5000


class ApiClient:
    """Calls the server at `url`. `token` and `act` are those of the link unless given.

    Raises (all calls):
        RequestRefused: there is no such job, task or file, or this link does not permit the call.
        EngineUnavailable: the server does not answer.
        SpecError: a parameter is wrong.
    """

    def __init__(self, url: str, token: str = "", act: str = "") -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https"):
            raise SpecError.at("url", f"is {url[:100]!r}, must begin with http:// or https://")
        # The page copies links to a place of it: `#/jobs/ID?token=…`.
        words = dict(urllib.parse.parse_qsl(f"{parts.query}&{parts.fragment.rpartition('?')[2]}"))
        self.token, self._act = token or words.get("token", ""), act or words.get("act", "")
        self.base = urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + "/", "", ""))

    def get(self, path: str, /, **query: Any) -> Any:
        """Return the JSON of a call below `api/v1/`; parameters that are None are left out."""
        return decode_answer(path, 200, self.read(path, **query))

    def read(self, path: str, /, **query: Any) -> bytes:
        """Return the bytes of a call below `api/v1/`; a list or tuple is a parameter that is repeated."""
        asked = encode_query({**query, "token": self.token or None})
        return self._fetch(urllib.request.Request(f"{self._url(path)}?{asked}"))  # noqa: S310

    def act(self, job_id: str, action: str, /, **words: Any) -> Any:
        """Execute an action on a job; the link must permit actions."""
        if not self._act:
            raise NotPermitted(f"this link only looks: `howdah page {job_id}` prints one that may act")
        body = json.dumps({"token": self._act, **words}).encode()
        address = self._url(f"jobs/{job_id}/actions/{action}")
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(address, body, headers, method="PUT")  # noqa: S310 - the scheme was checked
        return json.loads(self._fetch(request))

    def pages(self, path: str, name: str, /, **query: Any) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a list that is answered in pages."""
        after: str | None = None
        while True:
            answer = self.get(path, after=after, **query)
            yield from _rows(answer, name)
            after = answer.get("next")
            if not after:
                return

    def records(self, job_id: str, since: int = 0) -> tuple[int, list[Mapping[str, Any]]]:
        """Return the number to ask from next, and all events from number `since` on."""
        found: list[Mapping[str, Any]] = []
        while True:
            answer = self.get(f"jobs/{job_id}/events", since=since, limit=EVENTS_PER_CALL)
            records = _rows(answer, "events")
            found += records
            since = int(answer.get("next", 0))
            if len(records) < EVENTS_PER_CALL:
                return since, found

    def _url(self, path: str) -> str:
        return f"{self.base}api/v1/{urllib.parse.quote(path, safe='/:')}"

    def _fetch(self, request: urllib.request.Request) -> bytes:
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
                body: bytes = answer.read()
                return body
        except urllib.error.HTTPError as error:
            with error:
                raise error_of(error.code, error.read()) from None
        except (OSError, http.client.HTTPException) as error:  # the second: another service has the port, or it died
            reason = getattr(error, "reason", error) or type(error).__name__
            raise EngineUnavailable(f"{self.base}: {reason}") from error


def _rows(answer: Any, name: str) -> list[Any]:
    """Return the rows that an answer holds under this name.

    Raises:
        StagingError: it is not an answer of a howdah server.
    """
    rows = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise StagingError(f"the server answers what this version does not know: {name!r}")
    return rows


def encode_query(query: Mapping[str, Any]) -> str:
    """Encode a query for an address. Values that are None are left out; a parameter with several values is repeated."""
    return urllib.parse.urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)


def decode_answer(path: str, status: int, body: bytes) -> Any:
    """Return the JSON of an answer to the call `path`.

    Raises:
        SpecError, StagingError, EngineUnavailable: the answer is an error, or not JSON.
    """
    if status != 200:
        raise error_of(status, body)
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise SpecError.at(path, "the answer of this call is not JSON: use curl, or a browser") from None


def error_of(status: int, body: bytes) -> HowdahError:
    """Return an error with the server's own sentence. Its class says who must act."""
    try:
        said = json.loads(body)
        text, place = str(said["error"]), str(said["place"])
    except (ValueError, KeyError, TypeError):
        text, place = body.decode("utf-8", "replace").strip()[:200] or f"status {status}", ""
    if status == 400:
        return SpecError.at(place or "the call", text)
    return EngineUnavailable(text) if status >= 500 else error_for_status(status, text, place)
