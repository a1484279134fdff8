"""Tests copies of files and directories: all of it arrives under its name, or nothing does."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
from pathlib import Path

import pytest

from howdah.localfiles.tree_stream import CopyProblem, receive_tree, send_tree


def sent(path: Path) -> bytes:
    """Return what is sent of a path."""
    near, far = socket.socketpair()
    with near, far:
        pieces: list[bytes] = []
        reading = threading.Thread(target=lambda: pieces.extend(iter(lambda: far.recv(1 << 16), b"")))
        reading.start()
        send_tree(path, near)
        near.shutdown(socket.SHUT_WR)
        reading.join()
    return b"".join(pieces)


def received(data: bytes, destination: Path, name: str = "source") -> Path:
    """Receive `data`, some of it early, which its receiver calls `name`."""
    near, far = socket.socketpair()
    with near, far:
        early, rest = data[:700], data[700:]

        def write() -> None:
            with contextlib.suppress(OSError), near:  # who refuses what comes reads no more
                near.sendall(rest)

        writing = threading.Thread(target=write)
        writing.start()
        try:
            return receive_tree(far, early, destination, name)
        finally:
            far.close()
            writing.join()


def made(directory: Path) -> Path:
    source = directory / "source"
    (source / "inner" / "empty").mkdir(parents=True)
    (source / "inner" / "data").write_bytes(os.urandom(200_000))
    (source / "run").write_text("#!/bin/sh\n")
    (source / "run").chmod(0o755)
    (source / "link").symlink_to("run")
    os.link(source / "run", source / "second-name")
    os.mkfifo(source / "pipe")
    return source


def test_a_directory_arrives_whole(tmp_path: Path) -> None:
    source = made(tmp_path)
    target = received(sent(source), tmp_path / "target")
    assert target == tmp_path / "target"
    names = {str(path.relative_to(target)) for path in target.rglob("*")}
    assert names == {"inner", "inner/empty", "inner/data", "run", "link", "second-name"}
    assert (target / "inner" / "data").read_bytes() == (source / "inner" / "data").read_bytes()
    assert str((target / "link").readlink()) == "run"
    assert (target / "run").stat().st_mode & 0o777 == 0o755
    assert (target / "second-name").read_text() == "#!/bin/sh\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    source = made(tmp_path)
    near, far = socket.socketpair()
    named: list[str] = []
    with near, far:
        sending = threading.Thread(target=lambda: named.extend(send_tree(source, near)))
        sending.start()
        receive_tree(far, b"", tmp_path / "target", "source", named.append)
        sending.join()
    assert named == ["pipe", "pipe"]
    with pytest.raises(CopyProblem, match="pipe: it is neither a file nor a directory"):
        received(sent(source / "pipe"), tmp_path / "alone")
    assert not (tmp_path / "alone").exists()


def test_a_file_goes_into_a_directory_and_replaces_a_file(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("new")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "one").write_text("old")
    assert received(sent(tmp_path / "one"), tmp_path / "there", "one") == tmp_path / "there" / "one"
    assert (tmp_path / "there" / "one").read_text() == "new"


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_broken_stream_leaves_nothing(share: float, tmp_path: Path) -> None:
    archive = sent(made(tmp_path))
    with pytest.raises(EOFError, match="the connection was lost"):
        received(archive[: int(len(archive) * share)], tmp_path / "target")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_what_the_sender_cannot_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(CopyProblem, match="nothing: No such file or directory"):
        received(sent(tmp_path / "nothing"), tmp_path / "target")
    assert not [*tmp_path.iterdir()]


def test_what_is_there_stays(tmp_path: Path) -> None:
    archive = sent(made(tmp_path))
    (tmp_path / "there" / "source").mkdir(parents=True)
    with pytest.raises(CopyProblem, match="there/source: exists already"):
        received(archive, tmp_path / "there")
    assert not [*(tmp_path / "there" / "source").iterdir()]
    with pytest.raises(CopyProblem, match="there/source: exists already"):
        received(archive[:100], tmp_path / "there")  # told before all has come
    with pytest.raises(CopyProblem, match="missing: No such file or directory"):
        received(archive, tmp_path / "missing" / "target")


@pytest.mark.parametrize(
    ("name", "error", "why"),
    [
        ("../outside", EOFError, "no entry"),
        ("/outside", EOFError, "no entry"),
        ("top/../../outside", CopyProblem, "leads out of the directory"),
        ("top/link/outside", CopyProblem, "leads out of the directory"),
    ],
)
def test_nothing_is_written_elsewhere(name: str, error: type[Exception], why: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    entries = [
        {"kind": "directory", "name": "top", "mode": 0o755, "modified_ns": 0},
        {"kind": "link", "name": "top/link", "mode": 0o777, "target": str(tmp_path / "elsewhere")},
        {"kind": "file", "name": name, "mode": 0o644, "modified_ns": 0, "size": 0},
    ]
    data = b"".join(struct.pack("!I", len(each)) + each for each in (json.dumps(one).encode() for one in entries))
    with pytest.raises(error, match=why):
        received(data, tmp_path / "target")
    assert not [*(tmp_path / "elsewhere").iterdir()]
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]
