"""Read checkpoints in several files with an index of them: `*.safetensors.index.json`, `*.bin.index.json`.

The index only says which files belong together: the files themselves have types, shapes and numbers.
"""

from __future__ import annotations

import json
import posixpath

from howdah.eventfiles.errors import Unreadable
from howdah.eventfiles.tensor import MAX_HEADER_BYTES, MAX_TENSORS, Tensor
from howdah.eventfiles.tensor_files import read_tensors
from howdah.spec import uris
from howdah.storage.filesystem import FileSystem

INDEX = ".index.json"
MAX_SHARDS = 1000


def read_shards(fs: FileSystem, uri: str) -> tuple[set[str], list[Tensor]]:
    """Return the names of the files that an index names, and the tensors that it says are in them.

    Raises:
        Unreadable: `uri` is no such index, or a file is missing or lacks a tensor.
    """
    file_of = _read_index(fs, uri)
    directory, found = uri.rpartition("/")[0], []
    files = set(file_of.values())
    for file in sorted(files):
        shard = f"{directory}/{file}"
        if fs.stat(shard) is None:
            raise Unreadable(f"{uri}: names {file}, which is not there")
        tensors = {tensor.name: tensor for tensor in read_tensors(fs, shard)}
        for name in (name for name in file_of if file_of[name] == file):
            if name not in tensors:
                raise Unreadable(f"{shard}: has no {name[:200]!r}, which {uris.name(uri)} says is there")
            found.append(tensors[name])
    return files, sorted(found, key=lambda tensor: tensor.name)


def _read_index(fs: FileSystem, uri: str) -> dict[str, str]:
    """Return the file of each tensor."""
    status = fs.stat(uri)
    if status is None or status.size > MAX_HEADER_BYTES:
        raise Unreadable(f"{uri}: is gone, or larger than {MAX_HEADER_BYTES} bytes")
    try:
        table = json.loads(fs.read_bytes(uri))["weight_map"]
        file_of = {str(name): str(file) for name, file in list(table.items())[:MAX_TENSORS]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(f"{uri}: is no index of a checkpoint: {error}") from error
    files = set(file_of.values())
    wrong = next((name for name in files if posixpath.basename(name) != name or name in ("", ".", "..")), None)
    if wrong is not None or len(files) > MAX_SHARDS:
        raise Unreadable(
            f"{uri}: names {len(files)} files" + ("" if wrong is None else f", one not beside it: {wrong[:100]!r}")
        )
    return file_of
