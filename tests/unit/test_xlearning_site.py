"""Tests XLearning's site files, the configuration of its other clusters, and wrong command lines."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.compat import Parsed
from howdah.compat.entry import translate
from howdah.compat.xlearning.keys import CHOICES, FLAGS, KNOWN, NEEDLESS, REFUSED, SPELLINGS
from howdah.compat.xlearning.options import OPTIONS
from howdah.compat.xlearning.submit import HboxSubmit, XlSubmit
from howdah.config.hadoop_conf_overlay import overlay_configuration
from howdah.errors import SpecError
from howdah.hadoop import conf

BASE = ["--queue", "q", "--app-name", "a"]


def property_(name: str, value: str) -> str:
    return f"<property>\n<name>{name}</name>\n<value>{value}</value>\n</property>\n"


def site(directory: Path, **values: str) -> Path:
    """hbox-site.xml with these keys, `__` for a dot."""
    text = "".join(property_(f"hbox.{name.replace('__', '.')}", value) for name, value in values.items())
    path = directory / "hbox-site.xml"
    path.write_text(f'<?xml version="1.0"?>\n<configuration>\n{text}</configuration>\n')
    return path


def parse(directory: Path, *argv: str) -> Parsed:
    return HboxSubmit({"HBOX_CONF_DIR": str(directory)}).parse([*argv, *BASE, "true"])


class TestSiteFile:
    def test_site_then_option_then_conf(self, tmp_path: Path) -> None:
        site(tmp_path, worker__num="2", worker__memory="3g", job__exec__timeout="5000")
        assert parse(tmp_path).job.roles["worker"].replicas == 2
        assert parse(tmp_path).job.timeouts.run_s == 5
        assert parse(tmp_path, "--worker-num", "3").job.roles["worker"].replicas == 3
        both = parse(tmp_path, "--worker-num", "3", "--conf", "xlearning.worker.num=4")
        assert both.job.roles["worker"].replicas == 4
        assert both.job.roles["worker"].resources.memory_mib == 3072

    def test_says_that_it_counts_where_it_did_not(self, tmp_path: Path) -> None:
        site(tmp_path, worker__num="2", worker__memory="3g", job__exec__timeout="5000")
        note = "hbox-site.xml counts here: hbox.worker.memory (hbox-submit took its own defaults instead)"
        assert note in parse(tmp_path, "--worker-num", "3").notes

    def test_a_mistake_in_it_names_it(self, tmp_path: Path) -> None:
        site(tmp_path, worker__num="two")
        with pytest.raises(SpecError, match=r"hbox-site\.xml: hbox\.worker\.num: is 'two', must be a whole number"):
            parse(tmp_path)

    def test_an_administrators_keys_do_not_bother_the_user(self, tmp_path: Path) -> None:
        site(tmp_path, history__port="1", container__heartbeat__interval="3", am__cmd__enable="false")
        assert parse(tmp_path).notes == ()

    def test_found_at_home(self, tmp_path: Path) -> None:
        (tmp_path / "conf").mkdir()
        site(tmp_path / "conf", worker__num="2")
        home = HboxSubmit({"HBOX_HOME": str(tmp_path), "XLEARNING_CONF_DIR": "/nowhere"})
        assert home.parse([*BASE, "true"]).job.roles["worker"].replicas == 2

    def test_a_directory_that_is_not_there(self) -> None:
        with pytest.raises(SpecError, match="XLEARNING_CONF_DIR: no such directory"):
            XlSubmit({"XLEARNING_CONF_DIR": "/nowhere/at/all"}).parse([*BASE, "true"])

    def test_broken_at_every_line(self, tmp_path: Path) -> None:
        path = site(tmp_path, worker__num="2", app__queue="q")
        lines = path.read_text().splitlines()
        for number in range(1, len(lines)):
            broken = [*lines[:number], f"<{lines[number]}", *lines[number + 1 :]]
            path.write_text("\n".join(broken))
            with pytest.raises(SpecError, match=r"hbox-site\.xml:\d+: ") as caught:
                parse(tmp_path)
            assert int(str(caught.value).split("hbox-site.xml:")[1].split(":")[0]) >= number

    def test_an_entity_bomb_is_refused(self, tmp_path: Path) -> None:
        entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 20))
        bomb = (
            f'<!DOCTYPE b [<!ENTITY e0 "x">{entities}]>\n<configuration>{property_("hbox.a", "&e19;")}</configuration>'
        )
        (tmp_path / "hbox-site.xml").write_text(bomb)
        with pytest.raises(SpecError, match="a document type is not allowed"):
            parse(tmp_path)


def valid(name: str) -> str:
    """Something that the option may be."""
    special = {"cluster": "c", "cacheFile": "/a", "cacheArchive": "/a.zip", "output-index": "0"}
    special |= {"inputformat": "text", "outputformat": "text"}
    key = OPTIONS[name]
    return special.get(name) or ("false" if key in FLAGS else CHOICES[key][0] if key in CHOICES else "1")


class TestOptions:
    @pytest.mark.parametrize("name", OPTIONS)
    def test_without_a_value(self, name: str) -> None:
        with pytest.raises(SpecError, match=f"--{name}: has no value"):
            XlSubmit({}).parse(["--launch-cmd", "true", f"--{name}"])

    @pytest.mark.parametrize("name", OPTIONS)
    def test_misspelt(self, name: str) -> None:
        with pytest.raises(SpecError, match=f"--{name}x: is not an option of xl-submit"):
            XlSubmit({}).parse([f"--{name}x", "1"])

    @pytest.mark.parametrize("name", OPTIONS)
    def test_twice(self, name: str) -> None:
        value = valid(name)
        argv = [f"--{name}", value, f"--{name}", "3", "--conf", "c.conf.path=/y.xml", *BASE[:2]]
        parsed = XlSubmit({}).parse([*argv, *([] if "cmd" in name else ["true"])])
        if name != "queue":
            assert f"--{name} is given twice: the first, {value!r}, counts, as xl-submit had it" in parsed.notes

    def test_every_key_is_of_one_kind(self) -> None:
        for key in (*KNOWN, *REFUSED):
            assert not (key in KNOWN and key in REFUSED), key
        assert not [key for key in REFUSED if NEEDLESS.fullmatch(key)]
        assert {*SPELLINGS.values()} <= KNOWN


@pytest.mark.parametrize(
    ("kind", "framework"),
    [("mpi", "xlearning-mpi"), ("tensornet", "xlearning-mpi"), ("horovod", "xlearning-horovod")],
)
def test_the_family_of_mpi(kind: str, framework: str) -> None:
    job = HboxSubmit({}).parse(["--app-type", kind, "--conf", "hbox.horovod.cycle.time=3.5", *BASE, "true"]).job
    assert (job.framework, job.env) == (framework, {"HOROVOD_CYCLE_TIME": "3.5"} if kind == "horovod" else {})


class TestOverlay:
    def test_lies_over_the_own_configuration(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
        base, other = tmp_path / "base", tmp_path / "other.xml"
        base.mkdir()
        core = property_("fs.defaultFS", "hdfs://own") + property_("a", "1 &lt; 2")
        (base / "core-site.xml").write_text(f"<configuration>{core}</configuration>")
        other.write_text(f"<configuration>{property_('fs.defaultFS', 'hdfs://other')}</configuration>")
        made = overlay_configuration([str(other)], str(base))
        assert conf.load(str(made)) == {"fs.defaultFS": "hdfs://other", "a": "1 < 2"}
        assert overlay_configuration([f"file://{other}"], str(base)) == made
        with pytest.raises(SpecError, match="--cluster: no such file: /no/file"):
            overlay_configuration(["/no/file"], str(base))


def test_bare_commands_are_translated() -> None:
    assert translate("xl-submit", ["--queue", "q"]) == ["xl-submit", "--queue", "q"]
    assert translate("hbox-submit", ["-applicationId"]) == ["hbox-submit", "-applicationId"]
    assert translate("hbox-kill", ["application_1_2"]) == ["cancel", "application_1_2"]
    for words in (["application_1_2"], ["-applicationId", "application_1_2"], ["--applicationId", "application_1_2"]):
        assert translate("hbox-logs", words) == ["logs", "--all", "application_1_2"]
    directory = Path(sys.executable).parent
    done = subprocess.run([directory / "hbox-submit", "--help"], capture_output=True, text=True, timeout=60, check=True)
    assert "[--worker-gpus …]" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert done.stdout.endswith("\nwhat each option does: docs/coming-from-xlearning.md\n")
    done = subprocess.run(
        [directory / "hbox-submit", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert re.fullmatch(r"hbox version \d\S* \(howdah\)\n", done.stdout)
    done = subprocess.run([directory / "xl-submit", "--foo"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "--foo: is not an option of xl-submit" in done.stderr) == (1, True)
    done = subprocess.run([directory / "xl-kill"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 64


def test_parsing_imports_next_to_nothing() -> None:
    """So that it takes no longer than `howdah --help` does."""
    program = (
        "import sys; import howdah.errors, howdah.spec.validation, dataclasses; before = len(sys.modules);"
        "from howdah.compat.xlearning.submit import XlSubmit;"
        "XlSubmit({}).parse(['--queue', 'q', '--launch-cmd', 'a']);"
        "assert not {'yaml', 'google', 'fsspec', 'rich', 'asyncio'} & set(sys.modules), sys.modules.keys();"
        "print(len(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) < 40
