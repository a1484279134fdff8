"""Scans the directories of jobs and updates the index: new jobs, logs that have grown, jobs that are gone.

The rule: each byte of a log is read once. The log of an ended job is not checked again. Any other log is checked for
growth, and read on from the place where the last scan stopped. A job that cannot be read is listed with the facts that
are known.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field

from howdah.api.recorded_log import LOG, LineReader
from howdah.errors import EngineUnavailable, HowdahError, StagingError
from howdah.history.annotation_scan import AnnotationScan
from howdah.history.index import FoundJob, Index, IndexedJob
from howdah.history.job_summary import JobSummary
from howdah.spec import uris
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import CHUNK, Entry, FileSystem
from howdah.storage.segmented_log import SegmentedLog, find_log

AT_A_TIME = 32 << 20
"""Bytes of one log that are read before other logs are read."""
LIST_S = 60.0
"""Seconds after which the directories of a home are listed again even if none has come or gone: listing 100,000 jobs
takes seconds."""
LIST_OBJECTS_S = 10.0
"""The same interval for an object store, whose directories have no times."""
CLOSED_S, CLOCK_MS = 3600.0, 2000
"""Seconds after which unreadable jobs are tried again, and the precision in ms that directory times are trusted to."""
MAX_PARALLEL_READS = 16
"""Logs of a cluster that are read at the same time: each takes a few round trips."""


@dataclass
class ScanResult:
    """The result of a scan of all roots."""

    read: int = 0
    """The number of jobs with something new that was read."""
    gone: int = 0
    """Number of jobs that were removed from the index."""
    closed: int = 0
    """Number of homes that this user may not read."""
    problems: list[str] = field(default_factory=list)


class Scanner:
    """Scans `roots`, URIs of engines' homes, which may hold `*`. `conf_dir_of` returns the directory of the
    Hadoop configuration by which a URI is read."""

    def __init__(self, index: Index, roots: Iterable[str], conf_dir_of: Callable[[str], str] = lambda _: "") -> None:
        self.index, self.roots, self._conf_dir_of = index, tuple(roots), conf_dir_of
        self._listed: dict[str, tuple[int, float]] = {}
        self._closed: dict[str, int] = {}
        self._annotations = AnnotationScan(index)
        self._closed_at = time.monotonic()
        self._ended = False

    def scan(self) -> ScanResult:
        """Bring the index up to date.

        Raises:
            sqlite3.Error: the index can't be written.
        """
        result, homes = ScanResult(), []
        for root in self.roots:
            try:
                for home in self._homes(root):
                    homes.append(home)
                    self._home(home, result, "*" in root)
            except HowdahError as error:
                result.problems.append(f"{root}: {error}")
        if not result.problems and not self._ended:
            result.gone += self.index.remove_other_roots(homes)
        return result

    def end(self) -> None:
        """Stop a scan soon; called from another thread, because a scan of many jobs takes long."""
        self._ended = True

    def _files(self, uri: str) -> FileSystem:
        return filesystem(uri, self._conf_dir_of(uri))

    def _homes(self, root: str) -> list[str]:
        """Return the homes for which `root` stands: `hdfs://ns/user/*/.howdah` stands for the home of each user who has
        one."""
        before, star, after = root.partition("*")
        if not star:
            return [root]
        above = self._files(before).children(before.rstrip("/"))
        return [uris.join(entry.uri, after.strip("/")) for entry in above if entry.is_dir]

    def _home(self, home: str, result: ScanResult, one_of_many: bool) -> None:
        jobs, files = uris.join(home, "jobs"), self._files(home)
        try:
            entry = files.stat(jobs)
            if entry is not None:
                self._annotations.scan(files, home, entry.owner)
            if self._is_unchanged(home, entry.modified_ms if entry else 0):
                self._read_new_events(files, home, [self.index.open_jobs(home)], result)
                return
            listing = files.children(jobs) if entry else []
        except StagingError:
            result.closed += 1
            if not one_of_many:
                raise
            return
        result.gone += self.index.update_listing(home, _found_jobs(listing))
        del listing
        self._read_new_events(files, home, self.index.changed_jobs(home), result)
        modified_ms = entry.modified_ms if entry else 0
        if time.time() * 1000 - modified_ms > CLOCK_MS:  # else another job may come without changing the time
            self._listed[home] = (modified_ms, time.monotonic())

    def _is_unchanged(self, home: str, modified_ms: int) -> bool:
        """Return whether no job has come or gone. Whether an ended job has changed is checked less often."""
        known, at = self._listed.get(home, (-1, 0.0))
        return known == modified_ms and time.monotonic() - at < (LIST_S if modified_ms else LIST_OBJECTS_S)

    def _read_new_events(
        self, files: FileSystem, home: str, changed_jobs: Iterable[list[IndexedJob]], result: ScanResult
    ) -> None:
        if time.monotonic() - self._closed_at > CLOSED_S:
            self._closed, self._closed_at = {}, time.monotonic()
        open_ = ([job for job in jobs if self._closed.get(job.directory) != job.directory_ms] for jobs in changed_jobs)
        with ThreadPoolExecutor(MAX_PARALLEL_READS) as pool:
            at_once = map if home.startswith("file:") else pool.map
            for part in (part for jobs in open_ for part in _batches(jobs, 100)):
                if self._ended:
                    return
                read = [job for job in at_once(lambda job: self._read(files, job), part) if job is not None]
                if read:
                    self.index.put(home, read)
                    result.read += len(read)

    def _read(self, files: FileSystem, job: IndexedJob) -> IndexedJob | None:
        try:
            return read(files, job)
        except JobNotReadable:
            self._closed[job.directory] = job.directory_ms
            return None


class JobNotReadable(Exception):
    """The user of this process may not read a job: the job is not listed, and not read again for a while."""


def read(files: FileSystem, job: IndexedJob) -> IndexedJob | None:
    """Return the job with the present content of its log; None if there is nothing new, or the log can't be read now.

    Raises:
        JobNotReadable: this user may not read the job.
    """
    uri = uris.join(job.directory, LOG)
    is_remote_file = not uri.startswith("file:") and files.appends_cheaply(uri)
    if job.read_from_start and is_remote_file and _read_whole(files, uri, job):
        return job
    try:
        log = find_log(files, uri)
        size, written = (log.size, log.modified_ms) if log else (0, job.directory_ms)
        if (size, written) == (job.size, job.modified_ms):
            return None
        if log is not None and not _read_on(log, job):
            size = -1
    except EngineUnavailable:
        return None
    except StagingError as error:
        if "permission denied" in str(error) and job.read_from_start:
            raise JobNotReadable from error
        job.summary.diagnostics = str(error)
        size, written = 0, job.directory_ms
    job.size, job.modified_ms = size, written
    if job.summary.malformed_lines and not job.summary.id:
        job.summary.diagnostics = "its event log can't be read"
    return job


def _read_whole(files: FileSystem, uri: str, job: IndexedJob) -> bool:
    """Read a new log; return whether it holds the job's end. Then its size, another round trip, is not needed."""
    reader = LineReader()
    try:
        data = files.head(uri, CHUNK)
    except HowdahError:
        return False
    if len(data) == CHUNK:  # there may be more
        return False
    for lines in reader.lines([data]):
        job.summary.feed(lines)
    job.offset, job.skipping = reader.offset, reader.skipping
    if job.summary.ended:
        job.size, job.modified_ms = job.offset, 0
    return job.summary.ended


def _read_on(log: SegmentedLog, job: IndexedJob) -> bool:
    """Read on from the place where the last scan stopped, or from the beginning if the log was replaced; return whether
    the log was read to its end."""
    reader = LineReader(job.offset, job.skipping)
    with log.open() as file:
        if reader.offset:
            file.seek(reader.offset - 1)
            if log.size < reader.offset or not (reader.skipping or file.read(1) == b"\n"):
                reader, job.summary, job.read_from_start = LineReader(), JobSummary(), True
        until = reader.offset + AT_A_TIME
        for lines in reader.read(file, log.size, until):
            job.summary.feed(lines)
    job.offset, job.skipping = reader.offset, reader.skipping
    return reader.offset < until


def _found_jobs(listing: Iterable[Entry]) -> Iterator[FoundJob]:
    for entry in listing:
        if entry.is_dir:
            name = uris.name(entry.uri).encode("utf-8", "replace").decode()
            yield FoundJob(name, entry.uri, entry.modified_ms, entry.owner)


def _batches(jobs: list[IndexedJob], size: int) -> Iterator[list[IndexedJob]]:
    rest = iter(jobs)
    while part := list(itertools.islice(rest, size)):
        yield part
