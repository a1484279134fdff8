"""Tests building a job from a command line: options become fields, and files the command needs are sent along."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from howdah.cli import cli
from howdah.cli.i18n import choose
from howdah.client import program_files
from howdah.client.command_job import CommandOptions, load_command
from howdah.config.job_file import LoadedJob, load, loads
from howdah.errors import SpecError
from howdah.spec import Environment, Input, JobSpec, Output, Resources, Role


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {
        "train.py": "import model\nfrom pkg.sub import x\nimport torch, os\n",
        "model.py": "import helper\n",
        "helper.py": "",
        "other.py": "",
        "conf.yaml": "",
        "pkg/sub.py": "",
        "src/main.py": "import tensorflow.keras\nimport beside\n",
        "src/beside.py": "",
        "broken.py": "def (",
        "run.sh": "true",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def job(*words: str, **options: Any) -> JobSpec:
    return command(words, **options).spec


def command(words: tuple[str, ...], sets: dict[str, str] | None = None, **options: Any) -> LoadedJob:
    told: list[str] = []
    return load_command(words, CommandOptions(**options), Path.cwd(), sets or {}, {}, told.append)


def test_every_option_is_a_field(directory: Path) -> None:
    spec = job(
        "./run.sh",
        "a b",
        "$HOME",
        replicas="4",
        memory="2GiB",
        vcores="3",
        gpus="1",
        framework="torchrun",
        requirements="conf.yaml",
        files=("other.py", "pkg#lib"),
        inputs=("hdfs:///data#in", "more"),
        outputs=("hdfs:///model#out", "kept"),
    )
    assert spec == JobSpec(
        {"worker": Role(("./run.sh", "a b", "$HOME"), 4, Resources(2048, 3, 1))},
        name="run",
        framework="torchrun",
        files=("run.sh", "other.py", "pkg#lib"),
        environment=Environment(requirements="conf.yaml"),
        inputs=(Input("hdfs:///data#in"), Input("more")),
        outputs=(Output("hdfs:///model", "out"), Output("kept")),
    )
    assert job("true") == JobSpec({"worker": Role("true")}, name="true")
    assert command(("true",), {"env.A": "1", "retries": "2"}).spec.retries == 2


def test_one_word_is_a_shell_line(directory: Path) -> None:
    spec = job("python train.py --conf=conf.yaml | tee log")
    assert spec.roles["worker"].command == "python train.py --conf=conf.yaml | tee log"
    assert spec.files == ("train.py", "model.py", "pkg", "helper.py", "conf.yaml")
    assert (spec.name, spec.framework) == ("train", "pytorch")


@pytest.mark.parametrize(
    ("words", "files", "framework"),
    [
        (("python", "train.py"), ("train.py", "model.py", "pkg", "helper.py"), "pytorch"),
        (("python", "./train.py"), ("train.py", "model.py", "pkg", "helper.py"), "pytorch"),
        (("python", "src/main.py"), ("src",), "tensorflow"),
        (("python", "-m", "src.main"), ("src",), "tensorflow"),
        (("python", "-m", "model"), ("model.py", "helper.py"), "generic"),
        (("python", "broken.py", "--x", "../y", "/etc/passwd", "conf.yaml"), ("broken.py", "conf.yaml"), "generic"),
        (("ls", "nothing", ".", "-l"), (), "generic"),
        (("x" * 5000,), (), "generic"),
        (("echo 'unbalanced conf.yaml",), ("conf.yaml",), "generic"),
        (("python train.py; echo done",), ("train.py", "model.py", "pkg", "helper.py"), "pytorch"),
        (("(python train.py) > log",), ("train.py", "model.py", "pkg", "helper.py"), "pytorch"),
        (("for i in 1 2; do python src/main.py>log; done; cat conf.yaml",), ("src", "conf.yaml"), "tensorflow"),
        (("bash", "-c", "cd .; python model.py|tee x"), ("model.py", "helper.py"), "generic"),
    ],
)
def test_what_is_sent_along(directory: Path, words: tuple[str, ...], files: tuple[str, ...], framework: str) -> None:
    spec = job(*words)
    assert (spec.files, spec.framework) == (files, framework)


def write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


@pytest.mark.parametrize("words", [("python", "start.py"), ("python", "-m", "models.start")])
def test_what_packages_import_is_sent_along(directory: Path, words: tuple[str, ...]) -> None:
    write(
        directory,
        {
            "start.py": "import models.net\n",
            "models/start.py": "",
            "models/deep/net.py": "import config, layers, tensorflow\nfrom . import start\n",
            "config.py": "import below\n",
            "below.py": "",
            "layers/__init__.py": "import beneath\n",
            "beneath.py": "",
        },
    )
    spec = job(*words)
    needed = ["below.py", "beneath.py", "config.py", "layers", "models"]
    assert sorted(spec.files) == sorted([*needed, *(["start.py"] if words[1] == "start.py" else [])])
    assert spec.framework == "generic"  # what a file of a package imports need not be used


def test_imports_are_followed_to_a_limit_that_is_told(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_files, "MAX_FOLLOWED", 3)
    told: list[str] = []
    load_command(("python", "train.py"), CommandOptions(), Path.cwd(), {}, {}, told.append)
    assert "imports were followed in the first 3 Python files only" in told


@pytest.mark.parametrize("words", [("python", "train.py"), ("cd src; FAST=1 python main.py && python train.py",)])
def test_a_directory_is_no_program(directory: Path, words: tuple[str, ...]) -> None:
    (directory / "python").mkdir()
    (directory / "python" / "large").touch()
    assert "train.py" in job(*words).files
    assert "python" not in job(*words).files
    assert "python" in job("python", "train.py", "python").files  # named as an argument
    job("x" * 5000, "train.py")


def test_what_is_given_is_not_found_out(directory: Path) -> None:
    spec = job("python", "train.py", framework="generic", files=("train.py", "pkg#."))
    assert (spec.framework, spec.files) == ("generic", ("model.py", "helper.py", "train.py", "pkg#."))


def test_data_is_not_sent_along_unasked(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory / "data").mkdir()
    with (directory / "data" / "large").open("wb") as file:
        file.truncate(program_files.MAX_BYTES + 1)
    with pytest.raises(SpecError, match="names 'data', which is larger than 256 MiB: give data by `--input data`"):
        job("python", "train.py", "--data", "data")
    assert job("python", "train.py", "data", files=("data",)).files[-1] == "data"


def test_what_only_a_package_imports_is_left_out_if_it_is_large(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("models/net.py", ""), ("models/export.py", "import tools\n"), ("tools/a.py", "")):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text)
    (directory / "run.py").write_text("import models.net\n")
    with (directory / "tools/weights").open("wb") as file:
        file.truncate(program_files.MAX_BYTES + 1)
    found = program_files.files_of_command(("python", "run.py"), directory)
    assert (found.files, found.too_large) == (("run.py", "models"), ("tools",))
    (directory / "run.py").write_text("import models.net, tools\n")
    with pytest.raises(SpecError, match="names 'tools', which is larger"):
        program_files.files_of_command(("python", "run.py"), directory)


def test_mistakes_name_the_option(directory: Path) -> None:
    with pytest.raises(SpecError) as error:
        job("true", replicas="x", memory="2 gigs", framework="pytorhc", inputs=("",))
    places = [(mistake.place, mistake.origin) for mistake in error.value.mistakes]
    assert ("roles.worker.replicas", "--replicas") in places
    assert ("roles.worker.resources.memory", "--memory") in places
    assert ("framework", "--framework") in places
    assert ("inputs.0.path", "--input") in places


def test_the_text_of_a_command_job_is_a_job_file(directory: Path) -> None:
    loaded = command(("python", "train.py"), replicas="2")
    assert loads(loaded.text, "job.yaml", {}, {})[0] == loaded.spec


@pytest.mark.parametrize(
    "arguments",
    [
        ("train.py",),
        ("run.sh", "--replicas", "3", "--gpus", "1", "--name", "a: b # c"),
        ("--input", "data#in", "--output", "o#out", "--requirements", "r.txt", "--", "python", "x: y", "${HOME} #"),
        ("--", "echo 'a\nb'"),
        ("--", "sh", "-c", "你好"),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_init_writes_a_job_file(
    directory: Path, arguments: tuple[str, ...], language: str, request: pytest.FixtureRequest
) -> None:
    def in_english_again() -> None:
        choose("en")
        importlib.reload(importlib.import_module("howdah.cli.init"))  # whose help was translated when it was loaded

    choose(language)
    request.addfinalizer(in_english_again)
    done = CliRunner().invoke(
        cli, ["init", *arguments, "--to", "-"] if "--" not in arguments else ["init", "--to", "-", *arguments]
    )
    assert done.exit_code == 0, done.output
    spec, _ = loads(done.stdout, "job.yaml", {}, {})
    at = arguments.index("--") if "--" in arguments else 1
    words = (
        arguments[at + 1 :]
        if "--" in arguments
        else (f"{'python' if arguments[0].endswith('py') else 'bash'} {arguments[0]}",)
    )
    assert spec.roles["worker"].command == (words if len(words) > 1 else words[0])
    if "--input" in arguments:
        assert spec.inputs == (Input("data#in"),)
        assert spec.outputs == (Output("o", "out"),)
        assert spec.environment.requirements == "r.txt"
    if "--gpus" in arguments:
        assert (spec.name, spec.roles["worker"].replicas, spec.roles["worker"].resources.gpus) == ("a: b # c", 3, 1)


def test_init_replaces_nothing_unasked(directory: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(cli, ["init", "train.py"]).exit_code == 0
    before = (directory / "job.yaml").read_text()
    assert load(directory / "job.yaml").spec.files == ("train.py", "model.py", "pkg", "helper.py")
    refused = runner.invoke(cli, ["init", "run.sh"])
    assert "job.yaml: exists already" in str(refused.exception)
    assert (directory / "job.yaml").read_text() == before
    assert runner.invoke(cli, ["init", "run.sh", "--overwrite"]).exit_code == 0
    assert load(directory / "job.yaml").spec.name == "run"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], "give a job file, or a command after --"),
        (["run", "python", "train.py"], "give a job file, or a command after --"),
        (["run", "--"], "after -- comes the command"),
        (["plan", "job.yaml", "--", "ls"], "not both: leave out job.yaml"),
        (["submit", "--gpus", "1", "job.yaml"], "--gpus is for a command after --; a job file's fields are --set"),
        (["init"], "give a program"),
        (["init", "a.py", "b.py"], "give a program"),
        (["init", "a.py", "--", "ls"], "give a program"),
    ],
)
def test_a_command_and_a_job_file_exclude_each_other(directory: Path, arguments: list[str], words: str) -> None:
    done = CliRunner().invoke(cli, arguments)
    assert (done.exit_code, words in done.output) == (2, True), done.output


def test_a_program_is_no_job_file(directory: Path) -> None:
    with pytest.raises(SpecError, match=r"train.py: is a program, no job file: write `-- python train.py`"):
        load(Path("train.py"))


def test_options_of_a_name_are_no_variables(directory: Path) -> None:
    text = "vars: {name: x, queue: y}\nname: job-${name}\nqueue: ${queue}\nroles: {worker: {command: 'true'}}\n"
    (directory / "job.yaml").write_text(text)
    spec = load(Path("job.yaml"), {"queue": "z"}, {}, {"name": "mine"}).spec
    assert (spec.name, spec.queue) == ("mine", "z")
    assert load(Path("job.yaml"), {"name": "v"}, {}, {"queue": "q"}).spec.name == "job-v"
    done = CliRunner().invoke(cli, ["plan", "--name", "mine", "job.yaml"])
    assert done.output.startswith(
        "howdah: --name is the job's own; its variable `name` is set by --set name=VALUE\nmine: "
    )
    assert "its variable" not in CliRunner().invoke(cli, ["plan", "--set", "name=mine", "job.yaml"]).output


def test_variables_and_secrets_of_a_command(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", "a=b")
    monkeypatch.delenv("NOWHERE", raising=False)
    options = CommandOptions(env=("A=1=2", "HERE", "EMPTY="), secrets=("KEY", "TOKEN=file:/x"))
    spec = load_command(["true"], options, directory, {}, {}, lambda _: None).spec
    assert spec.env == {"A": "1=2", "HERE": "a=b", "EMPTY": ""}
    assert spec.secrets == {"KEY": "env:KEY", "TOKEN": "file:/x"}
    with pytest.raises(SpecError, match="'NOWHERE' is not set here"):
        load_command(["true"], CommandOptions(env=("NOWHERE",)), directory, {}, {}, lambda _: None)
    with pytest.raises(SpecError) as found:
        load_command(["true"], CommandOptions(secrets=("KEY=hunter2",)), directory, {}, {}, lambda _: None)
    assert "hunter2" not in str(found.value)


def test_a_plan_installs_nothing(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(directory / "cache"))
    (directory / "r.txt").write_text("no-such-package-of-anybody==1.0\n")
    done = CliRunner().invoke(cli, ["plan", "--requirements", "r.txt", "--", "true"])
    assert done.exit_code == 0, done.output
    assert "r.txt is to be installed, once, into " in done.output
    assert "environment: r.txt, first on PATH: howdah-environment/bin" in done.output
    assert not (directory / "cache").exists()


def test_variables_of_a_file(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_HERE", "here")
    (directory / ".env").write_text(
        '# a comment\n\nPLAIN=a b=c #d\nexport SHELL_WAY=1\nQUOTED="two words"\n'
        "SINGLE='$x'\nONE='\nFROM_HERE\r\nEMPTY=\n"
    )
    assert job("true", env_files=(".env",), env=("SHELL_WAY=2",)).env == {
        "PLAIN": "a b=c #d",
        "SHELL_WAY": "2",
        "QUOTED": "two words",
        "SINGLE": "$x",
        "ONE": "'",
        "FROM_HERE": "here",
        "EMPTY": "",
    }
    (directory / ".env").write_text("A=1\nNOT_SET_ANYWHERE\n")
    with pytest.raises(SpecError, match=r"^\.env:2: 'NOT_SET_ANYWHERE' is not set here"):
        job("true", env_files=(".env",))
    with pytest.raises(SpecError, match=r"^--env-file: .*/none: No such file"):
        job("true", env_files=("none",))


def test_standard_input_is_a_file_that_the_command_reads(directory: Path) -> None:
    found = job("python3", "-", "a b", stdin="/kept/x")
    assert (found.roles["worker"].command, found.files) == ("python3 - 'a b' < stdin", ("/kept/x#stdin",))
    assert job("a | b", stdin="/kept/x").roles["worker"].command == "{ a | b\n} < stdin"


def test_a_launcher_in_a_script_chooses_the_framework(directory: Path) -> None:
    (directory / "go.sh").write_text("set -e\n# don't wait\nexec torchrun train.py\n")
    assert job("./go.sh").framework == "torchrun"
    assert job("bash", "go.sh", framework="pytorch").framework == "pytorch"


def test_a_program_on_ray_gets_a_cluster_if_it_has_several_tasks(directory: Path) -> None:
    (directory / "tune.py").write_text("import ray\n")
    assert job("python", "tune.py", replicas="2").framework == "ray"
    assert job("python", "tune.py").framework != "ray"
    (directory / "tune.py").write_text("import torch\nimport ray\n")
    assert job("python", "tune.py", replicas="2").framework == "pytorch"
