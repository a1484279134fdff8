"""Checkpoints in several files with a table of what is where: `*.safetensors.index.json`, `*.bin.index.json`.

The table only says which files belong together: types, shapes and numbers are those of the files.
"""

from __future__ import annotations

import json
import posixpath

from howdah.eventfiles import tensors
from howdah.eventfiles.errors import Unreadable
from howdah.eventfiles.tensors import MOST_HEADER, MOST_TENSORS, Tensor
from howdah.spec import uris
from howdah.storage.filesystem import FileSystem

INDEX = ".index.json"
MOST_SHARDS = 1000


def indexed(fs: FileSystem, uri: str) -> tuple[set[str], list[Tensor]]:
    """The files that an index names, and the tensors that it says are in them.

    Raises:
        Unreadable: it is no such index, or a file is missing or lacks a tensor.
    """
    where = _where(fs, uri)
    folder, found = uri.rpartition("/")[0], []
    files = sorted(set(where.values()))
    for name in files:
        shard = f"{folder}/{name}"
        if fs.stat(shard) is None:
            raise Unreadable(f"{uri}: names {name}, which is not there")
        held = {one.name: one for one in tensors.read(fs, shard)}
        wanted = [each for each, file in where.items() if file == name]
        lacking = next((each for each in wanted if each not in held), None)
        if lacking is not None:
            raise Unreadable(f"{shard}: has no {lacking[:200]!r}, which {uris.name(uri)} says is there")
        found += [held[each] for each in wanted]
    return set(files), sorted(found, key=lambda one: one.name)


def _where(fs: FileSystem, uri: str) -> dict[str, str]:
    """Of each tensor its file."""
    entry = fs.stat(uri)
    if entry is None or entry.size > MOST_HEADER:
        raise Unreadable(f"{uri}: is gone, or larger than {MOST_HEADER} bytes")
    try:
        table = json.loads(fs.read_bytes(uri))["weight_map"]
        where = {str(name): str(file) for name, file in list(table.items())[:MOST_TENSORS]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(f"{uri}: is no index of a checkpoint: {error}") from error
    files = set(where.values())
    wrong = next((name for name in files if posixpath.basename(name) != name or name in ("", ".", "..")), None)
    if wrong is not None or len(files) > MOST_SHARDS:
        raise Unreadable(
            f"{uri}: names {len(files)} files" + ("" if wrong is None else f", one not beside it: {wrong[:100]!r}")
        )
    return where
