"""Tests where each setting comes from, and that changing a setting changes one line of the file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from howdah.config.settings import SETTINGS, find_setting, resolve
from howdah.config.settings_file import refuse_harm, remove, replace_setting, write
from howdah.config.user_file import language_setting, user_file
from howdah.errors import SpecError, StagingError
from howdah.localfiles import change_lock
from howdah.localfiles.process_identity import identity_of

OWN = {"pid": os.getpid(), "started": identity_of(os.getpid())}
ENDED = {"pid": 2**30, "started": ""}
"""Two entries of a sandbox's record."""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment whose howdah home and Hadoop configuration are empty directories."""
    (tmp_path / "conf").mkdir()
    return {"HOWDAH_HOME": str(tmp_path / "home"), "HADOOP_CONF_DIR": str(tmp_path / "conf"), "HOME": str(tmp_path)}


def user(env: dict[str, str], text: str) -> Path:
    path = user_file(env)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def cluster(env: dict[str, str], text: str) -> Path:
    path = Path(env["HADOOP_CONF_DIR"], "howdah.yaml")
    path.write_text(text)
    return path


def test_without_anything_all_is_default(env: dict[str, str]) -> None:
    settings = resolve({}, {"HOME": env["HOME"]})
    known = {key: find_setting(key) for key in settings.values}
    assert settings.values.keys() >= SETTINGS.keys()
    assert all(setting is not None and setting.default == settings[key] for key, setting in known.items())
    assert settings.explain("engine") == "engine = local (default)"


def test_the_stronger_source_wins_one_by_one(env: dict[str, str]) -> None:
    def queue(flag: str | None = None) -> str:
        return resolve({"queue": flag}, env).explain("queue")

    there = cluster(env, "queue: c\n")
    assert queue() == f"queue = c (cluster file {there})"
    cluster(env, "queue: c\nprofiles: {prod: {queue: cp}}\n")
    env["HOWDAH_PROFILE"] = "prod"
    assert queue() == f"queue = cp (cluster file {there}, profile prod)"
    here = user(env, "queue: u\n")
    assert queue() == f"queue = u (user file {here})"
    user(env, "queue: u\nprofiles: {prod: {queue: up}}\n")
    assert queue() == f"queue = up (user file {here}, profile prod)"
    env["HOWDAH_QUEUE"] = "e"
    assert queue() == "queue = e (environment HOWDAH_QUEUE)"
    assert queue("f") == "queue = f (flag)"


def test_a_profile_is_chosen_by_flag_variable_or_file(env: dict[str, str]) -> None:
    user(env, "profile: a\nprofiles:\n  a: {queue: qa}\n  b: {queue: qb}\n  c: {queue: qc}\n")
    assert resolve({}, env)["queue"] == "qa"
    env["HOWDAH_PROFILE"] = "b"
    assert resolve({}, env)["queue"] == "qb"
    assert resolve({"profile": "c"}, env)["queue"] == "qc"
    with pytest.raises(SpecError, match="profile: is 'd', known are a, b, c"):
        resolve({"profile": "d"}, env)


def test_an_empty_value_in_a_file_brings_the_default_back(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "conf" / "howdah.yaml").write_text("python: theirs\n")
    top = "queue: top\nenvironment: req.txt\nshared_paths: /nfs\ncache_days: 3\n"
    empty = "queue: '', environment: '', shared_paths: [], cache_days: '', hadoop_conf_dir: ''"
    here = user(env, f"{top}profiles: {{a: {{{empty}}}, b: {{queue: }}}}\n")
    found = resolve({"profile": "a"}, env)
    emptied = ("queue", "environment", "shared_paths", "hadoop_conf_dir", "python")
    assert [found[key] for key in (*emptied, "cache_days")] == ["", "", "", "", "", "30"]
    assert found.explain("queue") == f"queue =  (user file {here}, profile a)"
    assert resolve({"profile": "b"}, env)["queue"] == "top"  # a key without a value says nothing
    assert resolve({"profile": "a", "queue": "f"}, env)["queue"] == "f"
    assert resolve({"queue": ""}, {**env, "HOWDAH_QUEUE": ""})["queue"] == "top"
    user(env, "python: ''\n")
    assert resolve({}, env)["python"] == ""


def test_a_profiles_conf_dir_brings_its_own_cluster_file(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "howdah.yaml").write_text("queue: theirs\n")
    cluster(env, "queue: ours\n")
    user(env, f"profiles: {{other: {{hadoop_conf_dir: {tmp_path / 'other'}}}}}\n")
    assert resolve({}, env)["queue"] == "ours"
    assert resolve({"profile": "other"}, env)["queue"] == "theirs"
    assert resolve({}, env).explain("hadoop_conf_dir").endswith("(environment HADOOP_CONF_DIR)")


def test_a_running_sandbox_is_found_and_an_ended_one_is_not(env: dict[str, str]) -> None:
    del env["HADOOP_CONF_DIR"]
    record = Path(env["HOWDAH_HOME"], "state", "sandbox", "sandbox.json")
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"conf_dir": "/sandbox/conf", "pids": {"rm": OWN}}))
    settings = resolve({}, env)
    assert settings.explain("hadoop_conf_dir") == "hadoop_conf_dir = /sandbox/conf (the running sandbox)"
    assert settings.shared_paths == ("/",)
    some = {"rm": OWN, "nn": ENDED}
    record.write_text(json.dumps({"conf_dir": "/sandbox/conf", "pids": some}))
    assert resolve({}, env)["hadoop_conf_dir"] == "/sandbox/conf"

    record.write_text(json.dumps({"conf_dir": "/sandbox/conf", "pids": {"rm": ENDED}}))
    assert resolve({}, env)["hadoop_conf_dir"] == ""
    another = {"pid": os.getpid(), "started": "an-earlier-boot:100"}  # this process has the daemon's number
    record.write_text(json.dumps({"conf_dir": "/sandbox/conf", "pids": {"rm": another}}))
    assert resolve({}, env)["hadoop_conf_dir"] == ""
    record.write_text("half")
    assert resolve({}, env)["hadoop_conf_dir"] == ""


def test_values_are_brought_into_one_form(env: dict[str, str]) -> None:
    path = user(env, "master_memory_mib: 1.5GiB\nshared_paths: [/nfs, data]\npython_archive: hdfs://n/py.tgz\n")
    settings = resolve({}, env)
    assert settings["master_memory_mib"] == "1536"
    assert settings.shared_paths == ("/nfs", str(path.parent / "data"))
    assert settings["python_archive"] == "hdfs://n/py.tgz"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("queu: x\n", r"queu: is not a setting \(did you mean 'queue'\?\) \(.*config.yaml:1\)"),
        ("profiles: {a: {enginee: x}}\n", r"profiles.a.enginee: is not a setting.*did you mean 'engine'"),
        ("profiles: {a: {profile: b}}\n", r"profiles.a.profile: is not a setting"),
        ("profiles: [a]\n", "profiles: must be a mapping"),
        ("profiles: {a: 1}\n", "profiles.a: must be a mapping"),
        ("queue: {a: b}\n", "queue: must be a single value"),
        ("- a\n", "must be a mapping of settings"),
        ("a: [\n", "is not YAML"),
        ("queue: a\nqueue: b\n", "queue: is there twice"),
        ("language: zhh\n", r"language: is 'zhh', must be one of auto, en, zh \(did you mean 'zh'\?\) \(user file"),
        ("cache_days: soon\n", "cache_days: is 'soon', must be a whole number"),
        (f"cache_days: {'9' * 400}\n", "must be at most 2147483647"),
        (f"log_limit_mib: {'9' * 400}\n", "must be memory"),
        ("log_limit_mib: 99999999T\n", "must be at most 2147483647"),
        ("port_range: 1-2000\n", "port_range: is '1-2000', must be two ports from 1024 to 65535"),
        ("log_limit_mib: 2 GB\n", "log_limit_mib: is '2 GB', must be memory"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(env: dict[str, str], text: str, message: str) -> None:
    user(env, text)
    with pytest.raises(SpecError, match=message):
        resolve({}, env)


def test_a_wrong_value_that_is_overridden_does_no_harm(env: dict[str, str]) -> None:
    cluster(env, "cache_days: soon\n")
    assert resolve({"cache_days": "3"}, env)["cache_days"] == "3"


BEFORE = """\
# mine
engine: yarn   # not here
queue: "a b"
profiles:
    # ours
    prod:
        queue: high  # urgent
        python: py#thon

    test: {queue: low}
# end"""


@pytest.mark.parametrize(
    ("key", "value", "profile", "old", "new"),
    [
        ("engine", "local", "", "engine: yarn   # not here", "engine: local   # not here"),
        ("queue", "c: d", "", 'queue: "a b"', 'queue: "c: d"'),
        ("queue", "low", "prod", "queue: high  # urgent", "queue: low  # urgent"),
        ("cache_days", "3", "", "profiles:\n", "cache_days: 3\nprofiles:\n"),
        ("cache_days", "3", "prod", "    prod:\n", "    prod:\n        cache_days: 3\n"),
        ("cache_days", "3", "new", "profiles:\n", "profiles:\n    new:\n      cache_days: 3\n"),
    ],
)
def test_setting_one_changes_one_line(tmp_path: Path, key: str, value: str, profile: str, old: str, new: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(BEFORE)
    write(path, key, value, profile)
    assert path.read_text() == BEFORE.replace(old, new, 1) + "\n"


def test_setting_makes_the_file_and_the_profile(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "config.yaml"
    write(path, "queue", "q", "prod")
    write(path, "engine", "yarn")
    write(path, "profile", "prod")
    assert path.read_text() == "engine: yarn\nprofile: prod\nprofiles:\n  prod:\n    queue: q\n"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("text", ["{queue: a}\n", "queue: |\n  a\n", "queue:\n  a\n"])
def test_a_form_that_can_not_be_changed_by_line_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=r"edit it yourself|is not YAML"):
        write(path, "queue", "b")
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("key", "profile", "old", "new"),
    [
        ("queue", "", "# mine\nqueue: a # why\nengine: yarn\n", "# mine\nengine: yarn\n"),
        ("queue", "", "queue: a", ""),
        ("queue", "", "queue: a\nprofiles:\n  b:\n    queue: c\n", "profiles:\n  b:\n    queue: c\n"),
        ("queue", "b", "queue: a\nprofiles:\n  b:\n    queue: c\n", "queue: a\n"),
        (
            "queue",
            "b",
            "profiles:\n  b:\n    queue: c\n  d:\n    queue: e\nengine: yarn\n",
            "profiles:\n  d:\n    queue: e\nengine: yarn\n",
        ),
        ("queue", "b", "profiles:\n  b:\n    engine: x\n    queue: c\n", "profiles:\n  b:\n    engine: x\n"),
        ("profile", "", "profile: b\nprofiles:\n  b: {queue: c}\n", "profiles:\n  b: {queue: c}\n"),
    ],
)
def test_removing_one_leaves_the_others(tmp_path: Path, key: str, profile: str, old: str, new: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(old)
    remove(path, key, profile)
    assert path.read_text() == new
    with pytest.raises(SpecError, match="is not set in"):
        remove(path, key, profile)


@pytest.mark.parametrize("text", ["{queue: a}\n", "queue:\n  - a\n  - b\n", "profiles: {b: {queue: a}}\n"])
def test_what_is_not_a_line_is_not_removed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match="edit it yourself"):
        remove(path, "queue", "b" if "profiles" in text else "")
    assert path.read_text() == text


def test_an_unknown_key_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="did you mean 'queue'"):
        write(tmp_path / "config.yaml", "queu", "b")
    assert replace_setting("", "queue", "b") == "queue: b\n"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("profile", "nosuch", r"^profile: is 'nosuch', known are a \(user file .*config.yaml\)$"),
        ("queue", "a\nb", r"^queue: is 'a\\nb', must be one line of text"),
    ],
)
def test_what_would_stop_every_later_command_is_not_written(
    env: dict[str, str], key: str, value: str, message: str
) -> None:
    path, before = user(env, "profiles:\n  a:\n    queue: qa\n"), user_file(env).read_text()
    env["HOWDAH_PROFILE"] = "a"
    with pytest.raises(SpecError, match=message):
        write(path, key, value, "", refuse_harm(key, "", env))
    assert path.read_text() == before
    write(path, "profile", "a", "", refuse_harm("profile", "", env))
    with pytest.raises(SpecError, match="profile: is 'a', no profiles are in"):
        remove(path, "queue", "a", refuse_harm("queue", "a", env))
    write(path, "queue", "q", "new", refuse_harm("queue", "new", env))
    assert resolve({"profile": "new"}, env)["queue"] == "q"


def test_a_wrong_file_is_mended_one_setting_after_another(env: dict[str, str]) -> None:
    path = user(env, "profile: nosuch\ncache_days: soon\nprofiles:\n  a:\n    queue: qa\n")
    write(path, "profile", "a", "", refuse_harm("profile", "", env))
    write(path, "cache_days", "3", "", refuse_harm("cache_days", "", env))
    assert resolve({}, env)["cache_days"] == "3"


def test_a_wrong_profile_is_mended_one_setting_after_another(env: dict[str, str]) -> None:
    path = user(env, "profiles:\n  a:\n    cache_days: soon\n    master_vcores: many\n")
    write(path, "cache_days", "3", "a", refuse_harm("cache_days", "a", env))
    remove(path, "master_vcores", "a", refuse_harm("master_vcores", "a", env))
    assert resolve({"profile": "a"}, env)["cache_days"] == "3"


def test_an_unknown_profile_is_told_with_what_names_it(env: dict[str, str]) -> None:
    user(env, "profiles: {a: {queue: q}}\n")
    with pytest.raises(SpecError, match=r"profile: is 'x', known are a \(--profile\)"):
        resolve({"profile": "x"}, {**env, "HOWDAH_PROFILE": "y"})
    with pytest.raises(SpecError, match=r"\(environment HOWDAH_PROFILE\)"):
        resolve({}, {**env, "HOWDAH_PROFILE": "y"})


def test_every_setting_is_described_for_people() -> None:
    text = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    assert [key for key in SETTINGS if f"| `{key}` |" not in text] == []


def test_the_language_is_found_without_reading_yaml(env: dict[str, str]) -> None:
    assert language_setting(env) == ""
    write(user_file(env), "queue", "training")
    assert language_setting(env) == ""
    write(user_file(env), "language", "zh")
    assert language_setting(env) == resolve({}, env)["language"] == "zh"


def test_of_two_changes_at_once_none_is_lost(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_lock, "WAIT_S", 0.0)
    path = user(env, "engine: local\n")

    def change_meanwhile(_before: str, _after: str) -> None:
        with pytest.raises(StagingError, match="is being changed by another process"):
            write(path, "language", "zh")
        with pytest.raises(StagingError, match="is being changed by another process"):
            remove(path, "engine")

    write(path, "container_tool", "podman", check=change_meanwhile)
    write(path, "language", "zh")
    remove(path, "engine", check=change_meanwhile)
    assert sorted(path.read_text().splitlines()) == ["container_tool: podman", "language: zh"]
