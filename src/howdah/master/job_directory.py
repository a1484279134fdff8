"""Files in the job's directory by which others find the master, or learn that the job is over."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from howdah.errors import HowdahError
from howdah.storage.factory import filesystem


def remove_job_key(directory: str) -> None:
    """Remove the job's key, as the last step: a job without its key is over, and no supervisor watches it."""
    with contextlib.suppress(HowdahError):
        filesystem(directory).delete(f"{directory.rstrip('/')}/key")


def publish_master_address(directory: str, url: str) -> None:
    """Write the master's address to the job's directory; `start` is field 22 of proc(5) stat."""
    uri = f"{directory.rstrip('/')}/master.json"
    start = int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19])
    filesystem(uri).write_bytes(uri, json.dumps({"url": url, "pid": os.getpid(), "start": start}).encode())
