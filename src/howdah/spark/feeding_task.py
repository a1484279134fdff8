"""A feeding task's side of feeding: brings one partition to a training program, and returns what it answers.

Spark brings this module to its executors by value: beside Python's own library it needs pyarrow alone.
"""

from __future__ import annotations

import contextlib
import random
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow

from howdah.spark.feed_messages import (
    END,
    FULL,
    INFER,
    LOAD,
    TRAIN,
    FeedError,
    SilentProgram,
    UnreachedProgram,
    hear,
    introduce,
    queue_name,
    say,
    sockets_here,
)

CONNECT_S = 20.0
"""How long a program may take to listen again, after it was restarted."""
_STEP_S = 0.1
KEEPALIVE_IDLE_S, KEEPALIVE_EVERY_S, KEEPALIVE_COUNT = 30, 10, 6
"""After 90 s without a sign the machine of a program is gone: the task ends, and its rows are fed again. That is so
where nothing is on its way there, as when a task waits for an answer. While data waits to be acknowledged, Linux asks
nothing: it sends that again, and gives up after about 15 min (tcp_retries2)."""
MAX_ASKED = 16
"""How many programs of other nodes are asked how much data waits there."""
SLACK, SLACK_BYTES = 1.1, 1 << 16
"""How much more may wait at a program of this node than at one of another node that gets nothing then."""


class Programs(NamedTuple):
    """The programs of a cluster that are fed."""

    cluster: str
    """The name of the cluster."""
    key: bytes
    """The cluster's key."""
    ports: Sequence[tuple[str, int]] = ()
    """Where they listen for tasks of other nodes: hosts and ports."""
    connect_s: float = CONNECT_S
    """Seconds to wait for a program that listens."""
    silence_s: float | None = None
    """Seconds that a program may take no data, and give no results; None for no limit."""

    def __repr__(self) -> str:
        return f"Programs({self.cluster!r}, ports={self.ports!r})"  # the key is shown to nobody

    def of_queue(self, queue: str, silence_s: float | None) -> Programs:
        """Return them as the receivers of another feed of theirs, which tasks of their own nodes alone reach; "" is the
        feed that has no name."""
        ports = () if queue else self.ports
        return self._replace(cluster=queue_name(self.cluster, queue), ports=ports, silence_s=silence_s)


class _Program:
    """A connection to a program, for one partition: a context manager."""

    def __init__(self, programs: Programs, place: Any, kind: str, partition: int) -> None:
        self.connection = _open(programs, place, kind, partition)
        self.answers = self.connection.makefile("rb")
        try:
            said = hear(self.answers)
        except BaseException:
            self.__exit__()
            raise
        self.wants_more = "stop" not in said
        self.load = int(said.get("bytes", 0)) if self.wants_more else FULL
        """How many bytes wait there, or are on their way, beside this partition."""

    def __enter__(self) -> _Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.close()
        self.connection.close()


def feed_partition(programs: Programs, partition: int, batches: Iterable[pyarrow.RecordBatch]) -> int:
    """Bring a partition to a program; return how many rows it has taken: 0 if it wants none.

    Raises:
        FeedError: no program listens (UnreachedProgram), or it has died before it had all rows, or takes none
            (SilentProgram). What `batches` raises is raised as it is.
    """
    with _connect(programs, TRAIN, partition) as program:
        if not program.wants_more:
            return 0
        connection = program.connection
        _write(connection, batches, lambda: bool(select.select([connection], [], [], 0)[0]))
        try:
            return int(hear(program.answers).get("taken", 0))
        except FeedError as error:
            if _is_silence(error.__cause__):
                raise _silent(connection) from error
            raise


def infer_partition(
    programs: Programs, partition: int, batches: Iterable[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    """Bring a partition to a program, and yield its results in the order of the rows.

    Raises:
        FeedError: no program listens, or it has died, or has not answered each row once.
    """
    with _connect(programs, INFER, partition) as program:
        if not program.wants_more:
            raise FeedError("the training program wants no more data")
        # A thread writes: the program may answer the first rows before it has taken the last ones.
        writer = _Writer(program.connection, batches)
        try:
            found, answers = 0, program.answers
            try:
                if answers.peek(1)[:1] not in (b"", b"{"):
                    for results in pyarrow.ipc.open_stream(answers):
                        found += results.num_rows
                        yield results
            except TimeoutError as error:
                raise (_silent(program.connection) if _is_silence(error) else FeedError(str(error))) from error
            sent = writer.finish()
            hear(answers)
        finally:
            writer.stop()
        if found != sent:
            raise FeedError(f"{sent} rows have {found} results")


class _Writer(threading.Thread):
    """Writes batches to a connection, which it ends if they cannot be read."""

    def __init__(self, connection: socket.socket, batches: Iterable[pyarrow.RecordBatch]) -> None:
        super().__init__(daemon=True)
        self._connection, self._batches = connection, batches
        self._rows, self._is_over = 0, threading.Event()
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._rows = _write(self._connection, self._batches, self._is_over.is_set)
        except BaseException as error:  # it is raised in the task's own thread
            self._error = error
            self._shut_down()

    def _shut_down(self) -> None:
        with contextlib.suppress(OSError):  # the program has gone
            self._connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> int:
        """Return how many rows were written, or raise what kept them from being read."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._rows

    def stop(self) -> None:
        """Write no more, and return when this reads no more batches: the task may end before it has read all results,
        as those of `take` do, and Spark's Python goes on to read where the thread does."""
        self._shut_down()  # before the thread can say that these were all rows
        self._is_over.set()
        self.join()


def end_feed(host: str, port: int, key: bytes, timeout_s: float, queues: Sequence[str] | None = None) -> None:
    """Tell a program that no more data will come, to feeds of these names or to any.

    Raises:
        FeedError, OSError: it does not listen, or does not answer.
    """
    with (
        socket.create_connection((host, port), timeout_s) as connection,
        _introduced(connection, key, END, 0, queues=queues).makefile("rb") as answers,
    ):
        hear(answers)


def _connect(programs: Programs, kind: str, partition: int) -> _Program:
    """Connect to a program on this node, or to one elsewhere where clearly less data waits.

    Raises:
        UnreachedProgram: none has listened for `connect_s` seconds.
    """
    deadline = time.monotonic() + programs.connect_s
    while True:
        here: list[Any] = [f"\0{name}" for name in sockets_here(programs.cluster)]
        problem: OSError | FeedError | None = None
        if here or programs.ports:
            try:
                program = _choose(programs, here, kind, partition)
                program.connection.settimeout(programs.silence_s)
                return program
            except (OSError, FeedError) as error:  # it may end just now
                problem = error
        if time.monotonic() > deadline:
            where = f"none of {len(programs.ports)} training programs listens"
            raise UnreachedProgram(f"{where} within {programs.connect_s:g} s: {problem or 'none is on this node'}")
        time.sleep(_STEP_S)


def _choose(programs: Programs, here: list[Any], kind: str, partition: int) -> _Program:
    """Connect to the program that gets a partition. Programs that train in step must get about the same number of rows,
    or one waits for rows that another has: so it is one of this node only as long as no other one has clearly less.

    Raises:
        OSError: a program does not answer.
    """
    ports = list(programs.ports)
    elsewhere = ports if len(ports) <= MAX_ASKED else random.sample(ports, MAX_ASKED)
    near, far = _in_turn(here, partition), _in_turn(elsewhere, partition)
    if not near:
        return _Program(programs, _least_loaded(programs, far)[1] or far[0], kind, partition)
    # It is told of this partition first: else tasks that begin together would all see that nothing waits there.
    program = _Program(programs, near[0], kind, partition)
    load, place = _least_loaded(programs, near[1:])
    if load >= program.load:
        load, place = program.load, None
    if len(near) > 1 or len(ports) > 1:
        far_load, far_place = _least_loaded(programs, far)
        if load > SLACK * far_load + SLACK_BYTES:
            place = far_place
    if place is not None:
        with contextlib.suppress(OSError, FeedError):  # it may have ended meanwhile
            other = _Program(programs, place, kind, partition)
            program.__exit__()
            return other
    return program


def _least_loaded(programs: Programs, places: list[Any]) -> tuple[int, Any]:
    """Return how much waits where the least data does, and that place; None if no program answers."""
    loads = []
    for place in places:
        with contextlib.suppress(OSError, FeedError):  # it may have ended
            loads.append((_load(programs, place), place))
    return min(loads, key=lambda each: each[0], default=(FULL, None))


def _in_turn(places: list[Any], partition: int) -> list[Any]:
    """Return the places with another one first for each partition."""
    first = partition % len(places) if places else 0
    return [*places[first:], *places[:first]]


def _load(programs: Programs, place: Any) -> int:
    """Return how many bytes wait at a program, or are on their way there.

    Raises:
        OSError, FeedError: it does not answer.
    """
    with _open(programs, place, LOAD, 0) as connection, connection.makefile("rb") as answers:
        return int(hear(answers)["bytes"])


def _open(programs: Programs, place: Any, kind: str, partition: int) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX) if isinstance(place, str) else socket.socket()
    try:
        connection.settimeout(programs.connect_s)
        connection.connect(place)
        if connection.family != socket.AF_UNIX:  # a machine that has gone says nothing
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_EVERY_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_COUNT)
        return _introduced(connection, programs.key, kind, partition)
    except OSError:
        connection.close()
        raise


def _introduced(connection: socket.socket, key: bytes, kind: str, partition: int, **more: Any) -> socket.socket:
    introduce(connection, key)
    say(connection, kind=kind, partition=partition, **more)
    return connection


def _write(connection: socket.socket, batches: Iterable[pyarrow.RecordBatch], is_over: Callable[[], bool]) -> int:
    """Write batches until there are no more, or `is_over`, or the program has gone; return how many rows they had. If
    they cannot be read, the connection ends: what came of the partition is not taken for all of it."""
    rows, stream = 0, _BatchStream(connection)
    try:
        for batch in batches:
            if is_over() or not stream.write(batch):
                break
            rows += batch.num_rows
        stream.end()
        return rows
    except BaseException:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        raise
    finally:
        stream.close()


class _BatchStream:
    """Writes batches to a program as long as that is there. Errors of the connection alone are caught, not those of
    reading the batches: a reset connection to where they come from says nothing of the program."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._file = connection, connection.makefile("wb", 1 << 20)
        self._writer: Any = None

    def write(self, batch: pyarrow.RecordBatch) -> bool:
        """Write a batch; return whether the program is there.

        Raises:
            SilentProgram: it takes no data.
        """

        def write() -> None:
            self._writer = self._writer or pyarrow.ipc.new_stream(self._file, batch.schema)
            self._writer.write_batch(batch)

        return self._is_there(write)

    def end(self) -> None:
        """Say that these were all batches."""

        def end() -> None:
            (self._writer or pyarrow.ipc.new_stream(self._file, pyarrow.schema([]))).close()
            self._file.flush()

        self._is_there(end)

    def close(self) -> None:
        """Write no more; the connection stays open for whoever reads the answer."""
        with contextlib.suppress(OSError):  # what is left, nobody takes
            self._file.close()

    def _is_there(self, act: Callable[[], None]) -> bool:
        try:
            act()
        except OSError as error:
            if _is_silence(error):
                raise _silent(self._connection) from error
            return False
        return True


def _is_silence(error: BaseException | None) -> bool:
    """Return whether a limit of time is over; what the network says of a machine that has gone has a number."""
    return isinstance(error, TimeoutError) and error.errno is None


def _silent(connection: socket.socket) -> SilentProgram:
    return SilentProgram(
        f"a training program has taken no data, and given no results, for {connection.gettimeout():g} s"
    )
