"""Tests one job on ssh hosts, on Slurm and on Spark as a user starts it: data in, two roles, an output and logs out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import CLUSTERS, HOWDAH, Cluster
from runtime_archives import share_runtime_archives

LIMIT_S = 240
JOB = """
name: squares
framework: tensorflow
roles:
  ps: {command: python serve.py, resources: {memory: 256MiB}}
  worker: {command: python work.py, replicas: 2, resources: {memory: 256MiB}}
files: [serve.py, work.py]
inputs: [{path: data, to: data}]
outputs: [{path: squares, from: squares, tasks: "worker:0"}]
"""
SERVE = """
import http.server, json, os
given = {}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        given.update(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.do_GET()
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(given).encode())
host, _, port = json.loads(os.environ["TF_CONFIG"])["cluster"]["ps"][0].rpartition(":")
http.server.HTTPServer((host, int(port)), Handler).serve_forever()
"""
"""Keeps what the workers give it."""
WORK = """
import json, os, pathlib, time, urllib.request
job = json.loads(os.environ["TF_CONFIG"])
server, index = "http://" + job["cluster"]["ps"][0], job["task"]["index"]
squares = {path.name: int(path.read_text()) ** 2 for path in pathlib.Path("data").iterdir()}
print("worker", index, "has", len(squares), "of the files", flush=True)
def ask(data=None):
    for _ in range(300):
        try:
            return json.load(urllib.request.urlopen(server, data, timeout=60))
        except OSError:
            time.sleep(0.1)  # the server may begin later
ask(json.dumps(squares).encode())
while index == 0 and len(ask()) < 4:
    time.sleep(0.1)
if index == 0:
    pathlib.Path("squares").mkdir()
    pathlib.Path("squares/result").write_text(json.dumps(ask(), sort_keys=True))
"""


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture(scope="module", params=["ssh", "slurm", "spark"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, archives: Path
) -> Iterator[Cluster]:
    base = tmp_path_factory.mktemp(request.param)
    for home in (base, base / "howdah"):
        share_runtime_archives(home, archives)
    opened = CLUSTERS[request.param](request, base)
    with opened.active():
        yield opened


def test_data_comes_in_and_an_output_and_logs_come_out(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for number in range(1, 5):
        (tmp_path / "data" / str(number)).write_text(str(number))
    for name, text in {"job.yaml": JOB, "serve.py": SERVE, "work.py": WORK}.items():
        (tmp_path / name).write_text(text)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def howdah(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": path}
        done = subprocess.run(
            [HOWDAH, *words],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    done = howdah("run", "--on", cluster.name, "job.yaml")
    assert "worker:0 | worker 0 has 2 of the files" in done.stdout
    assert json.loads((tmp_path / "squares" / "result").read_text()) == {"1": 1, "2": 4, "3": 9, "4": 16}
    assert (tmp_path / "squares" / "_SUCCESS").exists()
    (job_id,) = {word for word in done.stdout.split() if word.startswith(f"{cluster.name}-")}
    assert "worker 1 has 2 of the files" in howdah("logs", job_id, "worker:1").stdout
    assert job_id in howdah("list", "--on", cluster.name).stdout
