"""Remembers, in a hidden file of a local directory of checkpoints, which of its files were stored or fetched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

MEMORY = ".howdah-mirror.json"


def read_known_files(path: str) -> dict[str, list[int]]:
    """Return size and time (ns) here, and size and time (ms) there, of each such file; nothing if the hidden file is
    damaged."""
    try:
        found = json.loads(Path(path, MEMORY).read_text("utf-8"))
        return {str(name): [int(number) for number in numbers] for name, numbers in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def write_known_files(path: str, known: Mapping[str, list[int]]) -> None:
    """Write what `read_known_files` returns.

    Raises:
        OSError: it can't be written.
    """
    memory = Path(path, MEMORY)
    temporary = memory.with_suffix(".tmp")
    temporary.write_text(json.dumps(known), "utf-8")
    temporary.replace(memory)
