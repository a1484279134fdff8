"""Tests the variables for libhdfs, with Hadoop installed from a tar ball and from packages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from howdah.executor.process.libhdfs import variables


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


@pytest.fixture
def java(tmp_path: Path) -> Path:
    touch(tmp_path / "jdk/lib/server/libjvm.so", tmp_path / "jdk/bin/java")
    (tmp_path / "jdk/bin/java").chmod(0o755)
    return tmp_path / "jdk"


def tar_ball(home: Path) -> Path:
    share = home / "share/hadoop"
    touch(home / "lib/native/libhdfs.so", share / "common/hadoop-common-3.4.2.jar", share / "common/lib/guava.jar")
    touch(share / "hdfs/hadoop-hdfs-client-3.4.2.jar", share / "hdfs/hadoop-hdfs-3.4.2-tests.jar")
    touch(share / "yarn/hadoop-yarn-api-3.4.2.jar")
    return home


def test_a_tar_ball(tmp_path: Path, java: Path) -> None:
    home = tar_ball(tmp_path / "hadoop")
    found = variables({"HADOOP_HOME": str(home), "JAVA_HOME": str(java), "HADOOP_CONF_DIR": "/conf", "PATH": "/bin"})
    share = f"{home}/share/hadoop"
    assert found == {
        "CLASSPATH": f"/conf:{share}/common/hadoop-common-3.4.2.jar:{share}/common/lib/guava.jar"
        f":{share}/hdfs/hadoop-hdfs-client-3.4.2.jar",
        "HADOOP_HDFS_HOME": str(home),
        "ARROW_LIBHDFS_DIR": f"{home}/lib/native",
        "LD_LIBRARY_PATH": f"{home}/lib/native:{java}/lib/server",
    }


def test_packages_and_java_by_its_path(tmp_path: Path, java: Path) -> None:
    common, hdfs = tmp_path / "usr/lib/hadoop", tmp_path / "usr/lib/hadoop-hdfs"
    touch(common / "lib/native/libhdfs.so.0.0.0", common / "hadoop-common.jar", common / "lib/guava.jar")
    touch(hdfs / "hadoop-hdfs.jar")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").symlink_to(java / "bin/java")
    given = {"HADOOP_COMMON_HOME": str(common), "HADOOP_HDFS_HOME": str(hdfs), "PATH": f"/none:{tmp_path}/bin"}
    found = variables(given)
    assert found["CLASSPATH"].split(":") == [
        f"{hdfs}/hadoop-hdfs.jar",
        f"{common}/hadoop-common.jar",
        f"{common}/lib/guava.jar",
    ]
    assert found["JAVA_HOME"] == str(java)
    assert found["HADOOP_HOME"] == str(common)
    assert "HADOOP_HDFS_HOME" not in found
    assert found["LD_LIBRARY_PATH"] == f"{common}/lib/native:{java}/lib/server"


def test_what_the_job_sets_comes_first(tmp_path: Path, java: Path) -> None:
    home = tar_ball(tmp_path / "hadoop")
    given = {"HADOOP_HOME": str(home), "JAVA_HOME": str(java), "CLASSPATH": "/mine.jar", "LD_LIBRARY_PATH": "/mine"}
    found = variables(given)
    assert found["CLASSPATH"].startswith("/mine.jar:")
    assert found["LD_LIBRARY_PATH"] == f"/mine:{home}/lib/native:{java}/lib/server"
    assert "JAVA_HOME" not in found


def test_nothing_without_libhdfs(tmp_path: Path) -> None:
    (tmp_path / "hadoop/lib/native").mkdir(parents=True)
    assert variables({"HADOOP_HOME": str(tmp_path / "hadoop"), "PATH": os.environ["PATH"]}) == {}
    assert variables({}) == {}


def test_more_jars_than_a_variable_holds(tmp_path: Path, java: Path) -> None:
    home = tar_ball(tmp_path / "hadoop")
    touch(*(home / f"share/hadoop/hdfs/lib/{'long' * 40}-{number}.jar" for number in range(700)))
    found = variables({"HADOOP_HOME": str(home), "JAVA_HOME": str(java)})
    directories = [f"{home}/share/hadoop/{part}/*" for part in ("common", "common/lib", "hdfs", "hdfs/lib")]
    assert found["CLASSPATH"].split(":") == directories
