"""The index of all jobs: a SQLite file with a row for each job, and a row for each attempt that ran.

The rule: the index holds only what the logs say. A damaged index, or one of another version, is made anew; an index
that cannot be written (on a full disk) is still read. One process writes, by a lock on a file beside the index.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import IO, Any

from howdah.history import index_annotations
from howdah.history.index_annotations import ReadAnnotation
from howdah.history.job_summary import JobSummary
from howdah.spec.values import dataclass

VERSION = 8
"""Of the tables, whose names stay: `folder_ms` is `FoundJob.directory_ms`."""
BUSY_S = 10.0
_TABLES = """
CREATE TABLE job (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL, directory TEXT NOT NULL, root TEXT NOT NULL,
  name TEXT, user TEXT, queue TEXT, engine TEXT, framework TEXT, state TEXT,
  started REAL, finished REAL, duration REAL, tasks INTEGER, gpus INTEGER, gpu_hours REAL, wasted REAL,
  cpu_hours REAL, memory_gib_hours REAL,
  cause TEXT, progress REAL, diagnostics TEXT, words TEXT, url TEXT NOT NULL DEFAULT '',
  note TEXT NOT NULL DEFAULT '', archived INTEGER NOT NULL DEFAULT 0, noted TEXT NOT NULL DEFAULT '',
  event_files INTEGER,
  over INTEGER, offset INTEGER, skipping INTEGER, size INTEGER, written_ms INTEGER, folder_ms INTEGER, kept TEXT,
  UNIQUE (id, root)
);
CREATE INDEX job_started ON job (started, number);
CREATE INDEX job_user ON job (user, started);
CREATE INDEX job_duration ON job (duration);
CREATE INDEX job_gpu_hours ON job (gpu_hours);
CREATE INDEX job_open ON job (root) WHERE NOT over;
CREATE INDEX job_root ON job (root);
CREATE INDEX job_event_files ON job (finished) WHERE event_files;
CREATE TABLE attempt (
  job INTEGER, task TEXT, attempt INTEGER, container TEXT, node TEXT, host TEXT, pid INTEGER, gpus TEXT, held INTEGER,
  since REAL, until REAL, PRIMARY KEY (job, task, attempt)
) WITHOUT ROWID;
CREATE INDEX attempt_pid ON attempt (pid) WHERE pid;
CREATE INDEX attempt_gpu ON attempt (host) WHERE held;
CREATE TABLE waste (job INTEGER, cause TEXT, hours REAL, PRIMARY KEY (job, cause)) WITHOUT ROWID;
CREATE TABLE gpu_use (job INTEGER, model TEXT, hours REAL, PRIMARY KEY (job, model)) WITHOUT ROWID;
CREATE TABLE metric (job INTEGER, name TEXT, last REAL, least REAL, most REAL, PRIMARY KEY (job, name)) WITHOUT ROWID;
CREATE TABLE parameter (job INTEGER, name TEXT, text TEXT, value, PRIMARY KEY (job, name)) WITHOUT ROWID;
CREATE TABLE tag (job INTEGER, name TEXT, PRIMARY KEY (job, name)) WITHOUT ROWID;
CREATE TABLE dropped (root TEXT, id TEXT, folder_ms INTEGER, PRIMARY KEY (root, id)) WITHOUT ROWID;
CREATE TABLE changes (number INTEGER);
INSERT INTO changes VALUES (1);
"""
_OF_SUMMARY = (
    *("queue", "engine", "framework", "state", "finished", "duration", "tasks", "gpu_hours", "cause", "progress"),
    *("diagnostics", "cpu_hours", "memory_gib_hours"),
)
"""Columns that are attributes of the summary, unchanged."""
_DETAILS = {"attempt": 11, "waste": 3, "gpu_use": 3, "metric": 5, "parameter": 4, "tag": 2}
"""Tables with rows for each job, and the number of their columns."""
_OF_JOB = ("id", "directory", "offset", "skipping", "size")
"""Columns that are attributes of the indexed job."""
_OTHERS = (
    "root",
    "name",
    "user",
    "started",
    "gpus",
    "wasted",
    "words",
    "noted",
    "over",
    "kept",
    "written_ms",
    "folder_ms",
    "event_files",
)
_COLUMNS = (*_OF_JOB, *_OF_SUMMARY, *_OTHERS)


def _assignment(name: str) -> str:
    """Return the SQL that updates a column. The queue is kept if the log has none: the cluster may have chosen it."""
    return f"{name} = excluded.{name}" if name != "queue" else "queue = coalesce(nullif(excluded.queue, ''), queue)"


_UPSERT = (
    f"INSERT INTO job ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in _COLUMNS)}) "  # noqa: S608 - our own names
    f"ON CONFLICT (id, root) DO UPDATE SET {', '.join(map(_assignment, _COLUMNS))} "
    "RETURNING number"
)

_CHANGED_JOBS = (
    "SELECT s.id, s.directory, s.folder_ms, s.owner, j.offset, j.skipping, j.size, j.written_ms, j.over, j.kept, "
    "j.folder_ms FROM temp.seen s LEFT JOIN job j ON j.id = s.id AND j.root = :root "
    "LEFT JOIN dropped d ON d.root = :root AND d.id = s.id "
    "WHERE s.id < :last AND (j.id IS NULL OR NOT j.over OR j.folder_ms <> s.folder_ms) "
    "AND (d.id IS NULL OR d.folder_ms <> s.folder_ms) ORDER BY s.id DESC LIMIT 500"
)


@dataclass
class FoundJob:
    """A job's directory as a listing shows it."""

    id: str
    directory: str
    """URI of the directory."""
    directory_ms: int
    """When a file was last created or removed in the directory, in epoch milliseconds."""
    owner: str = ""


@dataclass
class IndexedJob(FoundJob):
    """A job as the index knows it."""

    offset: int = 0
    """How far the log was read."""
    skipping: bool = False
    """The reader skips a line that is too long (`LineReader.skipping`)."""
    size: int = -1
    """Size of the log when it was read."""
    modified_ms: int = 0
    """Modification time of the log when it was read."""
    ended_by_engine: bool = False
    """The engine reported the end, which the log does not have."""
    read_from_start: bool = True
    """The log is read from its beginning."""
    summary: JobSummary = field(default_factory=JobSummary)
    """The summary of the log up to `offset`."""


class Index:
    """The index in `directory`, which is created if it is missing. Each calling thread has a connection of its own."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.directory, self.path = directory, directory / "index.sqlite"
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._readers_changed, self._readers, self._renewing = threading.Condition(), 0, False
        self._lock: IO[str] | None = None
        self._read_only = False

    def claim(self) -> bool:
        """Try to become the only process that writes; return whether this process is."""
        if self._lock is None:
            lock = (self.directory / "lock").open("a")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                return False
            self._lock = lock
            self._prepare_or_recreate()
        return True

    @property
    def writes(self) -> bool:
        """Return whether this process is the one that writes."""
        return self._lock is not None

    def close(self) -> None:
        """Close the index, and let another process write."""
        self._close_connections()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _close_connections(self) -> None:
        self._local = threading.local()
        while self._opened:
            self._opened.pop().close()

    def renew(self) -> None:
        """Delete the damaged index and make a new one. No thread reads meanwhile: closing a connection that a thread
        uses ends the process, and a connection that was opened too early would read the deleted file for ever."""
        with self._readers_changed:
            self._renewing = True
            try:
                while self._readers:
                    self._readers_changed.wait()
                self._close_connections()
                for name in ("", "-wal", "-shm"):
                    with contextlib.suppress(FileNotFoundError):
                        Path(f"{self.path}{name}").unlink()
                self._prepare_or_recreate()
            finally:
                self._renewing = False
                self._readers_changed.notify_all()

    def _prepare_or_recreate(self) -> None:
        try:
            self._prepare()
        except sqlite3.OperationalError:  # no space or no permission: an existing index is served
            self._read_only = self.path.exists() and self.path.stat().st_size > 0
            if not self._read_only:
                raise
        except sqlite3.DatabaseError:
            self.renew()

    def _prepare(self) -> None:
        self.path.touch(0o600)
        with contextlib.closing(sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)) as made:
            made.execute("PRAGMA journal_mode=WAL")
            if made.execute("PRAGMA user_version").fetchone()[0] == VERSION:
                return
            made.execute("BEGIN IMMEDIATE")
            for (name,) in made.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                made.execute(f'DROP TABLE "{name}"')
            for statement in (_TABLES + index_annotations.TABLE).split(";\n"):
                made.execute(statement)
            made.execute(f"PRAGMA user_version = {VERSION}")
            made.execute("COMMIT")

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield this thread's connection; the index is not renewed meanwhile."""
        with self._readers_changed:
            while self._renewing:
                self._readers_changed.wait()
            self._readers += 1
        try:
            yield self.connection
        finally:
            with self._readers_changed:
                self._readers -= 1
                self._readers_changed.notify_all()

    @property
    def connection(self) -> sqlite3.Connection:
        """Return this thread's connection, for the thread that writes: only that thread renews the index."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            options = "?immutable=1" if self._read_only else ""
            uri = f"{self.path.absolute().as_uri()}{options}"
            found = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
            self._opened.append(found)
            found.execute("PRAGMA synchronous = NORMAL")
            found.execute("PRAGMA temp_store = MEMORY")
            found.create_function("folded", 1, _casefold, deterministic=True)
            self._local.connection = found
        return found

    @contextlib.contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction: all of it is written or nothing.

        Raises:
            sqlite3.Error: the index could not be written.
        """
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("UPDATE changes SET number = number + 1")
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    @property
    def version(self) -> int:
        """Return the number of the latest change."""
        with self.reading() as connection:
            return int(connection.execute("SELECT number FROM changes").fetchone()[0])

    def put(self, root: str, jobs: Iterable[IndexedJob]) -> None:
        """Write the present state of these jobs below `root`."""
        with self.change() as connection:
            written = [(connection.execute(_UPSERT, _row(root, job)).fetchone()[0], job) for job in jobs]
            _put_details(connection, written)
            index_annotations.apply(connection, root, [job.id for _, job in written])

    def put_annotations(self, root: str, read: Iterable[ReadAnnotation], gone: Iterable[str] = ()) -> None:
        """Store annotations of jobs below `root`, and forget those of the jobs in `gone`. Any thread may call it."""
        with self.reading(), self.change() as connection:
            index_annotations.store(connection, root, read, gone)

    def update_listing(self, root: str, listing: Iterable[FoundJob]) -> int:
        """Store the directories below `root`, and remove jobs that are not among them; return how many were removed."""
        connection = self.connection
        connection.execute("CREATE TEMP TABLE IF NOT EXISTS seen (id TEXT PRIMARY KEY, directory, folder_ms, owner)")
        connection.execute("BEGIN")
        connection.execute("DELETE FROM temp.seen")
        rows = ((job.id, job.directory, job.directory_ms, job.owner) for job in listing)
        connection.executemany("INSERT OR IGNORE INTO temp.seen VALUES (?, ?, ?, ?)", rows)
        connection.execute("COMMIT")
        gone = "FROM {} WHERE root = ? AND id NOT IN (SELECT id FROM temp.seen)".format
        numbers = [number for (number,) in connection.execute(f"SELECT number {gone('job')}", (root,))]
        if numbers or connection.execute(f"SELECT 1 {gone('dropped')} LIMIT 1", (root,)).fetchone():
            with self.change():
                _delete_jobs(connection, numbers)
                connection.execute(f"DELETE {gone('dropped')}", (root,))
        return len(numbers)

    def remove_other_roots(self, roots: Iterable[str]) -> int:
        """Remove the jobs of all other roots; return how many were removed."""
        known = {root for (root,) in self.connection.execute("SELECT DISTINCT root FROM job")}
        numbers: list[int] = []
        for root in known.difference(roots):
            found = self.connection.execute("SELECT number FROM job WHERE root = ?", (root,))
            numbers += [number for (number,) in found]
        if numbers:
            with self.change() as connection:
                _delete_jobs(connection, numbers)
                for root in known.difference(roots):
                    connection.execute("DELETE FROM annotation WHERE root = ?", (root,))
        return len(numbers)

    def changed_jobs(self, root: str) -> Iterator[list[IndexedJob]]:
        """Yield, some at a time, those of the stored jobs whose log may have grown, the newest first."""
        last = chr(0x10FFFF)
        while rows := self.connection.execute(_CHANGED_JOBS, {"root": root, "last": last}).fetchall():
            last = rows[-1][0]
            yield [_indexed_job(FoundJob(*row[:4]), row[4:]) for row in rows]

    def open_jobs(self, root: str) -> list[IndexedJob]:
        """Return the jobs below `root` whose log does not hold their end."""
        rows = self.connection.execute(
            "SELECT id, directory, folder_ms, user, offset, skipping, size, written_ms, over, kept, folder_ms FROM job "
            "WHERE NOT over AND root = ?",
            (root,),
        )
        return [_indexed_job(FoundJob(*row[:4]), row[4:]) for row in rows.fetchall()]

    def all_open_jobs(self) -> list[tuple[str, IndexedJob]]:
        """Return the root of each job whose log does not hold its end, and the job."""
        roots = self.connection.execute("SELECT DISTINCT root FROM job WHERE NOT over").fetchall()
        return [(root, job) for (root,) in roots for job in self.open_jobs(root)]

    def update_columns(self, root: str, job_id: str, columns: Mapping[str, object]) -> None:
        """Store columns of a job that its log does not have; nothing is written when they are stored already."""
        values, where = tuple(columns.values()), "WHERE id = ? AND root = ?"
        select = f"SELECT {', '.join(columns)} FROM job {where}"  # noqa: S608 - our own words
        found = self.connection.execute(select, (job_id, root)).fetchone()
        if found is not None and found != values:
            with self.change() as connection:
                assignments = ", ".join(f"{name} = ?" for name in columns)
                connection.execute(f"UPDATE job SET {assignments} {where}", (*values, job_id, root))  # noqa: S608

    def ended_before(self, moment: float, limit: int, but: Collection[str] = ()) -> list[tuple[str, str, str]]:
        """Return (id, directory, root) of the jobs that ended before that moment, the oldest first; leave out the roots
        in `but`, and jobs of which nobody knows when they ended."""
        others = f"AND root NOT IN ({', '.join('?' * len(but))})"
        rows = self.connection.execute(
            "SELECT id, directory, root FROM job WHERE over AND finished > 0 AND finished < ? "  # noqa: S608 - our own words
            f"{others} ORDER BY finished LIMIT ?",
            (moment, *but, limit),
        )
        return rows.fetchall()

    def drop(self, jobs: Iterable[tuple[str, str]]) -> None:
        """Hide the jobs of these roots and ids until something changes in their directories."""
        with self.change() as connection:
            for root, id_ in jobs:
                where = "FROM job WHERE id = ? AND root = ?"
                dropped = f"INSERT OR REPLACE INTO dropped SELECT root, id, folder_ms {where}"
                connection.execute(dropped, (id_, root))
                found = connection.execute(f"SELECT number {where}", (id_, root))
                _delete_jobs(connection, [number for (number,) in found])


def _casefold(text: str) -> str:
    return text.casefold()


def _indexed_job(job: FoundJob, kept: tuple[Any, ...]) -> IndexedJob:
    offset, skipping, size, modified_ms, ended, text, directory_ms = kept
    known = IndexedJob(job.id, job.directory, job.directory_ms, job.owner)
    replaced = ended and directory_ms != job.directory_ms  # an ended job's log was replaced, or ended twice
    if size is None or replaced:
        return known
    known.offset, known.skipping, known.size, known.modified_ms = offset, bool(skipping), size, modified_ms
    known.summary, known.read_from_start = JobSummary.load(text), False
    return known


def _row(root: str, job: IndexedJob) -> dict[str, object]:
    """Return the values of all columns of a job's row."""
    summary = job.summary
    ended, user = job.ended_by_engine or summary.ended, summary.user or job.owner
    texts = (job.id, summary.name, user, summary.queue, summary.framework, summary.words, summary.diagnostics)
    return {
        **{name: getattr(job, name) for name in _OF_JOB},
        **{name: getattr(summary, name) for name in _OF_SUMMARY},
        "root": root,
        "name": summary.name or job.id,
        "user": user,
        "started": summary.started or job.directory_ms / 1000,
        "gpus": summary.gpu_count,
        "wasted": sum(summary.wasted.values()),
        "words": " ".join(texts).casefold(),
        "noted": index_annotations.noted("", summary.tags),
        "over": ended,
        "kept": "" if ended else summary.dump(),
        "written_ms": job.modified_ms,
        "folder_ms": job.directory_ms,
        "event_files": ended and summary.event_files,
    }


def _put_details(connection: sqlite3.Connection, jobs: Sequence[tuple[int, IndexedJob]]) -> None:
    """Write the rows of the jobs' other tables, given each job with the number of its row."""
    anew = [(number,) for number, job in jobs if job.read_from_start]
    rows: dict[str, list[tuple[object, ...]]] = {table: [] for table in _DETAILS}
    for number, job in jobs:
        summary = job.summary
        rows["attempt"] += (
            (number, a.task, a.attempt, a.container, a.node, a.host or a.node, a.pid, a.gpus, a.held, a.since, a.until)
            for a in summary.changed.values()
        )
        summary.changed = {}
        rows["waste"] += ((number, cause, hours) for cause, hours in summary.wasted.items())
        rows["gpu_use"] += ((number, model, hours) for model, hours in summary.hours_by_model.items())
        rows["metric"] += ((number, name, *values) for name, values in summary.metrics.items())
        rows["parameter"] += ((number, name, text, _sorted_by(text)) for name, text in summary.params.items())
        rows["tag"] += ((number, name) for name in summary.tags)
    for table, columns in _DETAILS.items():
        connection.executemany(f"DELETE FROM {table} WHERE job = ?", anew)  # noqa: S608 - our own names
        places = ", ".join("?" * columns)
        connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", rows[table])  # noqa: S608


def _sorted_by(text: str) -> float | str:
    """Return the number that a text is, so that 1e-3 comes before 0.1; else the text, which SQLite sorts behind all
    numbers."""
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _delete_jobs(connection: sqlite3.Connection, numbers: list[int]) -> None:
    for number in numbers:
        for table in (*(f"{name} WHERE job" for name in _DETAILS), "job WHERE number"):
            connection.execute(f"DELETE FROM {table} = ?", (number,))  # noqa: S608 - our own names
