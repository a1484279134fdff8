"""Measures the time from the start of the event-file service to a chart of two million points on HDFS.

Beside it TensorBoard's own loaders over a copy on this machine's disk, which its Rust server needs: that one until it
answers for the last point, its Python one until it has loaded as many runs as HOWDAH_BENCH_PYTHON_RUNS (2) says, which
its time is scaled by. They live in an environment of their own, made once. Sizes: HOWDAH_BENCH_RUNS (20) and
HOWDAH_BENCH_STEPS (10000).
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import resource
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import hdfs_native

from bench.report import Report, alternate, ratios
from bench.temp_home import temp_home
from howdah.eventfiles.client import EventFileService
from howdah.eventfiles.proto import event_pb2
from howdah.hadoop.conf import default_filesystem, load
from howdah.inputs.formats import framing
from howdah.sandbox import Sandbox
from howdah.spec import uris
from howdah.storage.content_cache import local_directory
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import FileSystem

RUNS = int(os.environ.get("HOWDAH_BENCH_RUNS", "20"))
STEPS = int(os.environ.get("HOWDAH_BENCH_STEPS", "10000"))
PYTHON_RUNS = int(os.environ.get("HOWDAH_BENCH_PYTHON_RUNS", "2"))
TAGS = (
    *("train/loss", "train/accuracy", "lr", "grad_norm", "eval/loss"),
    *("eval/accuracy", "perplexity", "tokens", "memory", "loss_scale"),
)
ROUNDS = 3
WANTED_S, LIVE_S, LIMIT_S = 2.0, 2.0, 180.0
PYTHON_LOADER = """
import sys, time
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
begun = time.monotonic()
loaded = EventMultiplexer(size_guidance={"scalars": 0, "tensors": 0})
for path in sys.argv[1:]:
    loaded.AddRun(path, path)
loaded.Reload()
print(time.monotonic() - begun)
"""
RUST_LOADER = """
import subprocess, sys, tempfile, time, grpc
from tensorboard.data.proto import data_provider_pb2 as messages, data_provider_pb2_grpc as calls
from tensorboard_data_server import server_binary
directory, run, tag, last = *sys.argv[1:4], int(sys.argv[4])
port_file = tempfile.mkdtemp() + "/port"
begun = time.monotonic()
command = [server_binary(), "--logdir", directory, "--reload", "5", "--port", "0", "--port-file", port_file,
           "--samples-per-plugin", "scalars=all", "--die-after-stdin"]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while True:
    try:
        port = int(open(port_file).read())
        break
    except (OSError, ValueError):
        time.sleep(0.01)
ask = calls.TensorBoardDataProviderStub(grpc.insecure_channel(f"localhost:{port}"))
wanted = messages.ReadScalarsRequest(experiment_id="", downsample=messages.Downsample(num_points=1000))
wanted.plugin_filter.plugin_name = "scalars"
wanted.run_tag_filter.tags.names.append(tag)
def runs():
    found = ask.ReadScalars(wanted).runs
    return sum(1 for one in found if one.tags and list(one.tags[0].data.step[-1:]) == [last])
while runs() < int(run):
    time.sleep(0.02)
    if time.monotonic() > begun + 120:
        sys.exit("not loaded within 120 s")
print(time.monotonic() - begun)
server.kill()
server.wait()
"""


def measure(report: Report) -> None:
    """Measure a cold start, a new point and memory, beside TensorBoard."""
    with temp_home() as home:
        local = home / "logs"
        _write(local)
        python = _tensorboard()
        with Sandbox(home / "hadoop", nodes=0) as hadoop:
            conf_dir = str(hadoop.conf_dir)
            base = uris.join(default_filesystem(load(conf_dir)), "bench")
            os.environ["HADOOP_CONF_DIR"] = conf_dir
            fs = filesystem(base, conf_dir)
            size = _upload(fs, local, base)
            print(f"  {RUNS} runs x {len(TAGS)} tags x {STEPS} steps, {size / 1e6:.0f} MB", flush=True)
            _beside(report, base, local, python)
            _live(report, fs, base)


def _beside(report: Report, base: str, local: Path, python: str) -> None:
    subjects = {"howdah, from HDFS": lambda: _ours(base)}
    if python:
        subjects["Rust server, from disk"] = lambda: _rust(python, local)
        subjects["Python loader, from disk"] = lambda: _python(python, local)
    taken = alternate(subjects, ROUNDS)
    for name, seconds in taken.items():
        report.figure(f"cold start -> chart data, {name}", seconds)
    report.figure("CPU of howdah's processes for it", _spent[1:])
    ours, *others = taken
    for other in others:
        report.figure(f"howdah / {other}", ratios(taken[ours], taken[other]), "x")
    report.target("cold start -> chart data", sorted(taken[ours])[len(taken[ours]) // 2], WANTED_S, " s")


_spent: list[float] = []


def _ours(base: str) -> float:
    before, taken = resource.getrusage(resource.RUSAGE_CHILDREN), _cold(base)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    _spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return taken


def _cold(base: str) -> float:
    async def run() -> float:
        service, begun = EventFileService(), time.monotonic()
        try:
            target = f"curves/scalars?points=1000&tag={urllib.parse.quote(TAGS[0], '')}"
            while True:
                answer = json.loads((await service.get(target, [("", base)])).body)
                if sum(one["last"][0] == STEPS - 1 for one in answer["series"]) == RUNS and answer["complete"]:
                    return time.monotonic() - begun
                if time.monotonic() > begun + LIMIT_S:
                    raise SystemExit(f"not read within {LIMIT_S} s: {answer}")
        finally:
            await service.close()

    return asyncio.run(run())


def _live(report: Report, fs: FileSystem, base: str) -> None:
    """Measure how soon a point is found that is flushed to a file which stays open."""
    target = uris.join(base, "live", "events.out.tfevents.1800000000.live")
    fs.mkdirs(uris.parent(target))
    conf = load(os.environ["HADOOP_CONF_DIR"])
    writer = hdfs_native.Client(uris.root(base), conf).create(uris.path(target), hdfs_native.WriteOptions())

    async def run() -> list[float]:
        service, waits = EventFileService(), []
        try:
            for step in range(8):
                writer.write(b"".join(_framed(_event(b"live", step, 1.0))))
                writer.hsync()
                begun = time.monotonic()
                while True:
                    answer = json.loads((await service.get("curves/scalars?tag=live", [("", base)])).body)
                    if any(one["last"][0] == step for one in answer["series"]):
                        break
                    await asyncio.sleep(0.05)
                if step:
                    waits.append(time.monotonic() - begun)
            print(f"  service's memory: {_memory(service):.0f} MB", flush=True)
        finally:
            await service.close()
            writer.close()
        return waits

    report.target("a new point is there after", report.figure("flush -> answered", asyncio.run(run())), LIVE_S, " s")


def _memory(service: EventFileService) -> float:
    process = service._process
    assert process is not None
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1e3


def _rust(python: str, local: Path) -> float:
    return _run([python, "-c", RUST_LOADER, str(local), str(RUNS), TAGS[0], str(STEPS - 1)])


def _python(python: str, local: Path) -> float:
    """Estimate the Python loader's time for all runs from some of them."""
    directories = sorted(map(str, local.iterdir()))[:PYTHON_RUNS]
    return _run([python, "-c", PYTHON_LOADER, *directories]) * RUNS / len(directories)


def _run(command: list[str]) -> float:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S * 3, check=False)
    if done.returncode:
        raise SystemExit(f"{command[:1]}: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def _tensorboard() -> str:
    """Return the Python of an environment with TensorBoard; "" where it cannot be installed."""
    directory = local_directory() / "bench-tensorboard"
    python = directory / "bin" / "python"
    uv = str(Path(sys.executable).with_name("uv"))
    packages = ["tensorboard==2.21.0", "tensorboard-data-server==0.7.2", "setuptools<81"]
    try:
        if not (directory / "made").exists():
            subprocess.run([uv, "venv", "-q", "--clear", "--python", sys.executable, str(directory)], check=True)
            subprocess.run([uv, "pip", "install", "-q", "--python", str(python), *packages], check=True)
            (directory / "made").touch()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"  without TensorBoard: {error}", flush=True)
        return ""
    return str(python)


def _upload(fs: FileSystem, local: Path, base: str) -> int:
    size = 0
    for path in sorted(local.rglob("*.*")):
        target = uris.join(base, str(path.relative_to(local)))
        fs.mkdirs(uris.parent(target))
        size += fs.put(path, target)
    return size


def _write(local: Path) -> None:
    for run in range(RUNS):
        directory = local / f"run{run:02d}"
        directory.mkdir(parents=True)
        with (directory / f"events.out.tfevents.1700000000.host.{run}").open("wb") as file:
            start = event_pb2.Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString()
            file.writelines(_framed(start))
            for step in range(STEPS):
                file.writelines(part for number, tag in enumerate(TAGS) for part in _point(run, tag, number, step))


def _point(run: int, tag: str, number: int, step: int) -> Iterator[bytes]:
    value = math.exp(-step / 3000) * (number + 1) + math.sin(step * (run + 7)) / 20
    return _framed(_event(tag.encode(), step, value))


def _event(tag: bytes, step: int, value: float) -> bytes:
    made = event_pb2.Event(wall_time=1.7e9 + step, step=step)
    made.summary.value.add(tag=tag, simple_value=value)
    return made.SerializeToString()


def _framed(content: bytes) -> Iterator[bytes]:
    yield from framing.frames("tfrecord", [content], binary=True)
