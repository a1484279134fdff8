"""Asks a ResourceManager which containers it counts as running."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Collection

from submitted_job import until

from howdah.sandbox import Sandbox


def wait_counted(sandbox: Sandbox, containers: Collection[str]) -> None:
    """Return when the ResourceManager counts these containers as running, because their nodes have said so. When a
    master is killed, YARN takes back those of which no node has said anything yet."""
    until(lambda: set(containers) <= _running(sandbox, min(containers)), f"{', '.join(containers)} to run for YARN")


def _running(sandbox: Sandbox, container: str) -> set[str]:
    cluster, job, attempt, _ = container.split("_")[-4:]
    (web,) = (daemon.web for daemon in sandbox.status() if daemon.name == "rm")
    path = f"apps/application_{cluster}_{job}/appattempts/appattempt_{cluster}_{job}_{int(attempt):06d}/containers"
    with urllib.request.urlopen(f"http://{web}/ws/v1/cluster/{path}", timeout=60) as answer:
        listed = json.load(answer).get("container") or []
    return {each["containerId"] for each in listed if each["containerState"] == "RUNNING"}
