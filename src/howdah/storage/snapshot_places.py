"""Finds the snapshots of an output by their names alone."""

from __future__ import annotations

import re

from howdah.spec import uris
from howdah.spec.job import Output
from howdah.storage.filesystem import FileSystem

NAME = re.compile(r"\d{4}(_\d\d){5}")
"""yyyy_MM_dd_HH_mm_ss, as XLearning names them."""
SAVED_SUFFIX = ".saved"
"""The suffix that makes the output's path the default directory of its snapshots."""


def snapshot_prefix(output: Output) -> str:
    """Return the beginning of the names of an output's snapshots: that of `<to>2026_11_21_15_00_00`."""
    return output.save.to or f"{output.path.rstrip('/')}{SAVED_SUFFIX}/"


def directory_of(to: str) -> str:
    """Return the directory of the snapshots whose names begin with `to`."""
    return to.rstrip("/") if to.endswith("/") else uris.parent(to)


def list_snapshots(fs: FileSystem, to: str) -> list[str]:
    """Return the snapshots whose names begin with `to`, oldest first. Snapshots that are only partly removed are
    included."""
    directory = directory_of(to)
    if not fs.exists(directory):
        return []
    start = "" if to.endswith("/") else uris.name(to)
    found = [entry.uri for entry in fs.children(directory) if entry.is_dir and uris.name(entry.uri).startswith(start)]
    return sorted(uri for uri in found if NAME.fullmatch(uris.name(uri)[len(start) :]))
