"""The training program's side of feeding: takes in record batches, and hands out rows as many at a time as it wants.

Tasks of Spark connect to a socket, each with one partition. What they bring waits in a buffer of limited size: a
program that is slow slows the tasks down, and nothing is lost.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow

from howdah.spark.columns import to_batches, to_numpy, to_rows
from howdah.spark.feed_messages import END, FULL, INFER, LOAD, FeedError, admit, hear, say

BUFFER_BYTES = 64 << 20
FIRST_BYTES = 1 << 20
"""How large a partition is taken to be as long as no whole one has come."""
HANDSHAKE_S, END_LIMIT_S = 10.0, 5.0
ACCEPT_AGAIN_S = 0.1
_BACKLOG = 128


def check_batch_size(rows: int) -> None:
    """Do nothing if a batch may have so many rows.

    Raises:
        ValueError: it may not.
    """
    if rows < 1:
        raise ValueError(f"a batch of {rows} rows is asked for, must be at least 1")


class PartitionHeader(NamedTuple):
    """What one connection brings."""

    kind: str
    """`train`, `infer`, or `end`: no more data will come."""
    partition: int = 0
    """The number of the partition."""
    queues: Sequence[str] | None = None
    """The names of the feeds that end; None for all."""


class _Partition:
    """One connection: the rows of it that were not handed out yet, and for inference its results."""

    def __init__(self, connection: socket.socket, header: PartitionHeader) -> None:
        self.connection, self.header = connection, header
        self.received = self.taken = self.answered = self.bytes = 0
        self.is_whole = self.is_told = False
        self.file: Any = None
        self.writer: Any = None
        self.schema: Any = None

    @property
    def awaits_results(self) -> bool:
        """Return whether all rows were handed out, and each must be answered."""
        return self.header.kind == INFER and self.is_whole and self.taken == self.received


class DataFeed:
    """The data that Spark brings to this program. It is a context manager.

    It listens on a Unix socket of this `name` in the abstract namespace, and on `port` of `host` (0: on no port).
    Whoever connects must know `key`. What has come and was not handed out takes about `buffer_bytes` at most; with 0 it
    takes no data before `take_data`, and only hears that the feed is over. `on_end` is called then, with the names
    of the feeds that end, or None for all.
    """

    def __init__(
        self,
        name: str,
        key: bytes,
        host: str = "",
        port: int = 0,
        buffer_bytes: int = BUFFER_BYTES,
        on_end: Callable[[Sequence[str] | None], None] = lambda _queues: None,
    ) -> None:
        self._name, self._key, self._limit, self._on_end = name, key, 0, on_end
        self._changed = threading.Condition()
        self._batches: deque[tuple[_Partition, Any]] = deque()
        self._bytes = self._whole_bytes = self._whole_count = 0
        self._awaited: deque[tuple[_Partition, int]] = deque()  # rows whose results are to come, in order
        self._is_over = self._is_stopped = self._is_closed = False
        self._partitions: set[_Partition] = set()
        self._threads: list[threading.Thread] = []
        self._servers: list[socket.socket] = []
        if buffer_bytes:
            self.take_data(buffer_bytes)
        if port:
            self._listen(socket.create_server((host, port), backlog=_BACKLOG))

    def _listen(self, server: socket.socket) -> None:
        self._servers.append(server)
        threading.Thread(target=self._accept_connections, args=(server,), daemon=True).start()

    def __enter__(self) -> DataFeed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def takes_data(self) -> bool:
        """Return whether the program has begun to take what tasks bring."""
        return self._limit > 0

    def take_data(self, buffer_bytes: int) -> None:
        """Take about so many bytes at most that were not handed out; tasks of this node find the program now."""
        self._limit = buffer_bytes
        server = socket.socket(socket.AF_UNIX)
        server.bind(f"\0{self._name}")
        server.listen(_BACKLOG)
        self._listen(server)

    def end(self) -> None:
        """Expect no more data: what has come is handed out."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def close(self) -> None:
        """Want no more data, and listen no more."""
        self._is_closed = True
        self.terminate()
        for server in self._servers:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)  # a thread that waits in `accept` does not see a close
            server.close()
        with self._changed:
            partitions, threads = list(self._partitions), list(self._threads)
        for partition in partitions:
            with contextlib.suppress(OSError):
                partition.connection.shutdown(socket.SHUT_RD)  # what was said to the task still reaches it
        # Python must not end while a thread of its reads by Arrow's own code; one that begins only now reads nothing.
        for thread in threads:
            thread.join(END_LIMIT_S)

    # What the program calls

    def next_batch(self, rows: int, timeout_s: float | None = None) -> dict[str, Any]:
        """Return up to `rows` rows as columns: NumPy arrays by name. Fewer come at the end of the feed, and of a
        partition in inference; none when there will be no more.

        Raises:
            TimeoutError: nothing came for `timeout_s` seconds.
        """
        table = self.next_table(rows, timeout_s)
        return {} if table is None else {name: to_numpy(table.column(name)) for name in table.column_names}

    def next_table(self, rows: int, timeout_s: float | None = None) -> pyarrow.Table | None:
        """Return the same as an Arrow table; None when there will be no more.

        Raises:
            ValueError: `rows` is less than 1, which would look like the end.
        """
        check_batch_size(rows)
        found: list[tuple[_Partition, pyarrow.RecordBatch]] = []
        missing = rows
        while missing > 0:
            try:
                taken = self._take_rows(missing, timeout_s, found)
            except BaseException:  # an interrupt, too
                self._put_back(found)
                raise
            if taken is None:
                break
            found.append(taken)
            missing -= taken[1].num_rows
        return pyarrow.Table.from_batches([batch for _, batch in found]) if found else None

    def next_rows(self, rows: int, timeout_s: float | None = None) -> list[Any]:
        """Return the same as Python objects, one for each row: as they are in an RDD, tuples for a DataFrame."""
        table = self.next_table(rows, timeout_s)
        return [] if table is None else list(to_rows(table))

    def batches(self, rows: int) -> Iterator[dict[str, Any]]:
        """Yield batches until there are no more."""
        while batch := self.next_batch(rows):
            yield batch

    def should_stop(self) -> bool:
        """Return whether there will be no more rows."""
        with self._changed:
            return self._is_stopped or (self._is_over and not self._batches)

    def put_results(self, results: pyarrow.RecordBatch | Sequence[Any]) -> None:
        """Give the results of rows that were handed out, in their order: exactly one for each row.

        Raises:
            ValueError: there are more results than rows.
        """
        if not isinstance(results, pyarrow.RecordBatch):
            for made in to_batches(results, max(1, len(results))):
                self.put_results(made)
            return
        batch, at = results, 0
        while at < batch.num_rows:
            if not self._awaited:
                raise ValueError(f"{batch.num_rows - at} results are more than the rows that were handed out")
            partition, count = self._awaited.popleft()
            size = min(count, batch.num_rows - at)
            self._answer(partition, batch.slice(at, size))
            at += size
            if size < count:
                self._awaited.appendleft((partition, count - size))

    def terminate(self) -> None:
        """Want no more data: what waits is dropped, and tasks that bring more end at once."""
        with self._changed:
            self._is_stopped = True
            partitions = {partition for partition in self._partitions if not partition.is_told}
            for partition in partitions:
                partition.is_told = True
            self._batches.clear()
            self._bytes = 0
            self._changed.notify_all()
        for partition in partitions:
            with contextlib.suppress(OSError):
                say(partition.connection, stop=True, taken=partition.taken)

    # Connections

    def _take_rows(
        self, rows: int, timeout_s: float | None, found: Sequence[tuple[_Partition, pyarrow.RecordBatch]]
    ) -> tuple[_Partition, pyarrow.RecordBatch] | None:
        """Return up to `rows` rows; None if there will be no more, or the last ones of `found` were the end of a
        partition that waits for its results."""
        last = found[-1][0] if found else None
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while not self._batches or (last is not None and last.awaits_results):
                if self._is_over or self._is_stopped or (last is not None and last.awaits_results):
                    return None
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError(f"no data from Spark for {timeout_s:g} s")
                self._changed.wait(left)
            partition, batch = self._batches[0]
            both = (batch.schema, found[0][1].schema) if found else (batch.schema,) * 2
            if both[0] != both[1]:
                given, wanted = (", ".join(f"{each.name}: {each.type}" for each in schema) for schema in both)
                raise FeedError(f"partition {partition.header.partition} has other columns: {given}, not {wanted}")
            self._batches.popleft()
            piece = batch.slice(0, rows)
            self._bytes -= piece.nbytes
            if batch.num_rows > rows:
                self._batches.appendleft((partition, batch.slice(rows)))
            partition.taken += piece.num_rows
            if partition.header.kind == INFER:
                self._awaited.append((partition, piece.num_rows))
            self._changed.notify_all()
        self._tell_taken(partition)
        return partition, piece

    def _put_back(self, found: Sequence[tuple[_Partition, pyarrow.RecordBatch]]) -> None:
        """Let rows be the next ones again that were taken, and that nobody gets."""
        with self._changed:
            for partition, batch in reversed([] if self._is_stopped else found):
                self._batches.appendleft((partition, batch))
                self._bytes += batch.nbytes
                partition.taken -= batch.num_rows
                if partition.header.kind == INFER:
                    self._awaited.pop()

    def _accept_connections(self, server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                if self._is_closed:
                    return
                time.sleep(ACCEPT_AGAIN_S)  # this process has too many files open, or the other side has gone
                continue
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            with self._changed:  # whoever sees a thread can join it
                thread.start()
                self._threads = [each for each in self._threads if each.is_alive()] + [thread]

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, FeedError, pyarrow.ArrowInvalid):
            connection.settimeout(HANDSHAKE_S)
            if not admit(connection, self._key):
                return
            stream: Any = connection.makefile("rb", 1 << 20)
            header = PartitionHeader(**hear(stream))
            connection.settimeout(None)
            if header.kind != END and not self.takes_data:
                return
            if header.kind == LOAD:
                say(connection, bytes=FULL if self._is_stopped else self._load())
                return
            if header.kind == END:
                if header.queues is None or "" in header.queues:  # no other feed has a port, where this is heard
                    self.end()
                self._on_end(header.queues)
                say(connection, taken=0)
                return
            self._serve_partition(_Partition(connection, header), stream)

    def _serve_partition(self, partition: _Partition, stream: Any) -> None:
        with self._changed:  # of tasks that connect at the same time, each is told of those before it
            is_stopped, load = self._is_stopped, self._load()
            self._partitions.add(partition)
        try:
            say(partition.connection, **({"stop": True} if is_stopped else {"go": True, "bytes": load}))
            if not is_stopped:
                self._receive(partition, stream)
        finally:
            with self._changed:
                self._partitions.discard(partition)

    def _receive(self, partition: _Partition, stream: Any) -> None:
        for batch in pyarrow.ipc.open_stream(stream):
            with self._changed:
                while self._bytes >= self._limit and not self._is_stopped:
                    self._changed.wait()
                if self._is_stopped:
                    continue  # the task reads that nobody wants the rest
                partition.received += batch.num_rows
                partition.bytes += batch.nbytes
                if batch.num_rows:
                    self._batches.append((partition, batch))
                    self._bytes += batch.nbytes
                self._changed.notify_all()
        with self._changed:
            partition.is_whole = True
            self._whole_bytes, self._whole_count = self._whole_bytes + partition.bytes, self._whole_count + 1
            self._changed.notify_all()
        self._tell_taken(partition)
        with contextlib.suppress(OSError):
            stream.read(1)  # the task closes the connection when it has heard all

    def _load(self) -> int:
        """Return how many bytes wait, or will come with the partitions that are on their way."""
        with self._changed:
            usual = self._whole_bytes // self._whole_count if self._whole_count else FIRST_BYTES
            coming = (max(1, usual - partition.bytes) for partition in self._partitions if not partition.is_whole)
            return self._bytes + sum(coming)

    def _answer(self, partition: _Partition, results: pyarrow.RecordBatch) -> None:
        partition.schema = partition.schema or results.schema
        results = results.cast(partition.schema)
        with contextlib.suppress(OSError):  # the task has gone: Spark has killed it, or wanted no more results
            if partition.writer is None:
                partition.file = partition.connection.makefile("wb", 1 << 20)
                partition.writer = pyarrow.ipc.new_stream(partition.file, partition.schema)
            partition.writer.write_batch(results)
        partition.answered += results.num_rows
        self._tell_taken(partition)

    def _tell_taken(self, partition: _Partition) -> None:
        """Tell the task when all of the partition has come, and the program has answered what was to be answered. In
        training the program may take the rows later: programs in step wait for each other, and for the next rows."""
        with self._changed:
            unanswered = partition.header.kind == INFER and partition.answered < partition.received
            if not partition.is_whole or unanswered or partition.is_told:
                return
            partition.is_told = True
        with contextlib.suppress(OSError):
            if partition.writer is not None:
                partition.writer.close()
                partition.file.flush()
            say(partition.connection, taken=partition.received)
