"""How files lie on their file system: the sizes of their blocks, and the nodes that hold them.

HDFS tells both with a directory's listing, a thousand files a call. What can't be found out is no failure: files are
then cut and dealt without it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from howdah.errors import HowdahError
from howdah.hadoop import conf as hadoop_conf
from howdah.spec import uris
from howdah.spec.staged import DataFile
from howdah.storage.factory import filesystem

LIMIT_S = 5.0
"""What is not known after this long stays unknown: where the data lies is worth no more waiting."""
AT_ONCE = 8


@dataclass(frozen=True)
class Blocks:
    """Of one file: bytes per block (0: not known), and for each block the nodes that hold it, if known."""

    size: int = 0
    hosts: tuple[tuple[str, ...], ...] = ()


def blocks_of(files: Sequence[DataFile], conf_dir: str = "") -> dict[str, Blocks]:
    """What is found out of them, by URI."""
    found: dict[str, Blocks] = {}
    by_root: dict[str, list[str]] = defaultdict(list)
    for file in files:
        by_root[uris.root(file.uri)].append(file.uri)
    for root, names in by_root.items():
        if uris.split(root)[0] == "hdfs":
            try:
                conf = hadoop_conf.load(hadoop_conf.directory(conf_dir))
                found.update(_run(_listed(hadoop_conf.complete(root, conf), names, conf)))
            except HowdahError:
                found.update(_alike(names, conf_dir))
        else:
            found.update(_alike(names, conf_dir))
    return found


def _alike(names: Sequence[str], conf_dir: str) -> dict[str, Blocks]:
    """The block size of the first, taken for that of all."""
    entry = filesystem(names[0], conf_dir).stat(names[0])
    size = entry.block_size if entry is not None else 0
    return {name: Blocks(size) for name in names} if size else {}


async def _listed(root: str, names: Iterable[str], conf: dict[str, str]) -> dict[str, Blocks]:
    # Behind this import is protobuf, which a job without streams does without.
    from howdah.hadoop.namenode import NameNodes

    folders: dict[str, set[str]] = defaultdict(set)
    for name in names:
        folders[uris.parent(name)].add(name)
    found: dict[str, Blocks] = {}
    namenodes, turns = NameNodes(uris.split(root)[1], conf), asyncio.Semaphore(AT_ONCE)
    until = time.monotonic() + LIMIT_S

    async def one(folder: str, wanted: set[str]) -> None:
        async with turns:
            await _list(namenodes, folder, wanted, found, until)

    try:
        await asyncio.gather(*(one(folder, wanted) for folder, wanted in folders.items()))
    finally:
        await namenodes.close()
    return found


async def _list(namenodes: Any, folder: str, wanted: set[str], found: dict[str, Blocks], until: float) -> None:
    from howdah.hadoop.namenode import before
    from howdah.hadoop.proto import namenode_pb2 as pb

    after = before(min(map(uris.name, wanted)))
    last = max(uris.name(name).encode() for name in wanted)
    while time.monotonic() < until:
        request = pb.GetListingRequest(source=uris.path(folder), start_after=after, need_location=True)
        limit_s = max(0.1, until - time.monotonic())
        answer = await namenodes.call("getListing", request, pb.GetListingResponse, limit_s)
        for status in answer.listing.partial_listing:
            uri, after = uris.join(folder, status.path.decode("utf-8", "replace")), status.path
            if uri in wanted:
                found[uri] = Blocks(status.block_size, tuple(map(_hosts, status.locations.blocks)))
        if not answer.listing.remaining_entries or after >= last:
            return


def _hosts(block: Any) -> tuple[str, ...]:
    return tuple(sorted(one.id.host_name for one in block.locations))


def _run(work: Coroutine[Any, Any, dict[str, Blocks]]) -> dict[str, Blocks]:
    """In a thread of its own: the caller's may have a loop that runs, as in a notebook."""
    outcome: list[dict[str, Blocks] | Exception] = []

    def body() -> None:
        try:
            outcome.append(asyncio.run(work))
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=body, name="blocks")
    thread.start()
    thread.join()
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]
