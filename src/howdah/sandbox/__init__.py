"""A real Hadoop on loopback for trying and testing: it starts Hadoop's own daemons and stops exactly those again."""

from __future__ import annotations

from howdah.sandbox.cluster import Sandbox, current
from howdah.sandbox.running import Daemon

__all__ = ["Daemon", "Sandbox", "current"]
