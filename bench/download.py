"""Measures copying files between HDFS and this machine's disk, beside Hadoop's own client and `hdfs dfs -get`.

HOWDAH_BENCH_MIB is the size of the one large file (1,024), HOWDAH_BENCH_FILES the number of small ones (5,000).
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import hdfs_native

from bench.report import Report, alternate, ratios
from bench.temp_home import LIMIT_S, temp_home
from howdah.hadoop import conf
from howdah.inputs import transfer
from howdah.sandbox import Sandbox
from howdah.sandbox.hadoop import Launcher
from howdah.sandbox.hadoop_record import HadoopRecord
from howdah.sandbox.install import Java
from howdah.spec import uris
from howdah.staging.path_listing import listing
from howdah.storage.factory import filesystem
from howdah.storage.io_tuning import keep_freed_memory
from howdah.wire.helper_messages import FileCopy

MIB = 1 << 20
SIZE = int(os.environ.get("HOWDAH_BENCH_MIB", "1024")) * MIB
FILES, SMALL = int(os.environ.get("HOWDAH_BENCH_FILES", "5000")), 10_000
LISTED = 10_000
ROUNDS, COMMAND_ROUNDS = 5, 3
_TOOK = "took "
PROBE, QUICK, SHM = 1000, 15_000.0, Path("/dev/shm")  # noqa: S108
AT_ONCE = 128  # HDFS takes its time to close a file
OF_JAVA, OF_COMMAND, PER_SECOND, LIST_S, MEMORY_MB = 0.9, 2.0, 2000.0, 0.2, 100.0


def measure(report: Report) -> None:
    """Measure one large file, many small ones, a listing, and uploads."""
    keep_freed_memory()  # as the process does that an executor starts
    with temp_home() as home, Sandbox() as sandbox:
        os.environ.update(sandbox.env())
        bench = _Bench(report, sandbox, home / "work")
        with _java(sandbox) as bench.java:
            bench.large()
            bench.small()
            bench.listing()
            bench.upload()


class _Bench:
    def __init__(self, report: Report, sandbox: Sandbox, work: Path) -> None:
        self.report, self.sandbox, self.work = report, sandbox, work
        self.root = conf.default_filesystem(conf.load(str(sandbox.conf_dir)))
        self.files = filesystem(self.root)
        self.java: Callable[..., float] = lambda *_: 0.0
        work.mkdir()
        (work / "source").mkdir()

    def large(self) -> None:
        """Measure one file; as a command, too, with the time to start it."""
        uri, here = f"{self.root}/bench/large", self.work / "large"
        self.files.mkdirs(uris.parent(uri))
        with self.files.writing(uri) as sink:
            piece = os.urandom(MIB)
            for _ in range(SIZE // MIB):
                sink.write(piece)
        copy = FileCopy(str(here), uri, SIZE)
        subjects = {
            "howdah": lambda: _timed(lambda: transfer.download([copy], _unseen), here),
            "java": lambda: self.java("get", uri, here, after=here),
        }
        found = alternate(subjects, ROUNDS, 2)
        self._rates(found, SIZE / MIB, "MB/s", f"one file of {SIZE // MIB} MiB to disk")
        ratio = self.report.figure("  of the warm Java client's speed", ratios(found["java"], found["howdah"]), "")
        self.report.target("large file, of the warm Java client's speed", ratio, OF_JAVA, at_least=True)
        commands = {
            "howdah": lambda: self._command([copy], here)[0],
            "dfs -get": lambda: _timed(lambda: self._shell("-get", uri, str(here)), here),
        }
        found = alternate(commands, COMMAND_ROUNDS)
        ratio = self.report.figure("  of `hdfs dfs -get`, as commands", ratios(found["dfs -get"], found["howdah"]), "")
        self.report.target("large file, of the speed of `hdfs dfs -get`", ratio, OF_COMMAND, at_least=True)
        self._memory("large file", [self._command([copy], here)[1]])

    def small(self) -> None:
        """Measure many files of 10 kB from one directory."""
        directory = f"{self.root}/bench/small"
        self.files.mkdirs(directory)
        content = os.urandom(SMALL)
        names = [f"part-{number:05d}" for number in range(FILES)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda name: self._write(f"{directory}/{name}", content), names))
        # Each time to a new place, all removed in the end.
        room = _makes_files_quickly(self.work)
        places = (room / f"small-{number}" for number in itertools.count())

        def copies() -> list[FileCopy]:
            here = next(places)
            return [FileCopy(str(here / name), f"{directory}/{name}", SMALL) for name in names]

        subjects = {
            "howdah": lambda: _timed(lambda: transfer.download(copies(), _unseen)),
            "java": lambda: self.java("getall", directory, next(places)),
        }
        found = alternate(subjects, ROUNDS)
        rate = self._rates(found, FILES, "/s", f"{FILES} files of 10 kB")
        self.report.target("small files", rate, PER_SECOND, " a second", at_least=True)
        self._memory("small files", [self._command(copies(), next(places))[1]])
        for path in room.glob("small-*"):
            _remove(path)
        if room != self.work:
            room.rmdir()

    def listing(self) -> None:
        """Measure listing 10,000 files of a directory, as staging an input does."""
        directory = f"{self.root}/bench/listed"
        self.files.mkdirs(directory)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda number: self._write(f"{directory}/{number:05d}", b""), range(LISTED)))
        subjects = {
            "howdah": lambda: _timed(lambda: listing(self.files, directory)),
            "java": lambda: self.java("list", directory, ""),
        }
        found = alternate(subjects, ROUNDS)
        for name, values in found.items():
            seconds = self.report.figure(f"listing {LISTED} files: {name}", values)
            if name == "howdah":
                self.report.target(f"listing {LISTED} files", seconds, LIST_S, " s")

    def upload(self) -> None:
        """Measure uploading one large output file, beside the client library used as its authors show it."""
        source = self.work / "source" / "large"
        with source.open("wb") as file:
            piece = os.urandom(MIB)
            for _ in range(SIZE // MIB):
                file.write(piece)
        target = f"{self.root}/bench/uploaded"
        copy = FileCopy(str(source), target)
        client = hdfs_native.Client(self.root, conf.load(str(self.sandbox.conf_dir)))
        subjects = {
            "howdah": lambda: _timed(lambda: transfer.upload([copy], _unseen)),
            "hdfs-native": lambda: _timed(lambda: _write_all(client, source, "/bench/uploaded")),
            "java": lambda: self.java("put", target, source),
        }
        found = alternate(subjects, ROUNDS)
        self._rates(found, SIZE / MIB, "MB/s", f"{SIZE // MIB} MiB of outputs to HDFS")
        ratio = self.report.figure("  of hdfs-native's speed", ratios(found["hdfs-native"], found["howdah"]), "")
        self.report.target("upload, of the client library's own speed", ratio, OF_JAVA, at_least=True)

    def _rates(self, found: dict[str, list[float]], amount: float, unit: str, what: str) -> float:
        rates = {
            name: self.report.figure(f"{what}: {name}", [amount / value for value in values], unit)
            for name, values in found.items()
        }
        return rates["howdah"]

    def _write(self, uri: str, content: bytes) -> None:
        sink = self.files.create(uri)
        if content:
            sink.write(content)
        sink.close()

    def _command(self, copies: list[FileCopy], here: Path) -> tuple[float, float]:
        """Run the helper as an executor starts it; return seconds, and its peak memory in MB."""
        items = [{"path": copy.path, "uri": copy.uri, "size": copy.size} for copy in copies]
        _remove(here)
        begun = time.perf_counter()
        helper = subprocess.Popen(
            [sys.executable, "-m", "howdah.inputs.transfer", "download"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        assert helper.stdin
        helper.stdin.write(json.dumps({"items": items}).encode())
        helper.stdin.close()
        _, status, usage = os.wait4(helper.pid, 0)
        seconds = time.perf_counter() - begun
        helper.returncode = os.waitstatus_to_exitcode(status)
        if helper.returncode:
            raise SystemExit("the download failed")
        _remove(here)
        return seconds, usage.ru_maxrss * 1024 / 1e6

    def _memory(self, what: str, values: list[float]) -> None:
        peak = self.report.figure(f"peak memory of the process that downloads: {what}", values, "MB")
        self.report.target(f"peak memory, {what}", peak, MEMORY_MB, " MB")

    def _shell(self, *arguments: str) -> None:
        launcher = _launcher(self.sandbox)
        command = launcher.tool("org.apache.hadoop.fs.FsShell", list(arguments))
        subprocess.run(command, env=launcher.environment(), check=True, timeout=LIMIT_S, capture_output=True)


@contextmanager
def _java(sandbox: Sandbox) -> Iterator[Callable[..., float]]:
    """A JVM that stays: call it with a verb, a URI, and a path of this machine."""
    launcher = _launcher(sandbox)
    class_path = ":".join([str(sandbox.conf_dir), *map(str, sorted(launcher.jars.glob("*.jar")))])
    source = Path(__file__).with_name("HdfsClient.java")
    java = subprocess.Popen(
        [str(launcher.java.program), "-Xmx1g", "-Djava.net.preferIPv4Stack=true", "-cp", class_path, str(source)],
        env=launcher.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        bufsize=1,
    )

    def ask(verb: str, uri: str, path: Path | str, after: Path | None = None) -> float:
        assert java.stdin
        assert java.stdout
        java.stdin.write(f"{verb}\t{uri}\t{path}\n")
        answer = next((line for line in java.stdout if line.startswith(_TOOK)), "")  # logs are among them
        if after is not None:
            _remove(after)
        if not answer:
            raise SystemExit(f"the Java client has ended at {verb} {uri}")
        return float(answer.removeprefix(_TOOK))

    with java:
        yield ask
        assert java.stdin
        java.stdin.close()


def _launcher(sandbox: Sandbox) -> Launcher:
    known = HadoopRecord.load(sandbox.run_dir)
    assert known
    return Launcher(known.shape.hadoop, Java(Path(known.java), known.java_release), Path(known.jars), sandbox.run_dir)


def _makes_files_quickly(work: Path) -> Path:
    """`work`, or memory: for minutes after many files were removed ext4 makes new ones at a twentieth of its speed."""
    begun = time.perf_counter()
    for number in range(PROBE):
        (work / f"small-probe-{number}").write_bytes(b"")
    rate = PROBE / (time.perf_counter() - begun)
    print(f"  a loop makes {rate:.0f} files a second on this disk", flush=True)
    if rate >= QUICK or not SHM.is_dir():
        return work
    print(f"  so small files go to {SHM}", flush=True)
    return Path(tempfile.mkdtemp(prefix="howdah-bench-", dir=SHM))


def _write_all(client: hdfs_native.Client, source: Path, path: str) -> None:
    writer = client.create(path, hdfs_native.WriteOptions(overwrite=True))
    with source.open("rb", buffering=0) as file:
        while data := file.read(MIB):
            writer.write(data)
    writer.close()


def _timed(work: Callable[[], object], after: Path | None = None) -> float:
    begun = time.perf_counter()
    work()
    seconds = time.perf_counter() - begun
    if after is not None:
        _remove(after)
    return seconds


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _unseen(files: int, size: int) -> None:
    """Ignore the progress of a transfer."""
