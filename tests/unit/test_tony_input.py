"""Tests mistakes in TonY's commands: every one is a line that names its place, never a traceback."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from howdah.client.port_forward import PortForward, straight_to
from howdah.compat.tony.azkaban import AzkabanJob, read
from howdah.compat.tony.options import OPTIONS
from howdah.compat.tony.submit import Tony
from howdah.errors import HowdahError, SpecError

GOOD = """<?xml version="1.0"?>
<configuration>
  <property>
    <name>tony.worker.instances</name>
    <value>2</value>
  </property>
</configuration>
"""
BREAKS = ["<", "&", "</property>", "<!DOCTYPE a>", "<value>", "\x01", "&bomb;", "<a b=c>"]
WORDS = st.sampled_from(
    [*(f"--{name}" for name in OPTIONS), "-debug", "a=b", "tony.worker.instances=2", "", "--x", "="]
)


def parse(directory: Path, *argv: str) -> None:
    Tony(directory, {"TONY_CONF_DIR": str(directory / "none")}).parse(argv)


def said(directory: Path, *argv: str) -> str:
    """What is wrong with it, "" for nothing."""
    try:
        parse(directory, *argv)
    except HowdahError as error:
        return str(error)
    return ""


class TestConfiguration:
    @pytest.mark.parametrize("number", range(1, len(GOOD.splitlines())))
    @pytest.mark.parametrize("what", BREAKS)
    def test_broken_at_each_line(self, tmp_path: Path, number: int, what: str) -> None:
        lines = GOOD.splitlines()
        lines.insert(number, what)
        (tmp_path / "tony.xml").write_text("\n".join(lines))
        problems = said(tmp_path, "--executes", "a").splitlines()
        assert len(problems) <= 1
        assert all("tony" in problem for problem in problems)

    def test_a_role_may_name_what_all_get_anyway(self, tmp_path: Path) -> None:
        for name in ("hdfs-site.xml", "a.py"):
            (tmp_path / name).write_text("<configuration/>")
        (tmp_path / "tony.xml").write_text(GOOD)
        site, worker = "tony.application.hdfs-conf-path=hdfs-site.xml", "tony.worker.resources=hdfs-site.xml"
        assert said(tmp_path, "--executes", "a.py", "-conf", site, "-conf", worker) == ""

    @pytest.mark.parametrize("length", range(0, len(GOOD) - 2, 7))
    def test_cut_off(self, tmp_path: Path, length: int) -> None:
        (tmp_path / "tony.xml").write_text(GOOD[:length])
        with pytest.raises(SpecError, match=r"tony\.xml:\d+: "):
            parse(tmp_path, "--executes", "a")

    def test_not_unicode(self, tmp_path: Path) -> None:
        (tmp_path / "tony.xml").write_bytes(GOOD.encode().replace(b">2<", b">\xff<"))
        with pytest.raises(SpecError, match=r"tony\.xml:5: "):
            parse(tmp_path, "--executes", "a")

    def test_a_directory(self, tmp_path: Path) -> None:
        with pytest.raises(SpecError, match=r"--conf_file: .* no such file"):
            parse(tmp_path, "--executes", "a", "--conf_file", str(tmp_path))


class TestOptions:
    @pytest.mark.parametrize("name", OPTIONS)
    def test_without_its_value(self, tmp_path: Path, name: str) -> None:
        for argv in ([f"--{name}"], [f"--{name}", "--debug"]):
            with pytest.raises(SpecError, match=f"--{name}: has no value"):
                parse(tmp_path, *argv)

    @pytest.mark.parametrize("name", OPTIONS)
    def test_misspelt(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(SpecError, match=f"did you mean '--{name}'"):
            parse(tmp_path, f"--{name[:-2]}{name[-1]}{name[-2]}=x")

    @settings(max_examples=200)
    @given(argv=st.lists(WORDS, max_size=8))
    def test_anything(self, argv: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
        said(tmp_path_factory.getbasetemp(), *argv)


class TestProperties:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a=b", {"a": "b"}),
            ("a : b c ", {"a": "b c "}),
            ("a b", {"a": "b"}),
            ("a", {"a": ""}),
            ("# a=b\n! c=d\n\n", {}),
            ("a=b\\\n   c", {"a": "bc"}),
            ("a\\=b\\ c=d\\\\e\\u00e9\\n", {"a=b c": "d\\eé\n"}),
            ("a=1\na=2", {"a": "2"}),
            ("=x", {"": "x"}),
            ("# in C:\\\na=b", {"a": "b"}),
            ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
            ("a=b\\\\\\\n c", {"a": "b\\c"}),
            ("a=b\\", {"a": "b"}),
            ("a=b\fc=d", {"a": "b\fc=d"}),
            ("a=\\ud83d\\ude00", {"a": "😀"}),
        ],
    )
    def test_as_java_reads_them(self, tmp_path: Path, text: str, expected: dict[str, str]) -> None:
        (tmp_path / "job").write_text(text)
        assert read(tmp_path / "job") == expected

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(SpecError, match="No such file"):
            AzkabanJob({}).parse([str(tmp_path / "none")])
        with pytest.raises(SpecError, match="FILE: is missing"):
            AzkabanJob({}).parse([])

    def test_not_unicode(self, tmp_path: Path) -> None:
        (tmp_path / "job").write_bytes(b"a=\xff")
        with pytest.raises(SpecError, match="is not UTF-8: byte 2"):
            read(tmp_path / "job")


class TestForward:
    def test_leads_there_both_ways(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as far:

            def serve() -> None:
                connection, _ = far.accept()
                with connection:
                    connection.sendall(connection.recv(100).upper())

            thread = threading.Thread(target=serve)
            thread.start()
            forward = PortForward(straight_to("127.0.0.1", far.getsockname()[1]))
            with socket.create_connection(("127.0.0.1", forward.port), 60) as near:
                near.sendall(b"hello")
                assert near.recv(100) == b"HELLO"
                assert near.recv(100) == b""
            thread.join(60)
            forward.close()
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", forward.port), 60)

    def test_a_connection_without_a_server_is_closed(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as far:
            port = far.getsockname()[1]
        forward = PortForward(straight_to("127.0.0.1", port))
        with socket.create_connection(("127.0.0.1", forward.port), 60) as near:
            assert near.recv(100) == b""
        forward.close()

    def test_a_forward_closes_with_an_open_connection(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as far:
            forward = PortForward(straight_to("127.0.0.1", far.getsockname()[1]))
            with socket.create_connection(("127.0.0.1", forward.port), 60) as near:
                far.accept()[0].close()
                forward.close()
                assert near.recv(100) == b""
