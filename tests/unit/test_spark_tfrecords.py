"""Tests in which directories TFRecords are written and read, without a Spark."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark_stand_in
import pytest

from howdah.spark.example_records import INT, Column

SOURCE = Path(__file__).parents[2] / "distributions" / "tensorflowonspark" / "src"


@pytest.fixture(autouse=True)
def _pyspark(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pyspark_stand_in.install(monkeypatch)
    monkeypatch.syspath_prepend(str(SOURCE))
    yield
    for name in [each for each in sys.modules if each.partition(".")[0] == "tensorflowonspark"]:
        del sys.modules[name]


@pytest.mark.parametrize("directory", ["{}/data", "{}//data/", "{}/other/../data", "file:{}/data", "file://{}//data"])
def test_what_was_written_replaces_what_was_there(tmp_path: Path, directory: str) -> None:
    from howdah.spark import tfrecord_source, tfrecords

    uri, columns = tfrecords.uri_of(directory.format(tmp_path)), {"n": Column(INT)}
    for count in (2, 3):
        for written in (uri, f"file://{tmp_path}//data/"):  # as who makes a writer may write it
            writer = tfrecord_source._Writer(written, columns, True)
            writer.commit([writer.write(iter([{"n": number} for number in range(count)]))])
            rows = [row for file in tfrecords.record_files(uri) for row in tfrecords.read_rows(file, columns)]
            assert rows == [(number,) for number in range(count)]


def test_files_that_a_writer_has_not_finished_are_not_read(tmp_path: Path) -> None:
    from howdah.spark import tfrecords

    for name in ("_temporary/0/part-0", ".hidden/part-0", "_SUCCESS", "sub/part-1", "part-0"):
        (tmp_path / ".x" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".x" / name).touch()
    found = tfrecords.record_files(f"file://{tmp_path}//.x/")
    assert [uri.partition("/.x/")[2] for uri in found] == ["part-0", "sub/part-1"]


def test_a_path_is_on_the_file_system_of_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorflowonspark import dfutil

    monkeypatch.chdir(tmp_path)

    def found(path: str, default_fs: str) -> Any:
        conf = SimpleNamespace(get=lambda _name: default_fs)
        return dfutil._uri(SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: conf)), path)

    hdfs = "hdfs://nn:8020"
    monkeypatch.delenv("HADOOP_USER_NAME", raising=False)
    assert found("x", hdfs) == f"hdfs://nn:8020/user/{getpass.getuser()}/x"
    monkeypatch.setenv("HADOOP_USER_NAME", "ada")
    assert found("x", hdfs) == "hdfs://nn:8020/user/ada/x"
    monkeypatch.delenv("HADOOP_USER_NAME")

    def has_no_name() -> str:
        raise KeyError("getpwuid(): uid not found: 1000660000")

    monkeypatch.setattr(getpass, "getuser", has_no_name)
    assert found("/data/x", hdfs) == "hdfs://nn:8020/data/x"
    assert found("hdfs:///x/", f"{hdfs}/") == "hdfs://nn:8020/x"
    assert found("file:/x", hdfs) == found("file:///x", "file:///") == found("/x", "file:///") == "file:///x"
    assert found("x", "file:///") == f"file://{tmp_path}/x"
