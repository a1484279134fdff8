"""Measures a flush of the event log to an object store, at 12 MiB of log and at its beginning.

Beside it, in turns: rewriting the object at each flush, as fsspec appends, and appending to a file on this machine's
disk. The store is moto's server, in a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec

from bench.report import Report, alternate, ratios
from bench.temp_home import temp_home
from howdah.api.recorded_log import RecordedLog
from howdah.master.owned_file import OwnedFile, owned_file
from howdah.sandbox.addresses import free_port
from howdah.storage.factory import filesystem
from howdah.storage.fsspec_adapter import FsspecFileSystem
from howdah.storage.segmented_log import find_log

MIB, LINE, LINES = 12, 200, 20
ROUNDS, FLUSHES, REWRITES = 8, 32, 4
"""One merging of segments is shared by FLUSHES; so many are slow where the object is written again."""
BATCH = 32 << 10
"""Bytes of each flush by which the log grows to its size before anything is measured."""
START_S = 30.0
MOST_REWRITING, MOST_GROWTH = 0.25, 1.25
"""A flush must take at most so much of the time of rewriting, and of its own time at the beginning of the log."""


class Rewriting(FsspecFileSystem):
    """Appends as earlier versions did."""

    def appends_cheaply(self, uri: str) -> bool:
        return True


def measure(report: Report) -> None:
    """Measure flushes of 4 kB, merging included."""
    with temp_home() as home, _object_store() as bucket:
        segments = _with_log(f"{bucket}/segments", FsspecFileSystem(bucket), MIB << 20)
        young = _with_log(f"{bucket}/young", FsspecFileSystem(bucket), 0)
        whole = owned_file(f"{bucket}/whole/events.jsonl", "event log", Rewriting(bucket))
        whole.append((b"y" * 127 + b"\n") * ((MIB << 20) // 128))
        disk = _with_log(home.as_uri(), filesystem(home.as_uri()), MIB << 20)
        subjects = {"segments": segments, "young": young, "whole": whole, "disk": disk}
        counts = {"whole": REWRITES}
        spent = alternate({name: _flush(file, counts.get(name, FLUSHES)) for name, file in subjects.items()}, ROUNDS)
        report.figure(f"a flush at {MIB} MiB of log, in segments", [1000 * each for each in spent["segments"]], "ms")
        report.figure("a flush at the beginning of the log", [1000 * each for each in spent["young"]], "ms")
        report.figure(f"a flush at {MIB} MiB, the object written again", [1000 * each for each in spent["whole"]], "ms")
        report.figure(f"a flush at {MIB} MiB to a file on the disk", [1000 * each for each in spent["disk"]], "ms")
        report.figure("segments / the disk", ratios(spent["segments"], spent["disk"]), "x")
        ratio = report.figure("segments / the object written again", ratios(spent["segments"], spent["whole"]), "x")
        report.target("segments / the object written again", ratio, MOST_REWRITING)
        growth = report.figure(f"at {MIB} MiB / at the beginning", ratios(spent["segments"], spent["young"]), "x")
        report.target("growth of a flush with the log", growth, MOST_GROWTH)
        _read(report, f"{bucket}/segments", segments)


def _flush(file: OwnedFile, count: int) -> Callable[[], float]:
    """Return a function that measures `count` flushes, merging included; it returns the mean."""

    def flush() -> float:
        began = time.perf_counter()
        for _ in range(count):
            file.append((b"x" * (LINE - 1) + b"\n") * LINES)
            file.merge()
        return (time.perf_counter() - began) / count

    return flush


def _with_log(directory: str, files: object, size: int) -> OwnedFile:
    """Return the log of a job that has written `size` bytes."""
    uri = f"{directory}/events.jsonl"
    file = owned_file(uri, "event log", files)  # type: ignore[arg-type]
    for _ in range(size // BATCH):
        file.append((b"y" * 127 + b"\n") * (BATCH // 128))
        file.merge()
    return file


def _read(report: Report, directory: str, file: OwnedFile) -> None:
    files = filesystem(directory)
    began = time.perf_counter()
    RecordedLog("job-1", directory, files).read()
    report.figure("reading the log of a running job", [time.perf_counter() - began], "s")
    file.merge(at_the_end=True)
    log = find_log(files, f"{directory}/events.jsonl")
    assert log is not None
    report.figure("files of the log at the end of the job", [float(len(log.segments))], "")


@contextlib.contextmanager
def _object_store() -> Iterator[str]:
    """Start a server of S3's protocol; give the URI of a bucket."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with Path(os.devnull).open("wb") as nothing:
        server = subprocess.Popen(command, stdout=nothing, stderr=nothing)
    address = f"http://127.0.0.1:{port}"
    os.environ.update(AWS_ENDPOINT_URL=address, AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret")  # noqa: S106
    try:
        deadline = time.monotonic() + START_S
        while True:
            try:
                urllib.request.urlopen(f"{address}/moto-api", timeout=2.0).close()  # noqa: S310
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        fsspec.filesystem("s3").mkdir("journals")
        yield "s3://journals"
    finally:
        server.terminate()
        server.wait()
