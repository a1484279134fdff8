"""The limit of the files that a process may have open at the same time."""

from __future__ import annotations

import resource


def raise_open_files_limit() -> str:
    """Let this process, and what it starts, have as many open files as its hard limit allows; return the soft limit
    that it had before, as `ulimit` says it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return "unlimited" if soft == resource.RLIM_INFINITY else str(soft)
