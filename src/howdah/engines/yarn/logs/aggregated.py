"""Reads logs of ended applications from the files that the NodeManagers left on the cluster's file system.

The NodeManagers themselves answer 404 by then. Hadoop versions use different directories; all known ones are read. The
name of a file is that of its node, `host_port` (LogAggregationUtils.getNodeString), followed by a time if the node has
brought several.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from typing import BinaryIO

from howdah.engines.yarn import records
from howdah.engines.yarn.conf import Configuration
from howdah.engines.yarn.logs import indexed_file, tfile
from howdah.errors import EngineUnavailable, StagingError
from howdah.logs.stream_index import STREAMS, TIMES
from howdah.spec import uris
from howdah.storage.filesystem import FileSystem

_UNDER_WAY = ".tmp"
_FORMATS = "yarn.log-aggregation.file-formats"
NOT_CONTAINERS = ("VERSION", "APPLICATION_ACL", "APPLICATION_OWNER")


def file_names_of_stream(stream: str) -> tuple[str, ...]:
    """Return the names of the files that `Engine.logs` gives for `stream`."""
    return (*STREAMS, TIMES) if stream == "*" else (stream,) if stream else STREAMS


def directories(configuration: Configuration, application: str, user: str) -> list[str]:
    """Return the possible directories of the logs of `application`, the layout of the newest Hadoop first."""
    text = configuration.text
    base, suffix = text("yarn.nodemanager.remote-app-log-dir"), text("yarn.nodemanager.remote-app-log-dir-suffix")
    bucket = records.parse_application_id(application).id % 10000
    found = []
    for name in dict.fromkeys((*configuration.get_list(_FORMATS), "TFile", "IFile", "")):
        of_format = f"yarn.log-aggregation.{name}.remote-app-log-dir"
        root = uris.absolute(text(of_format, base), text("fs.defaultFS"), "")
        last = text(f"{of_format}-suffix", f"{suffix}-{name}").lower() if name else suffix
        found += [f"{root}/{user}/bucket-{last}/{bucket:04d}/{application}", f"{root}/{user}/{last}/{application}"]
    return found


def read(
    files: FileSystem, configuration: Configuration, application: str, user: str, on: Mapping[str, str] | None = None
) -> Iterator[tuple[str, str, bytes]]:
    """Yield (container id, file name, piece of its bytes) of every log file, the pieces of a file in order. With `on`,
    only the logs of containers on these hosts are read.

    Raises:
        StagingError: there are none, or they are in a format we don't read.
        EngineUnavailable: no node has brought its own to the end.
    """
    possible = directories(configuration, application, user)
    directory = next(filter(files.exists, possible), None)
    if directory is None:
        raise StagingError(
            f"no logs of {application} under {possible[0]} or {possible[-1]}: log aggregation is off "
            "(yarn.log-aggregation-enable), still under way, or the logs have expired"
        )
    begun, brought = "", False
    nodes = {node.uri for node in files.children(directory)}
    for node in sorted(nodes):
        ids = None if on is None else {id_ for id_, host in on.items() if uris.name(node).startswith(f"{host}_")}
        if ids == set() or node.endswith(indexed_file.GOOD):
            continue
        if node.endswith(_UNDER_WAY):
            begun = node
            continue
        brought = True
        good = files.read_bytes(node + indexed_file.GOOD) if node + indexed_file.GOOD in nodes else b""
        with files.open_read(node) as file:
            mark = indexed_file.header_length(file, application)
            yield from _named(node, indexed_file.read(file, mark, good, ids) if mark else _of_tfile(file, ids))
    if begun and not brought:
        raise EngineUnavailable(f"{begun}: this node has not brought its logs yet, or was stopped before it could")


def _named(node: str, pieces: Iterator[tuple[str, str, bytes]]) -> Iterator[tuple[str, str, bytes]]:
    try:
        yield from pieces
    except (tfile.TFileError, struct.error) as error:
        raise StagingError(f"{node}: {error}") from None


def _of_tfile(file: BinaryIO, containers: Collection[str] | None) -> Iterator[tuple[str, str, bytes]]:
    # Each key is a container's id as Java's writeUTF writes it.
    ids = None if containers is None else [container.encode() for container in containers]
    keys = None if ids is None else {struct.pack(">H", len(id_)) + id_ for id_ in ids}
    for key, value in tfile.records(file, keys):
        (length,) = struct.unpack(">H", key[:2])
        container = key[2 : 2 + length].decode()
        if container not in NOT_CONTAINERS:
            yield from _read_container(container, value)


def _read_container(container: str, value: tfile.TFileValue) -> Iterator[tuple[str, str, bytes]]:
    """Read a container's value: for each file its name and its size, as Java's writeUTF writes them, then its bytes."""
    while head := value.read_exactly(2):
        name = value.read_exactly(int.from_bytes(head, "big")).decode()
        left = int(value.read_exactly(int.from_bytes(value.read_exactly(2), "big")))
        if not left:
            yield container, name, b""
        while left:
            piece = value.some(min(left, tfile.PIECE))
            if not piece:
                raise tfile.TFileError(f"{container} {name} is cut off")
            left -= len(piece)
            yield container, name, piece
