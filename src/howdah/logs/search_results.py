"""What searches in several places found, as one answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_PROBLEMS = 20


class SearchResults:
    """At most `limit` hits are shown: those printed first, as far as times are known."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._hits: list[Mapping[str, Any]] = []
        self._scanned, self._complete = 0, True
        self._problems: list[str] = []

    def add(self, answer: Mapping[str, Any]) -> None:
        """From one place."""
        self._hits += answer.get("hits", ())
        self._scanned += int(answer.get("scanned_bytes", 0))
        self._complete = self._complete and bool(answer.get("complete"))
        for problem in (*answer.get("problems", ()), *filter(None, (answer.get("error"),))):
            self.lack(str(problem))

    def lack(self, problem: str) -> None:
        """One place could not be searched."""
        self._complete = False
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(problem)

    def answer(self, seconds: float) -> dict[str, Any]:
        """`search` of the API."""
        hits = sorted(self._hits, key=lambda hit: (hit["time"] or 0.0, hit["task"], hit["attempt"], hit["offset"]))
        return {
            "hits": hits[: self._limit],
            "scanned_bytes": self._scanned,
            "seconds": round(seconds, 3),
            "complete": self._complete and len(hits) <= self._limit,
            "problems": self._problems,
        }
