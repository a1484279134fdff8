"""Tests mistakes on Submarine's command line and in its YAML: one clear line each, never a traceback."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from howdah.compat.submarine.job_commands import run_parameters
from howdah.compat.submarine.job_run import Submarine
from howdah.compat.submarine.option_values import read_localization, resources
from howdah.compat.submarine.options import OPTIONS, SubmarineOptions, parse_options
from howdah.errors import SpecError, StagingError
from howdah.spec import uris
from howdah.staging.stage import stage

GOLDEN = Path(__file__).parents[1] / "golden" / "submarine" / "yaml.json"
YAML: str = json.loads(GOLDEN.read_text())["files"]["job.yaml"]
LINES = YAML.splitlines()


def refused(directory: Path, *words: str) -> str:
    with pytest.raises((SpecError, StagingError)) as error:
        Submarine(directory, {}, "/nonexistent", "hdfs://nn/user/me").parse(["job", "run", *words])
    return str(error.value)


def with_yaml(directory: Path, text: str | bytes) -> str:
    (directory / "me.keytab").touch()
    (directory / "job.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return refused(directory, "-f", "job.yaml")


@pytest.mark.parametrize("number", range(1, len(LINES)))
@pytest.mark.parametrize("broken", ["{", "\t- x", "key: 'open", "!!python/object:os.system {}", "nonsense: 1"])
def test_yaml_broken_at_each_line(number: int, broken: str, tmp_path: Path) -> None:
    said = with_yaml(tmp_path, "\n".join([*LINES[:number], broken, *LINES[number:]]))
    assert "job.yaml:" in said


def test_yaml_that_is_none(tmp_path: Path) -> None:
    assert with_yaml(tmp_path, b"spec: \xff") == "-f job.yaml: is not UTF-8: byte 6"
    assert (
        with_yaml(tmp_path, "- a")
        == "the file: must have the keys spec, configs, scheduling, security, tensor_board, roles (job.yaml:1)"
    )
    assert "starts a second document" in with_yaml(tmp_path, "spec: {name: a}\n---\nspec: {}\n")
    assert "nested deeper than 32" in with_yaml(tmp_path, "[" * 100)
    assert "refers to nothing" in with_yaml(tmp_path, "spec: *x")


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_without_its_value(option: str, tmp_path: Path) -> None:
    assert refused(tmp_path, f"--{option}", "--name")


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_misspelt(option: str, tmp_path: Path) -> None:
    wrong = f"--{option}x"
    if option != "f":
        assert f"{wrong}: is not an option of job run (did you mean '--" in refused(tmp_path, wrong, "1")


WORDS = st.one_of(
    st.sampled_from([f"--{name}" for name in OPTIONS]),
    st.sampled_from(
        ["true", "memory=1G", "1", "0", "pytorch", "a=b", "hdfs://n:1/x:.", "%input_path%", "tony.x=1", ""]
    ),
    st.text(st.characters(exclude_characters="\0"), max_size=8),  # no argument holds a zero byte
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(WORDS, max_size=12))
def test_whatever_is_typed(tmp_path: Path, words: list[str]) -> None:
    command = Submarine(tmp_path, {}, "/nonexistent", "hdfs://nn/user/me")
    with contextlib.suppress(SpecError, StagingError):
        command.parse(["job", "run", *words])


WRONG = ("memory", "memory=", "=1", "memory=-1G", "memory=1.5G", "memory=1GB", "gpu=1M", "memory=4", "gpu=1,gpu=1")


@pytest.mark.parametrize("amounts", WRONG)
def test_wrong_amounts_are_refused(amounts: str) -> None:
    options = SubmarineOptions({"worker_resources": [amounts]})
    resources(options, "worker_resources")
    assert [mistake.place for mistake in options.mistakes] == ["--worker_resources"]


@pytest.mark.parametrize(
    ("text", "remote", "name", "mount"),
    [
        ("hdfs://nn:8020/a/x:.", "hdfs://nn:8020/a/x", "x", ""),
        ("hdfs://nn:8020/a/x:./y:rw", "hdfs://nn:8020/a/x", "y", ""),
        ("nfs://host:2049/f:/opt/g:wr", "nfs://host:2049/f", "g", "/opt/g"),
        ("dir/:./", "dir", "dir", ""),
    ],
)
def test_localizations_are_parsed(text: str, remote: str, name: str, mount: str) -> None:
    options = SubmarineOptions()
    found = read_localization(options, "localization", text)
    assert found is not None
    assert (found.remote, found.name, found.mount, options.mistakes) == (remote, name, mount, [])


def test_words_as_their_parser_takes_them() -> None:
    options = parse_options(["-name", "a", "--env=A=b c", "--worker_launch_cmd", '"python x --name 1"', "--verbose"])
    assert options.values == {
        "name": ["a"],
        "env": ["A=b c"],
        "worker_launch_cmd": ["python x --name 1"],
        "verbose": [],
    }


def test_what_is_elsewhere_is_asked_for_when_it_is_staged_and_told_in_the_words_typed(tmp_path: Path) -> None:
    command = Submarine(tmp_path, {}, "/nonexistent", "hdfs://nn/user/me")
    size = ("--num_workers", "1", "--worker_resources", "memory=1G", "--worker_launch_cmd", "x", "--name", "a")
    words = ("nosuch://host/file:.", "lib:.", "/nowhere/x:.")
    parsed = command.parse(["job", "run", *size, *(word for one in words for word in ("--localization", one))])
    assert parsed.job.files == ("nosuch://host/file#file", "lib#lib", "/nowhere/x#x")
    with pytest.raises(SpecError) as error:
        stage(parsed.job, tmp_path, uris.of_local(tmp_path / "home"), origins=parsed.origins)
    unread, absent, _ = str(error.value).splitlines()
    assert unread.startswith("files.0: nosuch://host/file")
    assert absent == f"files.1: 'lib': no such file: {tmp_path}/lib (--localization)"


def test_what_was_typed_is_shown_without_secrets() -> None:
    words = ("job", "run", "--name", "a job", "--env", "DB_PASSWORD=hidden", "--num_workers", "run")
    shown = run_parameters(("/usr/bin/howdah", "submarine", "x.jar", *words))
    assert shown.startswith("--name 'a job' --env ")
    assert shown.endswith(" --num_workers run")
    assert "hidden" not in shown
    assert run_parameters(("/usr/bin/howdah", "run", "job.yaml")) == ""
    assert run_parameters(()) == ""


def test_the_site_of_tony_has_the_last_word(tmp_path: Path) -> None:
    """Submarine handed its options to TonY as a file, over which TonY's site wins."""
    site = "<configuration><property><name>tony.worker.memory</name><value>9g</value></property></configuration>"
    (tmp_path / "tony-site.xml").write_text(site)
    words = ["--name", "x", "--num_workers", "1", "--worker_resources", "memory=2G", "--worker_launch_cmd", "true"]
    submarine = Submarine(tmp_path, {"TONY_CONF_DIR": str(tmp_path)}, "/nonexistent", "hdfs://nn/user/me")
    conf = ["--conf", "tony.worker.memory=3g"]
    job = submarine.parse(["job", "run", *words, *conf]).job
    assert job.roles["worker"].resources.memory_mib == 9 * 1024
