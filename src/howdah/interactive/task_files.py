"""Copies files and directories between this machine and a running task (`howdah.localfiles.tree_stream`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from howdah.client.relay import RelayClient
from howdah.errors import EngineUnavailable, StagingError
from howdah.localfiles.tree_stream import PIECE, STALL_S, CopyProblem, receive_tree, send_tree
from howdah.spec import TaskId
from howdah.spec.codec import decode
from howdah.spec.values import dataclass
from howdah.wire.relay_messages import CopyRequest, CopyResult

_PLACE = re.compile(r"([^/:]+):(?:([A-Za-z][\w.-]*:\d+):|:)(.*)", re.DOTALL)


@dataclass(frozen=True)
class TaskPlace:
    """Names a file or a directory in a running task."""

    job_id: str
    """The job that has the task."""
    task: str
    """The task, `worker:1`; "" for a job of one task."""
    path: str
    """Its path, relative to the working directory of the task's program."""


def split_place(text: str) -> TaskPlace | None:
    """Return the place in a task that `text` means: `ID:worker:1:PATH`, or `ID::PATH` for a job of one task. None for a
    path of this machine."""
    found = _PLACE.fullmatch(text)
    return TaskPlace(found[1], found[2] or "", found[3] or ".") if found else None


TellLeftOut = Callable[[str], object]
"""Called with the name of each thing that is not copied because it is neither a file nor a directory."""


def copy_from_task(relay: RelayClient, task: TaskId, path: str, destination: Path, tell_left_out: TellLeftOut) -> Path:
    """Copy `path` of a task to `destination`, or into it if it is a directory; return the path of the copy.

    Raises:
        StagingError: it cannot be read there, or not be written here.
        RequestRefused, EngineUnavailable: the task is not there, or the connection was lost.
    """
    connection, early = asyncio.run(relay.open(task, copy=CopyRequest(path=path)))
    connection.settimeout(STALL_S)
    name = PurePosixPath(path).name
    with connection:
        try:
            name = task.slug if name in ("", "..") else name
            return receive_tree(connection, early, destination, name, tell_left_out)
        except CopyProblem as error:
            raise StagingError(str(error)) from error
        except (EOFError, OSError) as error:
            raise EngineUnavailable(f"{relay.why_lost(task)} ({error})") from error


def copy_to_task(relay: RelayClient, task: TaskId, source: Path, path: str, tell_left_out: TellLeftOut) -> str:
    """Copy `source` to `path` of a task, or into it if it is a directory; return the path of the copy there.

    Raises:
        StagingError, RequestRefused, EngineUnavailable: as `copy_from_task`.
    """
    if not source.exists():
        raise StagingError(f"{source}: no such file or directory")
    wanted = CopyRequest(path=path, to_task=True, name=source.absolute().name or source.resolve().name)
    connection, answer = asyncio.run(relay.open(task, copy=wanted))
    connection.settimeout(STALL_S)
    left_out: list[str] = []
    with connection:
        with contextlib.suppress(OSError):  # the receiver stopped reading, and says why
            left_out = send_tree(source, connection)
        try:
            connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(PIECE):
                answer += data
            result = decode(CopyResult, json.loads(answer))
        except (OSError, ValueError) as error:
            raise EngineUnavailable(f"{relay.why_lost(task)}, before all was copied") from error
    if result.problem:
        raise StagingError(result.problem)
    for each in left_out:
        tell_left_out(each)
    return result.path
