"""Tests logins to a Hadoop that signs or encrypts every call (`hadoop.rpc.protection`), with a real KDC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hdfs_native
import kdc
import pytest
from commandline import CommandLine
from secured import cluster

from howdah.hadoop import conf
from howdah.spec import uris
from howdah.storage.content_cache import local_directory

pytestmark = pytest.mark.skipif(bool(kdc.missing()), reason=f"no {', '.join(kdc.missing())} on this machine")
JARS = local_directory()  # as it is before another module's fixture moves HOWDAH_HOME


@pytest.fixture(scope="module", params=["integrity", "privacy"])
def howdah(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """As alice."""
    with (
        cluster(tmp_path_factory.mktemp("kdc"), JARS, request.param) as running,
        pytest.MonkeyPatch.context() as environment,
    ):
        environment.setenv("HOWDAH_HOME", str(tmp_path_factory.mktemp("home")))
        command_line = CommandLine(running.sandbox, tmp_path_factory.mktemp("jobs"))
        yield command_line
        command_line.end_all()


def test_a_job_with_its_data(howdah: CommandLine) -> None:
    content = bytes(range(256)) * 8192
    howdah.files.mkdirs(f"{howdah.root}/tmp/in")
    for number in range(3):
        howdah.files.write_bytes(f"{howdah.root}/tmp/in/{number}", content)
    data = {"inputs": [{"path": "/tmp/in", "to": "in"}], "outputs": [{"from": "out", "path": "/tmp/out"}]}
    done = howdah.run("mkdir out; cp in/* out; echo copied", replicas=2, **data).done()
    assert done.code == 0, done.text
    there = {entry.uri.rpartition("/")[2]: entry.uri for entry in howdah.files.walk(f"{howdah.root}/tmp/out")}
    assert sorted(there) == ["0", "1", "2", "_SUCCESS"]
    assert howdah.files.read_bytes(there["2"]) == content
    assert "worker:0 | copied" in done.text


def test_what_a_writer_has_flushed_is_read(howdah: CommandLine, tmp_path: Path) -> None:
    """For which a NameNode is asked with a ticket, and a DataNode with a block's token."""
    uri, content = f"{howdah.root}/tmp/held", bytes(range(256)) * 700
    writer = hdfs_native.Client(howdah.root, conf.load(str(howdah.sandbox.conf_dir))).create(
        uris.path(uri), hdfs_native.WriteOptions()
    )
    writer.write(content)
    writer.hsync()
    done = howdah("data", "get", uri, str(tmp_path / "got"))
    writer.close()
    assert done.code == 0, done.text
    assert (tmp_path / "got").read_bytes() == content
