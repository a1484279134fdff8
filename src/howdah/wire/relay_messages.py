"""The messages of the relay: a client reaches a port of a task, or a command beside its program, through the master.

No task listens for this. A client asks the master for a stream; the master asks the relay process of the task's
container, by the connection that this process keeps open to it; the process connects to the port, or starts the
command, and opens a second connection to the master, which then copies bytes between the two connections. Both are HTTP
requests that switch protocols (RFC 9110, 7.8); each is signed, as all messages to the master are.

A stream to a port carries the bytes of that port. A stream to a command carries frames: a byte that says what the frame
is, four bytes of length, and the content. A copy is a sequence of entries; a task that has received one answers with a
CopyResult.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Iterator, Mapping, Optional, Tuple

from howdah.spec.values import dataclass

PROTOCOL = "howdah-relay"
"""The name in the Upgrade header."""
OPEN, CONTROL, ACCEPT = "/v1/relay/open", "/v1/relay/control", "/v1/relay/accept"
"""Paths at the master: of a client's StreamRequest, and of the two connections of a relay process."""
LIMIT_S = 30.0
"""Seconds within which a stream must be open."""
MAX_FRAME = 1 << 20
"""The most bytes of a frame's content."""
MAX_REQUEST = 256 << 10
"""The most bytes of a StreamRequest: the words of a command."""
_HEAD = struct.Struct("!BI")

INPUT, RESIZE, SIGNAL, DETACH = 0, 1, 2, 3
"""Frames to a command: bytes of its input (none: its end); the size of the terminal; a signal's number; the client
leaves, and the command goes on."""
OUTPUT, ERRORS, STARTED, ENDED = 16, 17, 18, 19
"""Frames from a command: bytes that it printed to its standard output (or its terminal) and to its standard error; its
CommandStarted; its CommandEnd."""


@dataclass(frozen=True)
class CommandRequest:
    """A command to start in a task's container, with the environment of the task's program."""

    argv: Tuple[str, ...] = ()
    """The command's words; without any the user's shell."""
    terminal: bool = False
    """The command gets a terminal of its own, and goes on when its client is gone."""
    rows: int = 24
    """Lines of the terminal."""
    columns: int = 80
    """Characters of a line."""
    kind: str = "xterm"
    """The terminal's TERM."""


@dataclass(frozen=True)
class AttachRequest:
    """A request to come back to a running command."""

    session: str = ""
    """The `id` of the command's CommandStarted; "" for the command that lost its client last."""
    have: int = 0
    """The number of bytes of its output that the client has."""


@dataclass(frozen=True)
class CopyRequest:
    """A file or a directory to copy, (`howdah.localfiles.tree_stream`)."""

    path: str
    """Its path in the task, relative to the program's working directory."""
    to_task: bool = False
    """The client sends it; otherwise the task does."""
    name: str = ""
    """The name that it gets if the client sends it and `path` is a directory."""


@dataclass(frozen=True)
class StreamRequest:
    """A client's request for a stream; exactly one of `port`, `command`, `attach` and `copy` is set."""

    id: str
    """A random name of the stream, used once."""
    task: str
    """`worker:1`."""
    by: str = ""
    """The user who asks."""
    port: str = ""
    """A port's number, or its name in the job file."""
    command: Optional[CommandRequest] = None
    """A command to start."""
    attach: Optional[AttachRequest] = None
    """A command to come back to."""
    copy: Optional[CopyRequest] = None
    """What to copy."""

    @property
    def kind(self) -> str:
        """Return the kind of the stream's target: `port`, `shell`, `command` or `copy`; "" if that is not certain."""
        wanted = (self.port or None, self.command, self.attach, self.copy)
        if sum(each is not None for each in wanted) != 1:
            return ""
        if self.port or self.copy is not None:
            return "port" if self.port else "copy"
        return "command" if self.command is not None and not self.command.terminal else "shell"


@dataclass(frozen=True)
class CommandStarted:
    """A command that the relay process has started."""

    id: str
    """The name by which a client comes back to it."""
    pid: int
    """Its process."""
    lost: int = 0
    """Bytes of its output that the client has not got and that are not kept any more."""


@dataclass(frozen=True)
class CommandEnd:
    """How a command ended."""

    code: Optional[int] = None
    """Its exit status; None if a signal ended it."""
    signal: Optional[int] = None
    """The signal that ended it."""


@dataclass(frozen=True)
class CopyResult:
    """The result of a copy to a task."""

    path: str = ""
    """Where it is now."""
    problem: str = ""
    """Why it is not there; "" when it is."""


@dataclass(frozen=True)
class StreamRefusal:
    """Says why a relay process cannot open a stream."""

    stream: str
    """The stream's id."""
    problem: str
    """Why not, in one line."""
    gone: bool = False
    """Whether the client wants to come back to a command that is no longer there."""


def frame(kind: int, content: bytes = b"") -> bytes:
    """Return a frame."""
    return _HEAD.pack(kind, len(content)) + content


def json_frame(kind: int, record: Mapping[str, Any]) -> bytes:
    """Return a frame with a JSON object."""
    return frame(kind, json.dumps(record, separators=(",", ":")).encode())


class FrameReader:
    """Cuts received bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Tuple[int, bytes]]:
        """Yield kind and content of each frame that `data` completes.

        Raises:
            ValueError: a frame is longer than MAX_FRAME.
        """
        self._buffer += data
        while len(self._buffer) >= _HEAD.size:
            kind, size = _HEAD.unpack_from(self._buffer)
            if size > MAX_FRAME:
                raise ValueError(f"a frame of {size} bytes; at most {MAX_FRAME} are allowed")
            end = _HEAD.size + size
            if len(self._buffer) < end:
                return
            content = bytes(self._buffer[_HEAD.size : end])
            del self._buffer[:end]
            yield kind, content
