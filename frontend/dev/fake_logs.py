"""Invented answers about the logs of a job's programs."""

from __future__ import annotations

from typing import Any

from fake_runs import HTML_ATTACK, STARTED

# ruff: noqa: ARG001 - some answers are the same for all parameters

LOG = "".join(
    f"{n:06d} INFO step {n} loss {1 / (n + 1):.5f} {HTML_ATTACK if n % 50 == 7 else ''}\n" for n in range(40_000)
)


def logs(params: dict[str, str]) -> dict[str, Any]:
    offset = int(params.get("offset") or -65536)
    begin = max(0, len(LOG) + offset) if offset < 0 else min(offset, len(LOG))
    text = LOG[begin : begin + int(params.get("limit") or 65536)]
    end = begin + len(text)
    lines = {"first_line": LOG.count("\n", 0, begin) + 1, "times": [[0, STARTED + begin / 1000]], "streams": []}
    part = {"offset": begin, "size": len(LOG), "next": end, "text": text, "complete": False}
    return {**part, **lines, "attempts": [1, 2]}


def logs_merged(params: dict[str, str]) -> dict[str, Any]:
    lines = [
        {
            "task": f"worker:{n % 3}",
            "attempt": 1,
            "stream": "stdout",
            "offset": 40 * n,
            "time": STARTED + n,
            "text": f"step {n} {HTML_ATTACK}",
        }
        for n in range(300)
    ]
    return {"lines": lines, "complete_since": STARTED + 20, "tasks": 3, "left_out": 0, "problems": []}


def search(params: dict[str, str]) -> dict[str, Any]:
    hits = [
        {
            "task": f"worker:{n % 3}",
            "attempt": 1,
            "stream": "stdout",
            "offset": LOG.index(f"{n:06d} "),
            "line": n,
            "text": f"{n:06d} INFO step {n} {HTML_ATTACK}",
            "level": "error" if n % 2 else "",
            "time": None,
        }
        for n in range(100, 300)
    ]
    return {"hits": hits, "scanned_bytes": 10 << 30, "seconds": 4.2, "complete": True, "problems": []}
