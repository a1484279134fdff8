"""Lists the checkpoints of a job and the tensors in them. Only files below the job's own directories are opened."""

from __future__ import annotations

import os
import posixpath
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from howdah.checkpoints import discovery, file_validation
from howdah.checkpoints.discovery import CheckpointTree, FoundCheckpoint
from howdah.errors import HowdahError, NotFound, StagingError
from howdah.eventfiles import torch_file
from howdah.eventfiles.statistics import statistics
from howdah.eventfiles.tensor import MAX_PICKLE_BYTES, Tensor
from howdah.eventfiles.tensor_files import SHARD_INDEX, read_shards, read_tensors
from howdah.spec import uris
from howdah.storage.files_of_owner import FilesOfOwner, files_of
from howdah.storage.filesystem import FileSystem

MAX_CHECKPOINTS, MAX_VALIDATED = 200, 50
MAX_FILES = 64
CACHE_S = 5.0
_READABLE_SUFFIXES = (".safetensors", ".pt", ".pth", ".ckpt", ".bin", ".tar", ".npz", ".npy")


class CheckpointContents:
    """Lists checkpoints and their tensors. The result of a validation is kept, and the last answers for `CACHE_S`.
    `owner` is the user whose files are read; "": all are."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._defects: dict[tuple[str, int, int], str] = {}
        self._checkpoints: dict[tuple[str, ...], tuple[float, dict[str, Any]]] = {}
        self._tables: dict[tuple[str, str], tuple[float, list[Tensor]]] = {}

    def checkpoints(self, directories: Sequence[str], owner: str = "") -> dict[str, Any]:
        """Return the API's list of checkpoints below the directories, the newest first."""
        key = (owner, *directories)
        with self._lock:
            read_at, answer = self._checkpoints.get(key, (0.0, {}))
            if answer and time.monotonic() - read_at < CACHE_S:
                return answer
            rows: dict[str, dict[str, Any]] = {}
            errors = []
            for directory in dict.fromkeys(directories):
                try:
                    files = files_of(owner, directory)
                    for row in self._rows(files, directory):
                        rows.setdefault(row["uri"], row)
                    if isinstance(files, FilesOfOwner) and files.others:
                        errors.append({"file": directory, "text": files.why_incomplete(), "memory": False})
                except HowdahError as error:
                    errors.append({"file": directory, "text": str(error), "memory": False})
            newest = sorted(rows.values(), key=lambda row: -row["modified"])[:MAX_CHECKPOINTS]
            answer = {"checkpoints": newest, "errors": errors}
            self._checkpoints = {key: (time.monotonic(), answer)}
            return answer

    def _rows(self, files: FileSystem, directory: str) -> list[dict[str, Any]]:
        tree = CheckpointTree(files, directory)
        rows = []
        for number, found in enumerate(discovery.candidates(tree)[:MAX_CHECKPOINTS]):
            size = sum(tree.sizes[name] for name in found.files)
            uri = uris.join(directory, found.name) if found.name else directory
            defect = self._defect(tree, found, uri, size) if number < MAX_VALIDATED else None
            rows.append(
                {
                    "uri": uri,
                    "name": found.name or uris.name(directory),
                    "step": _step(found.name),
                    "format": found.format,
                    "bytes": size,
                    "files": len(found.files),
                    "modified": found.modified_ms / 1000,
                    "valid": None if defect is None else not defect,
                    "reason": defect or "",
                }
            )
        return rows

    def _defect(self, tree: CheckpointTree, checkpoint: FoundCheckpoint, uri: str, size: int) -> str:
        key = (uri, size, checkpoint.modified_ms)
        if key not in self._defects:
            try:
                self._defects[key] = discovery.find_defect(tree, checkpoint)
            except StagingError as error:  # removed meanwhile
                self._defects[key] = str(error)
        return self._defects[key]

    def tensors(self, directories: Sequence[str], uri: str, owner: str = "") -> dict[str, Any]:
        """Return the API's list of the tensors in the checkpoint at `uri`."""
        rows = [
            {"name": each.name, "dtype": each.dtype, "shape": each.shape, "count": each.count, "bytes": each.length}
            for each in self._table(directories, uri, owner)
        ]
        return {"uri": uri, "tensors": rows}

    def statistics(self, directories: Sequence[str], uri: str, name: str, owner: str = "") -> dict[str, Any]:
        """Return the API's statistics of one tensor."""
        for tensor in self._table(directories, uri, owner):
            if tensor.name == name:
                for file in dict.fromkeys([tensor.uri, *(part.uri for part in tensor.parts)]):
                    _check_below(file, directories)
                return statistics(files_of(owner, tensor.uri), tensor)
        raise NotFound(f"{uri}: no tensor {name!r}")

    def _table(self, directories: Sequence[str], uri: str, owner: str) -> list[Tensor]:
        _check_below(uri, directories)
        with self._lock:
            read_at, table = self._tables.get((owner, uri), (0.0, []))
            if table and time.monotonic() - read_at < CACHE_S:
                return table
        table = _read_checkpoint(files_of(owner, uri), uri)
        with self._lock:
            self._tables = {(owner, uri): (time.monotonic(), table)}
        return table


def _read_checkpoint(fs: FileSystem, uri: str) -> list[Tensor]:
    status = fs.stat(uri)
    if status is None or not status.is_dir:
        if uri.endswith(SHARD_INDEX):
            return read_shards(fs, uri)[1]
        if status is None and fs.stat(uri + ".index") is None:
            raise NotFound(f"{uri}: no such file or directory")
        return read_tensors(fs, uri)
    metadata = uris.join(uri, ".metadata")
    status = fs.stat(metadata)
    if status is not None and status.size <= MAX_PICKLE_BYTES and _is_below(metadata, uri):
        return torch_file.read_distributed_metadata(fs.read_bytes(metadata), metadata)
    return _read_directory(fs, uri)


def _read_directory(fs: FileSystem, uri: str) -> list[Tensor]:
    names = sorted(uris.below(each.uri, uri) for each in fs.walk(uri) if _is_below(each.uri, uri))
    found: list[Tensor] = []
    for index in [name for name in names if name.endswith(SHARD_INDEX)][:MAX_FILES]:
        shards, tensors = read_shards(fs, uris.join(uri, index))
        found += tensors
        names = [name for name in names if name not in shards]
    readable = [name.removesuffix(".index") for name in names if name.endswith((*_READABLE_SUFFIXES, ".index"))]
    readable = [name for name in readable if not file_validation.DATA.fullmatch(name)][:MAX_FILES]
    if not readable and not found:
        raise NotFound(f"{uri}: no file in it whose tensors can be shown")
    several = len(readable) > 1 or bool(found)
    for name in readable:
        prefix = f"{posixpath.splitext(name)[0]}/" if several and not name.endswith(".safetensors") else ""
        found += (replace(each, name=prefix + each.name) for each in read_tensors(fs, uris.join(uri, name)))
    return found


def _check_below(uri: str, directories: Sequence[str]) -> None:
    if not any(_is_below(uri, directory) for directory in directories):
        raise NotFound(f"{uri or 'no uri='}: not below a directory of this job")


def _is_below(uri: str, directory: str) -> bool:
    """Return whether a URI is the directory or below it; symbolic links on this machine are followed."""
    if not uris.has_scheme(uri):
        return False
    inner, outer = uris.normalize(uri), uris.normalize(directory)
    if uris.root(inner) != uris.root(outer):
        return False
    paths = [uris.path(inner), uris.path(outer)]
    if uris.split(inner)[0] == "file":
        paths = [os.path.realpath(path) for path in paths]
    return paths[0] == paths[1] or paths[0].startswith(paths[1].rstrip("/") + "/")


def _step(name: str) -> int | None:
    found = re.findall(r"\d+", posixpath.basename(name))
    return int(found[-1]) if found and len(found[-1]) < 16 else None
