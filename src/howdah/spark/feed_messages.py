"""What a feeding task of Spark and the training program say to each other on one connection.

    program: a nonce; task: its digest, made with the cluster's key
    task:    a line of JSON: what it brings (`train`, `infer`, or `end`), and the number of its partition; or `load`,
             which the program answers with {"bytes": BYTES}: what waits in its buffer. An `end` may name
             the feeds that end, as `queues`
    program: {"go": true, "bytes": BYTES}, or {"stop": true} if it wants no more; the task may go elsewhere
    task:    an Arrow stream of record batches; a program that wants no more may say meanwhile {"stop": true,
             "taken": ROWS}, the rows that it has used
    program: {"taken": ROWS} when all rows are in its buffer; for inference an Arrow stream with the results comes first

A connection that ends before `taken` means that the program has died. In `Cluster.train` the driver feeds the partition
again when the program has started again; elsewhere, as in inference, the task fails, and Spark runs it again.

A program listens on a Unix socket in the abstract namespace, which its node's tasks find by its name, and on a port of
the node. Spark brings this module to its executors by value: it imports Python's own library alone.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

NONCE_BYTES, DIGEST_BYTES = 16, 32
MAX_LINE = 1 << 16
TRAIN, INFER, END, LOAD = "train", "infer", "end", "load"
FULL = 1 << 62
"""The load of a program that wants no more data."""
SILENT, UNREACHED = "silent", "unreached"
_LISTENS = "00010000"
"""The flags of a listening socket in /proc/net/unix (__SO_ACCEPTCON of Linux)."""


class FeedError(Exception):
    """The other side has died, or is none of this cluster."""

    kind = ""
    """What tells the driver how to go on: SILENT, UNREACHED, or "" for all else."""


class SilentProgram(FeedError):
    """The program runs, and has taken no data, or given no results, for as long as it may."""

    kind = SILENT


class UnreachedProgram(FeedError):
    """No program listens, though a task has waited for one as long as it may."""

    kind = UNREACHED


def socket_name(cluster: str, task: str) -> str:
    """Return the name of the Unix socket at which a task's program listens, without the zero byte before it."""
    return f"howdah-feed/{cluster}/{task}"


def queue_name(cluster: str, queue: str) -> str:
    """Return the name of a cluster's feed beside its only one, which has no name."""
    return f"{cluster}.{queue}" if queue else cluster


def sockets_here(cluster: str) -> list[str]:
    """Return the names of the sockets at which programs of a cluster listen on this node, sorted."""
    mark, found = f"@{socket_name(cluster, '')}", set()
    for line in Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split()
        if len(words) == 8 and words[3] == _LISTENS and words[7].startswith(mark):
            found.add(words[7][1:])
    return sorted(found)


def digest(key: bytes, nonce: bytes) -> bytes:
    """Return what a task answers to a program's nonce."""
    return hmac.digest(key, b"howdah feed " + nonce, "sha256")


def admit(connection: socket.socket, key: bytes) -> bool:
    """Return whether the other side knows the key; the program's part."""
    nonce = os.urandom(NONCE_BYTES)
    connection.sendall(nonce)
    return hmac.compare_digest(receive(connection, DIGEST_BYTES), digest(key, nonce))


def introduce(connection: socket.socket, key: bytes) -> None:
    """Show that this side knows the key; the task's part."""
    connection.sendall(digest(key, receive(connection, NONCE_BYTES)))


def receive(connection: socket.socket, size: int) -> bytes:
    """Return that many bytes; fewer if the other side has ended."""
    data = b""
    while len(data) < size and (piece := connection.recv(size - len(data))):
        data += piece
    return data


def say(connection: socket.socket, **words: Any) -> None:
    """Send a line."""
    connection.sendall(json.dumps(words).encode() + b"\n")


def hear(stream: BinaryIO) -> Mapping[str, Any]:
    """Return the next line.

    Raises:
        FeedError: the other side has ended, or says something else.
    """
    line = b""
    try:
        line = stream.readline(MAX_LINE)
        found = json.loads(line)
    except OSError as error:
        raise FeedError(f"the training program does not answer: {error.strerror or error}") from error
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise FeedError("the training program has ended" if not line else "not a program of this cluster")
    return found
