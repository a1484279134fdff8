"""Holds what the processes of one node share: queues by name, and values by key."""

from __future__ import annotations

import multiprocessing
import queue
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
