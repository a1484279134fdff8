"""Waits until a ResourceManager counts containers as running."""

from __future__ import annotations

import re
from collections.abc import Collection

from submitted_job import until

from howdah.sandbox import Sandbox

_COUNTED = re.compile(r"(container_\w+) Container Transitioned from \w+ to RUNNING")


def wait_counted(sandbox: Sandbox, containers: Collection[str]) -> None:
    """Return when the ResourceManager counts these containers as running, because their nodes have reported them.

    When a master is killed, YARN takes back containers that no node has reported yet. Only the log shows this: the API
    calls every container running that has not ended.
    """
    log = sandbox.run_dir / "log" / "rm.log"

    def counted() -> bool:
        return set(containers) <= set(_COUNTED.findall(log.read_text(errors="replace")))

    until(counted, f"{', '.join(containers)} to run for YARN")
