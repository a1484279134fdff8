"""Whether a job may run longer than what lets it into the cluster's file systems."""

from __future__ import annotations

from howdah.spec.job import Timeouts


def may_outlive_tokens(limits: Timeouts, end: float, now: float) -> bool:
    """Whether a job submitted `now` may still run at `end` (seconds since 1970; 0.0: its credentials don't end)."""
    longest = min(filter(None, (limits.run_s, limits.total_s)), default=0.0)
    return bool(end) and (not longest or now + longest > end)
