"""Hadoop's configuration files, merged and expanded as Hadoop does."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.data.hadoop_conf import default_filesystem, directory, load
from howdah.errors import SpecError


def site(path: Path, *rows: str) -> None:
    path.write_text(f"<configuration>{''.join(rows)}</configuration>")


def row(name: str, value: str, more: str = "") -> str:
    return f"<property><name>{name}</name><value>{value}</value>{more}</property>"


def test_a_later_file_wins_but_not_over_a_final_property(tmp_path: Path) -> None:
    site(tmp_path / "core-site.xml", row("a", "1"), row("b", "1", "<final>true</final>"))
    site(tmp_path / "hdfs-site.xml", row("a", "2"), row("b", "2"))
    assert load(str(tmp_path)) == {"a": "2", "b": "1"}


def test_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    with pytest.raises(SpecError, match=r"HADOOP_CONF_DIR: no such directory: .*none"):
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
