"""Holds what the processes of one node share: queues by name, and values by key."""

from __future__ import annotations

import multiprocessing
import queue
import threading
from collections.abc import Sequence
from multiprocessing.managers import BaseManager
from typing import Any


class TFManager(BaseManager):
    """Shares queues and values between processes."""


class NodeManager:
    """What a node's own process has: its values, and the feeds that Spark's tasks connect to."""

    def __init__(self, open_feed: Any) -> None:
        self._open_feed, self._feeds = open_feed, {}  # type: tuple[Any, dict[str, Any]]
        self._values: dict[str, Any] = {"state": "running"}
        self.answered = {"output": "input"}
        """The queues for results, and the queues whose rows they are of."""

    def get(self, key: str) -> Any:
        """Return a value; None without one."""
        return self._values.get(key)

    def set(self, key: str, value: Any) -> None:
        """Keep a value."""
        self._values[key] = value

    def feed(self, qname: str) -> Any:
        """Return the feed of a queue."""
        if qname not in self._feeds:
            self._feeds[qname] = self._open_feed(qname)
        return self._feeds[qname]

    def get_queue(self, qname: str) -> NodeQueue:
        """Return what 2.2.5 has as a queue: rows of a feed are taken from it, results put into `output`."""
        return NodeQueue(self, qname)


class NodeQueue:
    """A queue of a node's own process, on its feed. Spark's tasks put the rows into it, and take the results."""

    def __init__(self, mgr: NodeManager, qname: str) -> None:
        self._mgr, self._qname = mgr, qname

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Return the next row; None when there will be no more. From `control` nothing comes: a node that serves the
        others is ended when they have ended.

        Raises:
            Empty: there is none now (without `block`), or none came for `timeout` seconds.
            Exception: the queue is for results or errors.
        """
        if self._qname == "control":
            threading.Event().wait(timeout if block else 0)
            raise Empty
        if self._qname == "error" or self._qname in self._mgr.answered:
            raise Exception(f"nothing is taken from the queue {self._qname}: rows come from the queue input")
        try:
            rows = self._mgr.feed(self._qname).next_rows(1, timeout if block else 0)
        except TimeoutError:
            raise Empty from None
        return rows[0] if rows else None

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Give the result of the next row that has none, by `output`; fail by `error`, with this text.

        Raises:
            Exception: the text for `error`, or the queue is for rows, which Spark brings.
        """
        if self._qname == "error":
            raise Exception(item)
        if self._qname not in self._mgr.answered:
            raise Exception(f"nothing is put into the queue {self._qname} on a node: TFCluster.train brings rows")
        self._mgr.feed(self._mgr.answered[self._qname]).put_results([item])

    def task_done(self) -> None:
        """Do nothing: Spark's tasks know which rows have come."""

    join = task_done


mgr: TFManager | None = None
qdict: dict[str, Any] = {}
kdict: dict[str, Any] = {}


def _get(key: str) -> Any:
    return kdict.get(key)


def _set(key: str, value: Any) -> None:
    kdict[key] = value


def _get_queue(qname: str) -> Any:
    return qdict.get(qname)


def start(authkey: bytes, queues: Sequence[str], mode: str = "local") -> TFManager:
    """Start a manager with these queues: for this machine's processes, or in the mode `remote` for others', too. The
    holder of `authkey` alone may use it."""
    global mgr
    qdict.clear()
    kdict.clear()
    qdict.update({name: multiprocessing.JoinableQueue() for name in queues})
    TFManager.register("get_queue", callable=_get_queue)
    TFManager.register("get", callable=_get)
    TFManager.register("set", callable=_set)
    mgr = TFManager(address=("", 0), authkey=authkey) if mode == "remote" else TFManager(authkey=authkey)
    mgr.start()
    return mgr


def connect(address: Any, authkey: bytes) -> TFManager:
    """Connect to a manager of another process."""
    for name in ("get_queue", "get", "set"):
        TFManager.register(name)
    found = TFManager(address, authkey=authkey)
    found.connect()
    return found


Empty = queue.Empty
