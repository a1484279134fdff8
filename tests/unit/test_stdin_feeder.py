"""Tests when a program counts as one that does not read; time is passed in."""

from __future__ import annotations

import array
import fcntl
import itertools
import os
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from howdah.inputs.streaming.record_stream import RecordStream
from howdah.inputs.streaming.stdin_feeder import Feeder, ProgramStalled
from howdah.spec import Feed, Split, uris
from howdah.wire.helper_messages import FeedReply

STALL_S = 8.0
LIMIT_S = 60.0
PAGE = 4096


@pytest.fixture
def stream(tmp_path: Path) -> RecordStream:
    """More than a pipe holds."""
    path = tmp_path / "data.txt"
    path.write_bytes((b"x" * 99 + b"\n") * 10_000)
    return RecordStream([Feed(0, (Split(uris.of_local(path), 0, path.stat().st_size),))], "worker:1")


@pytest.fixture
def pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as reads, os.fdopen(writer, "wb") as writes:
        yield reads, writes


def wait_until_full(pipe: BinaryIO) -> None:
    deadline, held = time.monotonic() + LIMIT_S, array.array("i", [0])
    while held[0] < fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ):
        assert time.monotonic() < deadline, f"the pipe has {held[0]} bytes"
        time.sleep(0.001)
        fcntl.ioctl(pipe, termios.FIONREAD, held)


def test_a_program_that_reads_slowly_does_not_stall(stream: RecordStream, pipe: tuple[BinaryIO, BinaryIO]) -> None:
    reader, writer = pipe
    now, replies = [0.0], list[FeedReply]()
    feeder = Feeder(stream, writer.fileno(), "worker:1", STALL_S, lambda: now[0])
    feeding = threading.Thread(target=lambda: replies.append(feeder.run()))
    feeding.start()
    for _ in range(12):
        wait_until_full(reader)
        now[0] += STALL_S - 1
        os.read(reader.fileno(), PAGE)
    wait_until_full(reader)
    reader.close()
    feeding.join(LIMIT_S)
    assert [reply.closed for reply in replies] == [True]


def test_a_program_that_stops_reading_stalls(stream: RecordStream, pipe: tuple[BinaryIO, BinaryIO]) -> None:
    clock = itertools.count(0, STALL_S - 3)
    with pytest.raises(ProgramStalled, match="worker:1 has read nothing from its standard input for 10 s, since"):
        Feeder(stream, pipe[1].fileno(), "worker:1", STALL_S, lambda: next(clock)).run()
