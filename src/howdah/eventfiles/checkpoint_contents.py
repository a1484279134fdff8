"""The checkpoints of a job and what is in them. Only what lies below the job's own directories is opened."""

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
from howdah.errors import HowdahError, StagingError
from howdah.eventfiles import tensors, torch_file
from howdah.eventfiles.errors import Absent
from howdah.eventfiles.shards import INDEX, indexed
from howdah.eventfiles.statistics import statistics
from howdah.eventfiles.tensors import Tensor
from howdah.spec import uris
from howdah.storage.filesystem import FileSystem, filesystem

MOST_FOUND, MOST_LOOKED_INTO = 200, 50
MOST_FILES = 64
PAUSE_S = 5.0
_READ = (".safetensors", ".pt", ".pth", ".ckpt", ".bin", ".tar", ".npz", ".npy")


class Contents:
    """Remembers what is whole, and tables of contents."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flaws: dict[tuple[str, int, int], str] = {}
        self._found: dict[tuple[str, ...], tuple[float, dict[str, Any]]] = {}
        self._tables: dict[str, tuple[float, list[Tensor]]] = {}

    def found(self, folders: Sequence[str]) -> dict[str, Any]:
        """What the API answers: the newest first."""
        key = tuple(folders)
        with self._lock:
            at, answer = self._found.get(key, (0.0, {}))
            if answer and time.monotonic() - at < PAUSE_S:
                return answer
            rows: dict[str, dict[str, Any]] = {}
            errors = []
            for folder in dict.fromkeys(folders):
                try:
                    for row in self._of(folder):
                        rows.setdefault(row["uri"], row)
                except HowdahError as error:
                    errors.append({"file": folder, "text": str(error)})
            newest = sorted(rows.values(), key=lambda row: -row["modified"])[:MOST_FOUND]
            answer = {"checkpoints": newest, "errors": errors}
            self._found = {key: (time.monotonic(), answer)}
            return answer

    def _of(self, folder: str) -> list[dict[str, Any]]:
        tree = CheckpointTree(filesystem(folder), folder)
        rows = []
        for number, one in enumerate(discovery.candidates(tree)[:MOST_FOUND]):
            size = sum(tree.sizes[name] for name in one.files)
            uri = uris.join(folder, one.name) if one.name else folder
            reason = self._flaw(tree, one, uri, size) if number < MOST_LOOKED_INTO else None
            rows.append(
                {
                    "uri": uri,
                    "name": one.name or uris.name(folder),
                    "step": _step(one.name),
                    "format": one.format,
                    "bytes": size,
                    "files": len(one.files),
                    "modified": one.modified_ms / 1000,
                    "valid": None if reason is None else not reason,
                    "reason": reason or "",
                }
            )
        return rows

    def _flaw(self, tree: CheckpointTree, one: FoundCheckpoint, uri: str, size: int) -> str:
        key = (uri, size, one.modified_ms)
        if key not in self._flaws:
            try:
                self._flaws[key] = discovery.find_defect(tree, one)
            except StagingError as error:  # gone meanwhile
                self._flaws[key] = str(error)
        return self._flaws[key]

    def tensors(self, folders: Sequence[str], uri: str) -> dict[str, Any]:
        """What the API answers of the one at `uri`."""
        rows = [
            {
                "name": one.name,
                "dtype": one.dtype,
                "shape": one.shape,
                "count": one.count,
                "bytes": one.length,
            }
            for one in self._table(folders, uri)
        ]
        return {"uri": uri, "tensors": rows}

    def statistics(self, folders: Sequence[str], uri: str, name: str) -> dict[str, Any]:
        """What the API answers of one tensor."""
        for one in self._table(folders, uri):
            if one.name == name:
                for place in dict.fromkeys([one.uri, *(part.uri for part in one.parts)]):
                    if not any(_below(place, folder) for folder in folders):
                        raise Absent(f"{place}: not below a directory of this job")
                return statistics(filesystem(one.uri), one)
        raise Absent(f"{uri}: no tensor {name!r}")

    def _table(self, folders: Sequence[str], uri: str) -> list[Tensor]:
        if not any(_below(uri, folder) for folder in folders):
            raise Absent(f"{uri or 'no uri='}: not below a directory of this job")
        with self._lock:
            at, table = self._tables.get(uri, (0.0, []))
            if table and time.monotonic() - at < PAUSE_S:
                return table
        fs = filesystem(uri)
        table = _read(fs, uri)
        with self._lock:
            self._tables = {uri: (time.monotonic(), table)}
        return table


def _read(fs: FileSystem, uri: str) -> list[Tensor]:
    entry = fs.stat(uri)
    if entry is None or not entry.is_dir:
        if uri.endswith(INDEX):
            return indexed(fs, uri)[1]
        if entry is None and fs.stat(uri + ".index") is None:
            raise Absent(f"{uri}: no such file or directory")
        return tensors.read(fs, uri)
    metadata = uris.join(uri, ".metadata")
    table = fs.stat(metadata)
    if table is not None and table.size <= tensors.MOST_PICKLE and _below(metadata, uri):
        return torch_file.sharded(fs.read_bytes(metadata), metadata)
    names = sorted(uris.below(each.uri, uri) for each in fs.walk(uri) if _below(each.uri, uri))
    found: list[Tensor] = []
    for index in [name for name in names if name.endswith(INDEX)][:MOST_FILES]:
        shards, held = indexed(fs, uris.join(uri, index))
        found += held
        names = [name for name in names if name not in shards]
    wanted = [name.removesuffix(".index") if name.endswith(".index") else name for name in names]
    wanted = [name for name, own in zip(wanted, names, strict=True) if own.endswith((*_READ, ".index"))]
    wanted = [name for name in wanted if not file_validation.DATA.fullmatch(name)][:MOST_FILES]
    if not wanted and not found:
        raise Absent(f"{uri}: no file in it whose tensors can be shown")
    several = len(wanted) > 1 or bool(found)
    for name in wanted:
        prefix = f"{posixpath.splitext(name)[0]}/" if several and not name.endswith(".safetensors") else ""
        found += (replace(one, name=prefix + one.name) for one in tensors.read(fs, uris.join(uri, name)))
    return found


def _below(uri: str, folder: str) -> bool:
    """Whether it is that directory or in it, links on this machine followed."""
    if not uris.has_scheme(uri):
        return False
    inner, outer = uris.normal(uri), uris.normal(folder)
    if uris.root(inner) != uris.root(outer):
        return False
    paths = [uris.path(inner), uris.path(outer)]
    if uris.split(inner)[0] == "file":
        paths = [os.path.realpath(path) for path in paths]
    return paths[0] == paths[1] or paths[0].startswith(paths[1].rstrip("/") + "/")


def _step(name: str) -> int | None:
    found = re.findall(r"\d+", posixpath.basename(name))
    return int(found[-1]) if found and len(found[-1]) < 16 else None
