"""What a function of the driver's knows of the node on which it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from howdah import program
from howdah.spark.feed_messages import queue_name, socket_name

if TYPE_CHECKING:
    from howdah.spark.feed import DataFeed

FEED_PORT = "feed"
"""The name of the port that is reserved for feeding."""


class NodeContext:
    """The node on which a function runs: which task of the job it is, who the others are, and its data."""

    def __init__(self, cluster: str, key: bytes) -> None:
        self.cluster = cluster
        """The name of the cluster."""
        self._key = key
        self._feeds: dict[str, DataFeed] = {}
        self._is_over, self._ended = False, set[str]()

    @property
    def role(self) -> str:
        """Return the task's role."""
        return str(program.role)

    @property
    def index(self) -> int:
        """Return the task's number in its role, from 0."""
        return int(program.index)

    @property
    def rank(self) -> int:
        """Return the task's number over all roles, from 0."""
        return int(program.rank)

    @property
    def size(self) -> int:
        """Return how many tasks the cluster has."""
        return int(program.size)

    @property
    def peers(self) -> program.Peers:
        """Return all tasks of the cluster, with their addresses."""
        return program.world()

    def feed(self, buffer_bytes: int = 0, queue: str = "") -> DataFeed:
        """Return what Spark brings to this node, with `queue` what comes under that name; the first call begins to
        listen, and decides the size of the buffer (0: 64 MiB)."""
        from howdah.spark.feed import BUFFER_BYTES  # pyarrow takes a while, and not every node is fed

        if queue and "" not in self._feeds:
            self._open("", 0)  # the end of all feeds is told at its port
        if queue not in self._feeds:
            self._open(queue, buffer_bytes or BUFFER_BYTES)
        if not self._feeds[queue].takes_data:
            self._feeds[queue].take_data(buffer_bytes or BUFFER_BYTES)
        return self._feeds[queue]

    def _open(self, queue: str, buffer_bytes: int) -> None:
        from howdah.spark.feed import DataFeed

        own = self.peers.members[self.rank]
        host = own.host if own.host.startswith("127.") else ""
        port = 0 if queue else own.ports.get(FEED_PORT, 0)
        name = socket_name(queue_name(self.cluster, queue), own.task)
        self._feeds[queue] = DataFeed(name, self._key, host, port, buffer_bytes, self._end)
        if self._is_over or queue in self._ended:
            self._feeds[queue].end()

    def _end(self, queues: Sequence[str] | None) -> None:
        self._is_over = self._is_over or queues is None
        self._ended.update(queues or ())
        for queue, feed in list(self._feeds.items()):
            if queues is None or queue in queues:
                feed.end()

    def close(self) -> None:
        """Want no more data."""
        for feed in self._feeds.values():
            feed.close()
