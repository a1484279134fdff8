"""Tests that Hadoop's configuration files are merged and expanded as Hadoop does."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from howdah.cli import data
from howdah.errors import EngineUnavailable, SpecError
from howdah.hadoop.conf import complete, default_filesystem, directory, home, load, to_xml


def site(path: Path, *rows: str) -> None:
    path.write_text(f"<configuration>{''.join(rows)}</configuration>")


def row(name: str, value: str, more: str = "") -> str:
    return f"<property><name>{name}</name><value>{value}</value>{more}</property>"


def test_a_later_file_wins_but_not_over_a_final_property(tmp_path: Path) -> None:
    site(tmp_path / "core-site.xml", row("a", "1"), row("b", "1", "<final>true</final>"))
    site(tmp_path / "hdfs-site.xml", row("a", "2"), row("b", "2"))
    assert load(str(tmp_path)) == {"a": "2", "b": "1"}


@pytest.mark.parametrize(
    ("root", "default", "expected"),
    [
        ("hdfs://", "hdfs://h:9000/", "hdfs://h:9000"),
        ("hdfs://", "hdfs://ns", "hdfs://ns"),
        ("hdfs://other", "hdfs://ns", "hdfs://other"),
        ("viewfs://", "viewfs://prod/", "viewfs://prod"),
        ("viewfs://", "hdfs://ns", "viewfs://default"),
        ("file://", "hdfs://ns", "file://"),
        ("s3://bucket", "hdfs://ns", "s3://bucket"),
    ],
)
def test_a_file_system_without_a_server_is_that_of_the_default(root: str, default: str, expected: str) -> None:
    assert complete(root, {"fs.defaultFS": default}) == expected


@pytest.mark.parametrize("conf", [{}, {"fs.defaultFS": "file:///"}, {"fs.defaultFS": "viewfs://prod"}])
def test_a_uri_without_any_namenode_is_refused(conf: dict[str, str]) -> None:
    with pytest.raises(
        EngineUnavailable, match=r"^hdfs:///…: names no NameNode, and fs.defaultFS .* names none either"
    ):
        complete("hdfs://", conf)


def test_a_mount_table_may_have_another_name() -> None:
    assert complete("viewfs://", {"fs.viewfs.mounttable.default.name.key": "mine"}) == "viewfs://mine"


def test_variables_are_replaced_by_settings_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAMESERVICE", "prod")
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")
    rows = [row("fs.defaultFS", "hdfs://${env.NAMESERVICE}/"), row("dir", "${fs.defaultFS}${user.name}/${unknown}")]
    site(tmp_path / "core-site.xml", *rows, row("loop", "x${loop}"), row("d", "${env.NONE:-else}"))
    conf = load(str(tmp_path))
    assert conf["dir"] == "hdfs://prod/alice/${unknown}"
    assert conf["d"] == "else"
    assert conf["loop"].endswith("${loop}")
    assert default_filesystem(conf) == "hdfs://prod"


def test_none_is_no_error_but_a_wrong_one_is(tmp_path: Path) -> None:
    assert load("") == {}
    assert default_filesystem({}) == "file:///"
    with pytest.raises(SpecError, match=r"hadoop_conf_dir: no such directory: .*none"):
        load(str(tmp_path / "none"))
    (tmp_path / "core-site.xml").write_text("<configuration>\n<property>")
    with pytest.raises(SpecError, match=r"core-site\.xml:2: no element found"):
        load(str(tmp_path))


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setenv("HADOOP_HOME", "/opt/hadoop")
    assert directory() == "/opt/hadoop/etc/hadoop"
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop/conf")
    assert directory() == "/etc/hadoop/conf"
    assert directory("/mine") == "/mine"


def test_where_relative_paths_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")
    assert home({}, "hdfs://prod") == "hdfs://prod/user/alice"
    assert home({"dfs.user.home.dir.prefix": "/home"}, "hdfs://prod", "bob") == "hdfs://prod/home/bob"
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", "/none")  # no ticket is looked for
    kerberos = {"hadoop.security.authentication": "kerberos"}
    assert home(kerberos, "hdfs://prod") == f"hdfs://prod/user/{getpass.getuser()}"


def test_howdah_data_starts_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    site(tmp_path / "core-site.xml", row("fs.defaultFS", "hdfs://prod"), row("dfs.user.home.dir.prefix", "/home"))
    assert data._uri("in/a.txt") == "hdfs://prod/home/alice/in/a.txt"
    assert data._uri("/in/a.txt") == "hdfs://prod/in/a.txt"


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text(to_xml({"b": "a < b & c", "a": 1}))
    assert load(str(tmp_path)) == {"a": "1", "b": "a < b & c"}
    assert to_xml({"a": 1, "b": 2}) == to_xml({"b": 2, "a": 1})
