"""Tests that mistakes in job files, settings and command lines are reported in Chinese, by reading the source."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import source
from sentences_said import samples_of

from howdah.cli.i18n import choose
from howdah.cli.mistakes import error_lines, problem_in_chinese
from howdah.engines.yarn.conf import ADVICE
from howdah.errors import JobNotFound, Mistake, SpecError

HOWDAH = str(Path(sys.executable).with_name("howdah"))
OF_JOB_FILES = (
    *("spec/validation.py", "spec/preflight.py", "spec/exec_limits.py", "spec/containers.py", "spec/type_check.py"),
    *(
        "spec/working_files.py",
        "spec/launchers.py",
        "config/job_file.py",
        "config/spec_reader.py",
        "config/variables.py",
        "spec/units.py",
    ),
    *("client/program_files.py", "config/settings.py", "config/settings_file.py", "client/job_filter.py"),
    *("client/grid.py", "cli/grid.py"),
    *("client/clusters.py", "client/command_job.py", "client/standard_input.py", "client/submit.py"),
    *("config/engine_settings.py", "spec/setting.py"),
    *("config/yaml_tree.py", "staging/stage.py", "cli/job_arguments.py", "staging/project_files.py"),
    *("staging/conda_environments.py", "frameworks/ray.py", "localfiles/own_directories.py"),
)
PROBLEM_AT = {"Mistake": 1, "at": 1, "refuse": 2, "wrong": 1, "ValueError": 0}
"""Calls, and which argument of theirs is a problem."""


def problems() -> Iterator[tuple[str, str]]:
    """Where, and a sample of the problem that is said there: each value has become something of its kind."""
    for name in OF_JOB_FILES:
        for function in source.functions(f"howdah.{name.removesuffix('.py').replace('/', '.')}"):
            for line, sample in samples_of(function, PROBLEM_AT):
                if not sample.endswith(" ") and re.search("[a-z]{3}", sample):
                    yield f"{name}:{line}", sample


def test_every_mistake_has_its_chinese() -> None:
    found = list(problems())
    assert {f"{where} {problem}" for where, problem in found if problem_in_chinese(problem) == problem} == set()
    assert len(found) > 100


@pytest.fixture
def _in_chinese() -> Iterator[None]:
    choose("zh")
    yield
    choose("en")


@pytest.mark.usefixtures("_in_chinese")
def test_a_job_that_is_not_there() -> None:
    for where in ("; `howdah list` shows yours", " on engine yarn; `howdah list` shows yours", " in hdfs://ns/jobs"):
        (line,) = error_lines(JobNotFound(f"no job local_1-2{where}"))
        assert "没有作业 local_1-2" in line


@pytest.mark.usefixtures("_in_chinese")
def test_a_mistake_keeps_its_place_its_value_and_its_hint() -> None:
    allowed = "is 'worke', which is not a role of this job (worker, ps)"
    (line,) = error_lines(SpecError([Mistake("inputs.0.roles.0", allowed, "worker", "job.yaml:9")]))
    assert line == "inputs.0.roles.0：值为 'worke'，不是本作业的角色（worker, ps）（是不是 'worker'？）（job.yaml:9）"
    (line,) = error_lines(SpecError.at("roles.worker.replicas", "is -3, must be at least 1"))
    assert line == "roles.worker.replicas：值为 -3，应为不小于 1 的值"
    (line,) = error_lines(SpecError.at("HADOOP_CONF_DIR", f"is not set: {ADVICE}"))
    assert line.startswith("HADOOP_CONF_DIR：没有设置：")
    (line,) = error_lines(SpecError.at("x", "is what nobody has translated, which is no value, must be left alone"))
    assert line == "x：is what nobody has translated, which is no value, must be left alone"


def environment_of(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "HOWDAH_"))}
    return {**kept, "HOWDAH_HOME": str(home), "PYTHONUTF8": "1"}


def run(directory: Path, *arguments: str) -> tuple[int, str]:
    environment = {**environment_of(directory), "HOWDAH_LANGUAGE": "zh"}
    done = subprocess.run(
        [HOWDAH, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False, cwd=directory
    )
    return done.returncode, done.stdout + done.stderr


def test_the_command_says_so(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("roles: {worker: {comand: x, resources: {gpus: 0.5}}}\n")
    code, said = run(tmp_path, "plan", "job.yaml")
    assert code == 64
    assert "roles.worker.comand：在此处不是有效的键" in said
    assert "roles.worker.resources.gpus：值为 '0.5'，应为整数（job.yaml:1）" in said
    assert run(tmp_path, "plan", "none.yaml") == (
        66,
        "howdah: none.yaml：没有该文件或目录。请给出作业文件的路径\n",
    )


# Each command line is that of a new process, which is forked where the commands' modules are imported.
MANY = """
import importlib, json, os, sys
from howdah.cli import COMMANDS, main

calls = json.load(sys.stdin)
for name in {arguments[0] for _, arguments in calls} & {*COMMANDS}:
    importlib.import_module(COMMANDS[name][0].partition(":")[0])
for language, arguments in calls:
    reader, writer = os.pipe()
    if not os.fork():
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        os.close(writer)  # which those who read wait for
        os.environ["HOWDAH_LANGUAGE"] = language
        sys.argv = ["howdah", *arguments]
        main()
    os.close(writer)
    with open(reader) as said:
        text = said.read()
    print(json.dumps([os.waitstatus_to_exitcode(os.wait()[1]), text]), flush=True)
"""
CLICKS = (
    (("run", "--help"), 0, ("用法：howdah run [OPTIONS]", "\n选项:\n", "显示本帮助并退出。")),
    (("--help",), 0, ("\n命令:\n", "显示版本并退出。")),
    (("list", "--limit", "x"), 64, ("用法：howdah list", "运行 'howdah list --help' 查看帮助", "'x' 不是整数")),
    (("list", "--limit", "0"), 64, ("0 不在范围",)),
    (("run", "--on-interrupt", "x"), 64, ("'x' 不是以下任何一个：",)),
    (("cancel",), 64, ("错误：缺少参数 'JOB_ID...'",)),
    (("status", "a", "b"), 64, ("多余的参数（b）",)),
    (("run", "--nope"), 64, ("没有选项 '--nope'",)),
    (("run", __file__, "--lr", "1"), 64, ("没有选项 '--lr'", "是程序，不是作业文件：请写 `-- python ")),
    (("run", "--set"), 64, ("选项 '--set' 需要一个值",)),
    (("list", "--json=1"), 64, ("选项 '--json' 不带值",)),
    (("data", "nope"), 64, ("没有命令 'nope'",)),
    (("history", "--port", "65536"), 64, ("65536 不在范围",)),
    (("tensorboard", "--port", "-1"), 64, ("-1 不在范围",)),
    (("history", "--help"), 0, ("[默认：18488",)),
)
"""Arguments, exit code, and what is printed in Chinese."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, tuple[str, ...]], tuple[int, str]]:
    """The exit code and the output of each command line of `CLICKS`, by language and arguments."""
    calls = [(language, arguments) for language in ("zh", "en") for arguments, *_ in CLICKS]
    environment = environment_of(tmp_path_factory.mktemp("home"))
    command = [sys.executable, "-c", MANY]
    done = subprocess.run(
        command, input=json.dumps(calls), env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return {call: tuple(json.loads(line)) for call, line in zip(calls, done.stdout.splitlines(), strict=True)}


@pytest.mark.parametrize(("arguments", "code", "words"), CLICKS)
def test_clicks_own_words(
    answers: dict[tuple[str, tuple[str, ...]], tuple[int, str]],
    arguments: tuple[str, ...],
    code: int,
    words: tuple[str, ...],
) -> None:
    ended, said = answers["zh", arguments]
    assert ended == code
    for each in words:
        assert each in said
    ended, in_english = answers["en", arguments]
    assert ended == code
    assert in_english
    assert not re.search("[\u4e00-\u9fff]", in_english)
