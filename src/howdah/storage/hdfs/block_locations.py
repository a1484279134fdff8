"""Finds out the block sizes of files, and the nodes that hold their blocks.

HDFS reports both in the listing of a directory, a thousand files a call. If they cannot be found out, files are split
and assigned to tasks without them.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from howdah.errors import HowdahError
from howdah.hadoop import conf as hadoop_conf
from howdah.spec import uris
from howdah.spec.staged import DataFile
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem

if TYPE_CHECKING:
    from howdah.hadoop.namenode import NameNodes

MAX_LOOKUP_S = 5.0
"""Seconds after which unknown locations stay unknown: they are not worth waiting longer."""
MAX_PARALLEL_LISTINGS = 8


@dataclass(frozen=True)
class Blocks:
    """The blocks of one file: bytes per block (0: not known), and the nodes that hold each block, if known."""

    size: int = 0
    hosts: tuple[tuple[str, ...], ...] = ()


def blocks_of(files: Sequence[DataFile], conf_dir: str = "") -> dict[str, Blocks]:
    """Return the known blocks of the files, by URI."""
    found: dict[str, Blocks] = {}
    by_root: dict[str, list[str]] = defaultdict(list)
    for file in files:
        by_root[uris.root(file.uri)].append(file.uri)
    for root, names in by_root.items():
        try:
            found.update(
                _from_namenode(root, names, conf_dir)
                if root.startswith("hdfs:")
                else _first_size_for_all(names, conf_dir)
            )
        except HowdahError:
            found.update(_first_size_for_all(names, conf_dir))
    return found


def _from_namenode(root: str, names: Sequence[str], conf_dir: str) -> dict[str, Blocks]:
    conf = hadoop_conf.load(hadoop_conf.directory(conf_dir))
    listing = _list_all(hadoop_conf.complete(root, conf), names, conf)
    with ThreadPoolExecutor(1) as pool:  # the caller's thread may run a loop, as in a notebook
        return pool.submit(asyncio.run, listing).result()


def _first_size_for_all(names: Sequence[str], conf_dir: str) -> dict[str, Blocks]:
    """Return the block size of the first file as the size for all."""
    entry = filesystem(names[0], conf_dir).stat(names[0])
    size = entry.block_size if entry is not None else 0
    return {name: Blocks(size) for name in names} if size else {}


async def _list_all(root: str, names: Iterable[str], conf: dict[str, str]) -> dict[str, Blocks]:
    # This imports protobuf, which a job without streams does not need.
    from howdah.hadoop.namenode import NameNodes

    directories: dict[str, set[str]] = defaultdict(set)
    for name in names:
        directories[uris.parent(name)].add(name)
    found: dict[str, Blocks] = {}
    namenodes, slots = NameNodes(uris.split(root)[1], conf), asyncio.Semaphore(MAX_PARALLEL_LISTINGS)
    until = time.monotonic() + MAX_LOOKUP_S

    async def list_one(directory: str, wanted: set[str]) -> None:
        async with slots:
            await _list(namenodes, directory, wanted, found, until)

    try:
        await asyncio.gather(*(list_one(directory, wanted) for directory, wanted in directories.items()))
    finally:
        await namenodes.close()
    return found


async def _list(
    namenodes: NameNodes, directory: str, wanted: set[str], locations: dict[str, Blocks], until: float
) -> None:
    from howdah.hadoop.namenode import before
    from howdah.hadoop.proto import namenode_pb2 as pb

    after = before(min(map(uris.name, wanted)))
    last = max(uris.name(name).encode() for name in wanted)
    while time.monotonic() < until:
        request = pb.GetListingRequest(source=uris.path(directory), start_after=after, need_location=True)
        limit_s = max(0.1, until - time.monotonic())
        answer = await namenodes.call("getListing", request, pb.GetListingResponse, limit_s)
        for status in answer.listing.partial_listing:
            uri, after = uris.join(directory, status.path.decode("utf-8", "replace")), status.path
            if uri in wanted:
                hosts = (sorted(node.id.host_name for node in block.locations) for block in status.locations.blocks)
                locations[uri] = Blocks(status.block_size, tuple(map(tuple, hosts)))
        if not answer.listing.remaining_entries or after >= last:
            return
