"""Finds the GPUs of this node that nobody uses."""

from __future__ import annotations

import logging
import random
import shutil
import subprocess
import time

logger = logging.getLogger(__name__)

MAX_RETRIES = 3
"""How often GPUs are looked for while too few are free."""
AS_STRING, AS_LIST = "string", "list"
_WAIT_S = 30.0
_QUERY_LIMIT_S = 60.0


def is_gpu_available() -> bool:
    """Return whether nvidia-smi finds a GPU."""
    try:
        return bool(_query("--query-gpu=index"))
    except (OSError, subprocess.SubprocessError):
        return False


def get_gpus(num_gpu: int = 1, worker_index: int = -1, format: str = AS_STRING) -> str | list[str]:
    """Return the numbers of `num_gpu` free GPUs, as a text with commas or as a list. Nodes of one host choose different
    ones by their `worker_index`; without it the choice is random.

    Raises:
        Exception: too few are free, after some attempts.
    """
    for attempt in range(MAX_RETRIES):
        free = _free_gpus()
        if len(free) >= num_gpu:
            break
        if attempt + 1 == MAX_RETRIES:
            raise Exception(f"{num_gpu} GPUs are wanted, and {len(free)} are free")
        logger.warning("%d GPUs are wanted, and %d are free: looking again", num_gpu, len(free))
        time.sleep(_WAIT_S * (attempt + 1))
    if worker_index < 0:
        random.shuffle(free)
        chosen = free[:num_gpu]
    else:
        first = worker_index * num_gpu % len(free)
        chosen = (free + free)[first : first + num_gpu]
    return chosen if format == AS_LIST else ",".join(chosen)


def _free_gpus() -> list[str]:
    """Return the numbers of the GPUs on which no program computes."""
    used = set(_query("--query-compute-apps=gpu_uuid"))
    pairs = (line.split(",") for line in _query("--query-gpu=index,uuid"))
    return [index.strip() for index, uuid in pairs if uuid.strip() not in used]


def _query(what: str) -> list[str]:
    program = shutil.which("nvidia-smi")
    if program is None:
        raise FileNotFoundError("nvidia-smi")
    command = [program, what, "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_QUERY_LIMIT_S, check=True)
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]
