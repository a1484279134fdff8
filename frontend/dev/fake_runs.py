"""Invented answers of the history about many jobs: the list, usage and comparisons."""

from __future__ import annotations

import time
from typing import Any

HTML_ATTACK = "<img src=x onerror=\"document.title='executed'\">"
STARTED = time.time() - 900
STATES = ("SUCCEEDED", "FAILED", "RUNNING", "CANCELLED", "PENDING")


def jobs(params: dict[str, str]) -> dict[str, Any]:
    after = int(params.get("after") or 0)
    rows = [_row(n) for n in range(after, after + int(params.get("limit") or 50))]
    names = {"metrics": sorted(rows[0]["metrics"]), "params": sorted(rows[0]["params"])}
    listed = {"jobs": rows, "next": str(after + len(rows)), "total": 100_000, "names": names}
    return {**listed, "problems": [], "version": 1}


def _row(n: int) -> dict[str, Any]:
    state = STATES[n % 5]
    return {
        "id": f"application_1795222800000_{n:04d}",
        "name": f"job {n} {HTML_ATTACK if n % 9 == 3 else ''}",
        "user": ("ann", "bob", "ç")[n % 3],
        "queue": "research",
        "engine": "yarn",
        "cluster": "",
        "framework": "pytorch",
        "state": state,
        "started": STARTED - 3600 * n,
        "finished": STARTED - 3600 * n + 900,
        "duration_s": 900,
        "tasks": 8,
        "gpus": 8,
        "gpu_hours": 2,
        "wasted_gpu_hours": 0.4,
        "cpu_hours": 12.5,
        "memory_gib_hours": 64,
        "cause": "program" if state == "FAILED" else "",
        "progress": 0.3,
        "diagnostics": f"worker:1 on node7: its executor ended with 1: {HTML_ATTACK}" if state == "FAILED" else "",
        "url": "http://example.org/proxy/" if state == "RUNNING" else "",
        "tags": ["nightly", f"sweep-{n % 4}", *([HTML_ATTACK] if n % 9 == 3 else [])],
        "note": f"diverges after epoch 3 {HTML_ATTACK}\nlr too high" if n % 4 == 1 else "",
        "archived": False,
        "cost": 12.34 + n,
        "metrics": {
            "train/loss": {"last": 0.31 + n / 100, "min": 0.25, "max": 2.3},
            "eval/accuracy": {"last": 0.9 - n / 1000, "min": 0.1, "max": 0.93 - n % 40 / 200},
        },
        "params": {"lr": str(10.0 ** -(n % 5)), "optimizer": ("adam", "sgd", HTML_ATTACK)[n % 3], "batch-size": "256"},
    }


def row(params: dict[str, str]) -> dict[str, Any]:  # noqa: ARG001 - some answers are the same for all parameters
    return _row(1)


def users(params: dict[str, str]) -> dict[str, Any]:
    by = params.get("by") or "user"
    groups = {
        "user": ["ann", "bob"],
        "queue": ["research", HTML_ATTACK],
        "tag": ["nightly", ""],
        "day": ["2026-11-28", "2026-11-27"],
    }[by]
    return {
        "by": by,
        "currency": "EUR",
        "users": [_usage(by, group, 40) for group in groups],
        "total": _usage("", "", 80),
    }


def _usage(by: str, group: str, jobs: int) -> dict[str, Any]:
    who = {"user": group if by == "user" else "", "group": group, "jobs": jobs}
    gpu = {"gpu_hours": 3.0125 * jobs, "wasted_gpu_hours": 4.2, "by_cause": {"exit": 3.0, "lost": 1.2}}
    return {**who, **gpu, "cost": 7.5 * jobs, "cpu_hours": 24 * jobs, "memory_gib_hours": 96.5 * jobs}


def compare(params: dict[str, str]) -> dict[str, Any]:
    count = len((params.get("jobs") or "a,b").split(","))
    rows = [_row(n) for n in range(1, 1 + max(2, count))]
    places = {
        "spec": {"roles.worker.replicas": [1, 8], "env.RATE": [HTML_ATTACK, None], "framework": ["pytorch"]},
        "captured": {"git_commit": ["3e12c95", "9d1b5d6"], "python": ["3.12.1 /opt/venv/bin/python"]},
    }
    return {"jobs": rows, **{part: list(_places(found, len(rows))) for part, found in places.items()}}


def _places(found: dict[str, list[Any]], count: int) -> Any:
    for path, different in found.items():
        values = [different[n % len(different)] for n in range(count)]
        yield {"path": path, "a": values[0], "b": values[1], "values": values}
