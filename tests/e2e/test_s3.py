"""Tests a job on YARN whose data is in S3: split, streamed and stored, with keys that no record contains."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import s3fs  # type: ignore[import-untyped]
from commandline import CommandLine
from moto.server import ThreadedMotoServer

from howdah.sandbox import Sandbox

KEY, SECRET = "howdah-test-key", "howdah-test-secret"
PROGRAM = """
import os, pathlib, sys
local = sorted(path.read_text() for path in pathlib.Path("data").rglob("*.txt"))
streamed = sorted(line.strip() for line in sys.stdin)
pathlib.Path("output").mkdir()
pathlib.Path("output/seen.txt").write_text(repr((local, streamed)))
"""


@pytest.fixture
def s3() -> Iterator[s3fs.S3FileSystem]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        # All such servers of a process, one after the other, have the same buckets.
        urllib.request.urlopen(urllib.request.Request(f"{url}/moto-api/reset", method="POST"), timeout=60).close()
        there = s3fs.S3FileSystem(
            key=KEY, secret=SECRET, endpoint_url=url, use_listings_cache=False, skip_instance_cache=True
        )
        there.mkdir("howdah")
        yield there
    finally:
        server.stop()


def test_data_in_s3_on_yarn(sandbox: Sandbox, tmp_path: Path, s3: s3fs.S3FileSystem) -> None:
    for number in range(3):
        s3.pipe(f"howdah/in/files/{number}.txt", f"file {number}".encode())
        s3.pipe(f"howdah/in/lines/{number}.txt", f"a{number}\nb{number}\n".encode())
    (tmp_path / "program.py").write_text(PROGRAM)
    yarn = CommandLine(sandbox, tmp_path)
    try:
        job = yarn.job_file(
            "python3 program.py",
            env={"AWS_ENDPOINT_URL": s3.endpoint_url},
            secrets={"AWS_ACCESS_KEY_ID": "env:MY_KEY", "AWS_SECRET_ACCESS_KEY": "env:MY_SECRET"},
            files=["program.py"],
            inputs=[
                {"path": "s3://howdah/in/files", "to": "data", "share": "all"},
                {"path": "s3://howdah/in/lines", "strategy": "stream"},
            ],
            outputs=[{"path": "s3://howdah/out", "from": "output", "tasks": "worker:0"}],
        )
        variables = {"MY_KEY": KEY, "MY_SECRET": SECRET, "HADOOP_CONF_DIR": str(sandbox.conf_dir)}
        done = yarn("run", "--on", "yarn", job, **variables)
        assert done.code == 0, done.text
        wanted = ([f"file {n}" for n in range(3)], sorted(f"{c}{n}" for c in "ab" for n in range(3)))
        assert s3.cat("howdah/out/seen.txt").decode() == repr(wanted)
        assert s3.exists("howdah/out/_SUCCESS")
        (home,) = yarn.files.glob(f"{yarn.root}/user/*/.howdah/jobs/{done.job}")
        told = b"".join(yarn.files.read_bytes(entry.uri) for entry in yarn.files.walk(home.uri))
        assert done.job.encode() in told
        assert SECRET.encode() not in told + done.out + done.err
    finally:
        yarn.end_all()
