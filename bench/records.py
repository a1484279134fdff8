"""Measures reading records of each file format: MB of payload for a second of CPU.

Counted is what goes to standard input. HOWDAH_BENCH_MIB is the payload of each file (64).
"""

from __future__ import annotations

import functools
import json
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.report import Report, alternate
from bench.temp_home import temp_home
from howdah.inputs.formats import Split, reader, writer
from howdah.sandbox import install
from howdah.spec import uris
from howdah.storage import native_codecs
from howdah.storage.content_cache import local_directory
from howdah.storage.filesystem import CHUNK
from howdah.storage.local import LocalFileSystem

MIB = int(os.environ.get("HOWDAH_BENCH_MIB", "64"))
ROUNDS = 5
WANTED = 200.0
SMALL, LARGE = 100, 1000
FS = LocalFileSystem()
_TOOK = "took "
Rate = Callable[[], float]
Java = Callable[[Path], float]


def measure(report: Report) -> None:
    """Measure each format beside another reader of it, or beside what limits it."""
    with temp_home() as home, _java() as java:
        for size in (SMALL, LARGE):
            lines = home / f"lines-{size}"
            lines.write_bytes(_lines(size))
            _text(report, lines, size)
            for options in ({"compression": "none"}, {"codec": "snappy"}, {"codec": "deflate"}):
                _sequencefile(report, lines, size, options, java)
            _tfrecord(report, lines, size)
        _parquet(report, home)


def _text(report: Report, lines: Path, size: int) -> None:
    payload = lines.stat().st_size
    _compare(
        report,
        f"text, lines of {size} B",
        {
            "howdah": lambda: _ours("text", {}, lines, payload),
            "read() alone": lambda: _cpu(lambda: _read(lines), payload),
        },
    )


def _sequencefile(
    report: Report, lines: Path, size: int, options: dict[str, str], java: Callable[[Path], float]
) -> None:
    payload, path = lines.stat().st_size, lines.with_suffix(".seq")
    _write("sequencefile", options, lines, path)
    name = options.get("codec", options.get("compression"))
    label = f"SequenceFile, {name}, values of {size} B"
    ours = {"howdah": lambda: _ours("sequencefile", {}, path, payload)}
    rate = _compare(report, label, {**ours, "Java": lambda: payload / 1e6 / java(path)})
    report.target(label, rate, WANTED, " MB/s", at_least=True)


def _tfrecord(report: Report, lines: Path, size: int) -> None:
    payload, path = lines.stat().st_size, lines.with_suffix(".tfrecord")
    _write("tfrecord", {}, lines, path)
    label = f"TFRecord, records of {size} B"
    rate = _compare(
        report,
        label,
        {
            "howdah": lambda: _ours("tfrecord", {}, path, payload),
            "the records' sums alone": lambda: _cpu(functools.partial(_sums, path.read_bytes(), size), payload),
        },
    )
    report.target(label, rate, WANTED, " MB/s", at_least=True)


def _parquet(report: Report, home: Path) -> None:
    """Measure rows of two numbers and a text, beside the plain way in Python."""
    chance, path = random.Random(2), home / "rows.parquet"  # noqa: S311
    rows = "".join(
        json.dumps({"id": number, "score": chance.random(), "text": chance.randbytes(20).hex()}) + "\n"
        for number in range(200_000)
    )
    (home / "rows").write_text(rows)
    _write("parquet", {}, home / "rows", path)
    subjects = {
        "howdah": lambda: _ours("parquet", {}, path, len(rows)),
        "pyarrow, to_pylist, json.dumps": lambda: _cpu(lambda: _plainly(path), len(rows)),
    }
    _compare(report, "Parquet as lines of JSON", subjects)


def _compare(report: Report, label: str, subjects: dict[str, Rate]) -> float:
    rates = alternate(subjects, ROUNDS)
    return max(report.figure(f"{label}: {name}", values, "MB/s") * (name == "howdah") for name, values in rates.items())


def _ours(name: str, options: dict[str, str], path: Path, payload: int) -> float:
    source = reader(name, options)
    split = Split(uris.of_local(path), 0, path.stat().st_size)

    def run() -> None:
        for _ in source.blocks(FS, split):
            pass

    return _cpu(run, payload)


def _cpu(run: Callable[[], Any], payload: int) -> float:
    begun = time.process_time()
    run()
    return payload / 1e6 / (time.process_time() - begun)


def _lines(size: int) -> bytes:
    """Return lines of hexadecimal digits, which compress to about a half."""
    chance = random.Random(1)  # noqa: S311
    block = b"".join(chance.randbytes(size // 2).hex().encode()[: size - 1] + b"\n" for _ in range(10_000))
    return block * ((MIB << 20) // len(block))


def _write(name: str, options: dict[str, str], source: Path, path: Path) -> None:
    with path.open("wb") as sink:
        made = writer(name, options, sink)
        for piece in FS.iter_chunks(uris.of_local(source)):
            made.write(piece)
        made.close()


def _read(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(CHUNK):
            pass


def _sums(data: bytes, size: int) -> None:
    crc32c, at = native_codecs.crc32c(), 12
    while at < len(data):
        crc32c(data[at : at + size - 1])
        at += size + 15


def _plainly(path: Path) -> None:
    from pyarrow import parquet

    for batch in parquet.ParquetFile(path).iter_batches(4096):
        for row in batch.to_pylist():
            json.dumps(row).encode()


@contextmanager
def _java() -> Iterator[Java]:
    """Return the seconds of CPU that Java takes for a SequenceFile."""
    java = install.require_java(install.DEFAULT_HADOOP, print)
    jars = install.jars(install.DEFAULT_HADOOP, java, local_directory(), print)
    program = Path(__file__).with_name("SequenceFiles.java")
    command = [str(java.program), "-cp", f"{jars}/*", str(program)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin
        assert process.stdout

        def took(path: Path) -> float:
            print(path, file=process.stdin, flush=True)
            answer = process.stdout.readline() if process.stdout else ""
            if not answer.startswith(_TOOK):
                raise SystemExit(f"{program.name} ended while it read {path}")
            return float(answer[len(_TOOK) :])

        yield took
        process.stdin.close()
