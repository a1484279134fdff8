"""Checks whether a job may run longer than its credentials for the cluster's file systems are valid."""

from __future__ import annotations

from howdah.spec.job import Timeouts


def may_outlive_tokens(limits: Timeouts, end: float, now: float) -> bool:
    """Return whether a job submitted `now` may still run when its credentials end (epoch seconds; 0: they don't)."""
    longest = min(filter(None, (limits.run_s, limits.total_s)), default=0.0)
    return bool(end) and (not longest or now + longest > end)
