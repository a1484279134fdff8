"""Measures feeding lines of a text on HDFS into a program's standard input, beside `cat` of a local copy.

Both feed the same child, which reads line by line. Ours is what an executor runs beside a program, its start included.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.report import Report, alternate, ratios
from bench.temp_home import temp_home
from howdah.executor.process.program import wide_pipe
from howdah.hadoop import conf
from howdah.sandbox import Sandbox
from howdah.spec import Feed, Split, uris
from howdah.spec.codec import encode
from howdah.storage.factory import filesystem

MIB = int(os.environ.get("HOWDAH_BENCH_MIB", "1024"))
ROUNDS = 5
WANTED = 0.7
LINES = (sys.executable, "-c", "import sys\nn = 0\nfor line in sys.stdin.buffer: n += 1\nprint(n)")
COUNT = ("wc", "-l")


def measure(report: Report) -> None:
    """The same child, fed in turns; for `wc`, which does next to nothing, only the figures."""
    with temp_home() as home, Sandbox() as sandbox:
        os.environ.update(sandbox.env())
        local = home / "text"
        size = _write(local)
        uri = f"{conf.default_filesystem(conf.load(str(sandbox.conf_dir)))}/bench/text"
        filesystem(uri).mkdirs(uris.parent(uri))
        filesystem(uri).put(local, uri)
        for name, child in (("a Python program reading lines", LINES), ("wc -l", COUNT)):
            subjects = {
                "HDFS": lambda child=child: _rate(size, _streamed(uri, size, child)),
                "this disk": lambda child=child: _rate(size, _streamed(uris.of_local(local), size, child)),
                "cat": lambda child=child: _rate(size, _by_cat(local, child)),
            }
            rates = alternate(subjects, ROUNDS)
            for subject, values in rates.items():
                report.figure(f"{subject} -> {name}", values, "MB/s")
            share = report.figure("HDFS / cat", ratios(rates["HDFS"], rates["cat"]), "")
            if child is LINES:
                report.target(f"text stream / cat, into {name}", share, WANTED, at_least=True)


def _write(path: Path) -> int:
    """Lines of 20 to 180 bytes."""
    chance = random.Random(1)  # noqa: S311
    block = b"".join(chance.randbytes(chance.randrange(10, 90)).hex().encode() + b"\n" for _ in range(100_000))
    with path.open("wb") as file:
        while file.tell() < MIB << 20:
            file.write(block)
        return file.tell()


def _rate(size: int, seconds: float) -> float:
    return size / 1e6 / seconds


def _streamed(uri: str, size: int, child: tuple[str, ...]) -> float:
    begun = time.monotonic()
    reader, writer = wide_pipe()
    half = size // 2
    feed = Feed(0, (Split(uri, 0, half), Split(uri, half, size - half)))
    request = {"feeds": [encode(feed)], "to": writer, "task": "t:0", "host": "", "directory": "/", "stall_s": 60}
    with _running((sys.executable, "-m", "howdah.inputs.streaming.stdin_feeder"), subprocess.PIPE, (writer,)) as helper:
        os.close(writer)
        assert helper.stdin
        helper.stdin.write(json.dumps(request).encode())
        helper.stdin.close()
        with _running(child, reader) as program:
            os.close(reader)
            program.wait()
        return time.monotonic() - begun


def _by_cat(path: Path, child: tuple[str, ...]) -> float:
    begun = time.monotonic()
    with subprocess.Popen(("cat", path), stdout=subprocess.PIPE) as cat:
        assert cat.stdout
        with _running(child, cat.stdout.fileno()) as program:
            cat.stdout.close()
            program.wait()
    return time.monotonic() - begun


@contextlib.contextmanager
def _running(command: tuple[str, ...], stdin: int, passed: tuple[int, ...] = ()) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, pass_fds=passed) as process:
        yield process
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
