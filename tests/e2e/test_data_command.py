"""Tests `howdah data` with a real HDFS, without a Hadoop client."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import hdfs_native
import pytest

from howdah.hadoop.conf import default_filesystem, load
from howdah.sandbox import Sandbox

HOWDAH = str(Path(sys.executable).with_name("howdah"))


def data(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([HOWDAH, "data", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "in/sub").mkdir(parents=True)
    (tmp_path / "in/a.txt").write_text("alpha\n")
    (tmp_path / "in/sub/b#1?.txt").write_text("beta\n")
    return tmp_path


def test_there_and_back(sandbox: Sandbox, directory: Path) -> None:
    where = f"/tmp/{directory.name}"
    assert "2 files, 11 bytes" in data("put", str(directory / "in"), where).stderr
    listed = [json.loads(line) for line in data("ls", "--json", where).stdout.splitlines()]
    assert [(entry["uri"].rpartition("/")[2], entry["is_dir"]) for entry in listed] == [("a.txt", False), ("sub", True)]
    assert data("head", "-c", "3", f"{where}/a.txt").stdout == "alp"
    data("get", where, str(directory / "out"))
    for name in ("a.txt", "sub/b#1?.txt"):
        assert (directory / "out" / name).read_text() == (directory / "in" / name).read_text()


@pytest.mark.parametrize("root", ["", "hdfs://"])
def test_what_a_writer_has_flushed(sandbox: Sandbox, directory: Path, root: str) -> None:
    where, conf = f"/tmp/{directory.name}-open", load(str(sandbox.conf_dir))
    client = hdfs_native.Client(default_filesystem(conf), conf)
    client.mkdirs(where, 0o755, True)
    writer = client.create(f"{where}/log", hdfs_native.WriteOptions())
    writer.write(b"so far")
    writer.hsync()
    assert data("head", "-c", "4", f"{root}{where}/log").stdout == "so f"
    assert "1 files, 6 bytes" in data("get", f"{root}{where}", str(directory / "whole")).stderr
    data("get", f"{root}{where}/log", str(directory / "one"))
    writer.close()
    assert (directory / "whole/log").read_text() == (directory / "one").read_text() == "so far"


def test_what_is_removed_is_gone(sandbox: Sandbox, directory: Path) -> None:
    where = f"/tmp/{directory.name}-rm"
    data("put", str(directory / "in"), where)
    assert "is a directory: remove it with all below it by --recursive" in data("rm", where, code=66).stderr
    assert f"{where}/a.txt" in data("rm", f"{where}/*.txt").stderr
    data("ls", f"{where}/a.txt", code=66)
    data("rm", "-r", where)
    data("ls", where, code=66)
    assert "the root of a file system" in data("rm", "-r", "/", code=66).stderr


def test_nothing_is_replaced_unasked(sandbox: Sandbox, directory: Path) -> None:
    where = f"/tmp/{directory.name}"
    data("put", str(directory / "in"), where)
    (directory / "in/a.txt").write_text("new\n")
    assert "exists already (2 of 2 do)" in data("put", str(directory / "in"), where, code=66).stderr
    assert data("head", f"{where}/a.txt").stdout == "alpha\n"
    data("put", "--overwrite", str(directory / "in"), where)
    assert data("head", f"{where}/a.txt").stdout == "new\n"


@pytest.mark.parametrize(
    "arguments", [("ls", "/nowhere"), ("get", "/nowhere"), ("head", "/nowhere"), ("put", "no", "/x")]
)
def test_what_is_missing_is_named(sandbox: Sandbox, arguments: tuple[str, ...]) -> None:
    assert "no such file or directory" in data(*arguments, code=66).stderr
