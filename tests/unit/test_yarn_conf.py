"""Tests Hadoop's configuration: precedence, expansion, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.engines.yarn import conf
from howdah.engines.yarn.conf import Configuration
from howdah.errors import SpecError
from howdah.hadoop.rpc import Kerberos, SimpleLogin


def site(directory: Path, name: str, **properties: str) -> None:
    rows = "".join(
        f"<property><name>{k.replace('__', '.')}</name><value>{v}</value></property>" for k, v in properties.items()
    )
    (directory / name).write_text(f"<?xml version='1.0'?><configuration>{rows}</configuration>")


def of(environment: dict[str, str] | None = None, **properties: str) -> Configuration:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
    return Configuration("conf", named, {}, environment or {})


def test_files_in_order(tmp_path: Path) -> None:
    site(tmp_path, "core-site.xml", fs__defaultFS="hdfs://a", x="core")
    site(tmp_path, "yarn-site.xml", x="yarn")
    loaded = conf.load(str(tmp_path))
    assert (loaded.text("fs.defaultFS"), loaded.text("x")) == ("hdfs://a", "yarn")


def test_variables_are_replaced() -> None:
    environment = {"HOST": "node1", "EMPTY": ""}
    cases = {
        "${b}": "2", "${b}${b}x": "22x", "${env.HOST}": "node1", "${env.NONE:-d}": "d", "${env.NONE-d}": "d",
        "${env.EMPTY:-d}": "d", "${env.EMPTY-d}": "", "${env.NONE}": "${env.NONE}", "${nowhere}": "${nowhere}",
    }  # fmt: skip
    for value, expected in cases.items():
        assert of(environment, a=value, b="${c}", c="2").text("a") == expected, value


def test_a_variable_that_names_itself_ends() -> None:
    assert of(a="${a}").text("a") == "${a}"


def test_getters_convert_values() -> None:
    found = of(yes="TRUE", odd="perhaps", n=" 0x10 ", list="a, b,,c ")
    assert found.flag("yes")
    assert found.flag("odd", True)
    assert not found.flag("absent")
    assert found.number("n", 1) == 16
    assert found.number("absent", 7) == 7
    assert found.get_list("list") == ["a", "b", "c"]


def test_a_number_that_is_none_names_its_file(tmp_path: Path) -> None:
    site(tmp_path, "yarn-site.xml", n="many")
    with pytest.raises(SpecError, match=r"yarn-site.xml: n is 'many', must be a whole number"):
        conf.load(str(tmp_path)).number("n", 1)


@pytest.mark.parametrize("directory", [None, "", "/nonexistent/conf"])
def test_no_configuration_says_what_to_set(directory: str | None) -> None:
    with pytest.raises(SpecError, match=r"(?i)HADOOP_CONF_DIR.*howdah sandbox up"):
        conf.load(directory)


def test_entities_are_refused(tmp_path: Path) -> None:
    bomb = "<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><configuration>&b;</configuration>"
    (tmp_path / "core-site.xml").write_text(bomb)
    with pytest.raises(SpecError, match=r"core-site.xml:1: a document type is not allowed"):
        conf.load(str(tmp_path))


def test_broken_xml_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration>\n<property>\n</configuration>")
    with pytest.raises(SpecError, match=r"core-site.xml:3"):
        conf.load(str(tmp_path))


def test_attributes_and_includes(tmp_path: Path) -> None:
    site(tmp_path, "more.xml", b="2")
    (tmp_path / "core-site.xml").write_text(
        "<configuration xmlns:xi='x'><property name='a' value='1'/><xi:include href='more.xml'/></configuration>"
    )
    loaded = conf.load(str(tmp_path))
    assert (loaded.text("a"), loaded.text("b")) == ("1", "2")


def test_a_single_resourcemanager_has_its_configured_address() -> None:
    assert [(a.host, a.port) for a in of().resourcemanagers()] == [("0.0.0.0", 8032)]
    found = of(yarn__resourcemanager__hostname="rm1").resourcemanagers("scheduler")
    assert [(a.host, a.port) for a in found] == [("rm1", 8030)]
    found = of(yarn__resourcemanager__address="[::1]:99").resourcemanagers()
    assert [(a.host, a.port, a.setting) for a in found] == [("::1", 99, "yarn.resourcemanager.address")]


def ha(**more: str) -> Configuration:
    return of(yarn__resourcemanager__ha__enabled="true", yarn__resourcemanager__ha__rm_ids="a, b", **more)


def test_two_resourcemanagers_have_an_address_each() -> None:
    found = ha(yarn__resourcemanager__hostname__a="n1", yarn__resourcemanager__address__b="n2:77").resourcemanagers()
    assert [(a.host, a.port, a.setting) for a in found] == [
        ("n1", 8032, "yarn.resourcemanager.address.a"),
        ("n2", 77, "yarn.resourcemanager.address.b"),
    ]


def test_a_resourcemanager_without_address() -> None:
    with pytest.raises(
        SpecError, match=r"yarn.resourcemanager.address.b: neither it nor yarn.resourcemanager.hostname.b"
    ):
        ha(yarn__resourcemanager__hostname__a="n1").resourcemanagers()


def test_the_login_follows_the_authentication() -> None:
    assert of({"HADOOP_USER_NAME": "alice"}).login() == SimpleLogin("alice")
    secure = {"hadoop__security__authentication": "kerberos"}
    assert of(**secure, yarn__resourcemanager__principal="rm/_HOST@X").login() == Kerberos("rm/_HOST@X")
    with pytest.raises(SpecError, match=r"yarn.resourcemanager.principal: is not set"):
        of(**secure).login()


def test_secrets_do_not_travel() -> None:
    found = of(fs__s3a__secret__key="x", ssl__password="x", dfs__replication="1").merged()
    assert found == {"dfs.replication": "1"}
