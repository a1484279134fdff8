"""Tests that an engine's own settings and options are checked by what the engine declares, and reach it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import depot_engine
import jsonschema
import pytest
from click.testing import CliRunner

from howdah.cli.config import config
from howdah.client.engine_registry import hidden_engine
from howdah.client.submit import prepare
from howdah.config.engine_settings import find_engine, missing_engines
from howdah.config.job_file import job_mistakes, load, loads, to_yaml
from howdah.config.job_schema import schema
from howdah.config.settings import SETTINGS, check_value, find_setting, resolve, variable_of
from howdah.config.settings_file import remove, write
from howdah.config.user_file import user_file
from howdah.engines.options import engine_options
from howdah.errors import SpecError
from howdah.localfiles.process_identity import identity_of
from howdah.spec import JobSpec, Role, plugins
from howdah.spec.codec import decode, encode

ROOT = Path(__file__).parents[2]
HOWDAH = Path(sys.executable).with_name("howdah")
ONE_ROLE = "roles: {worker: {command: 'true'}}\n"
JOB = JobSpec(roles={"worker": Role("true")})


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a configuration, and the engine `depot` of another package."""
    depot_engine.use_home(tmp_path, monkeypatch)
    return tmp_path


def user(text: str) -> Path:
    path = user_file(os.environ)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text", ["depot: {account: a, log-memory: 1GiB}\n", "depot.account: a\ndepot.log-memory: 1g\n"]
)
def test_settings_are_nested_or_dotted(text: str) -> None:
    path = user(text)
    settings = resolve({}, os.environ)
    assert (settings["depot.account"], settings["depot.log-memory"], settings["depot.conf_dir"]) == ("a", "1024", "")
    assert settings.explain("depot.account").startswith("depot.account = a (user file ")
    path.write_text(f"engine: depot\nprofiles:\n  b:\n{''.join(f'    {line}' for line in text.splitlines(True))}")
    assert resolve({}, os.environ)["depot.account"] == ""
    assert resolve({"profile": "b"}, os.environ)["depot.account"] == "a"


def test_a_variable_sets_a_setting_of_the_chosen_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_DEPOT_ACCOUNT", "e")
    monkeypatch.setenv("HOWDAH_DEPOT_LOG_MEMORY", "2GiB")
    settings = resolve({"engine": "depot"}, os.environ)
    assert settings.explain("depot.account") == "depot.account = e (environment HOWDAH_DEPOT_ACCOUNT)"
    assert settings["depot.log-memory"] == "2048"
    assert "depot.account" not in resolve({}, os.environ).values  # other packages are not searched for every command
    assert resolve({}, os.environ, ["depot"])["depot.account"] == "e"
    monkeypatch.setenv("HOWDAH_DEPOT_LOG_MEMORY", "much")
    with pytest.raises(SpecError, match=r"depot.log-memory: is 'much', must be memory.*HOWDAH_DEPOT_LOG_MEMORY"):
        resolve({"engine": "depot"}, os.environ)


def test_a_variable_that_is_stronger_than_the_profile_of_a_flag_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(**flags: str) -> list[str]:
        return [str(each) for each in hidden_engine(flags, resolve(flags, os.environ))]

    user("profiles: {s: {engine: depot}, q: {queue: x}}\n")
    assert told(profile="s") == []
    monkeypatch.setenv("HOWDAH_ENGINE", "local")
    sentence = "the job runs on local, because of HOWDAH_ENGINE; the profile s has depot"
    assert told(profile="s") == [sentence]
    assert told() == told(profile="q") == told(profile="s", engine="local") == []
    monkeypatch.setenv("HOWDAH_PROFILE", "s")  # no flag: both are variables
    assert told() == []
    monkeypatch.setenv("HOWDAH_ENGINE", "depot")
    assert told(profile="s") == []


def test_a_running_sandbox_sets_settings_of_its_engine(home: Path) -> None:
    record = home / "home" / "state" / "sandbox-depot" / "sandbox.json"
    record.parent.mkdir(parents=True)
    content = {
        "settings": {"depot.account": "s"},
        "pids": {"daemon": {"pid": os.getpid(), "started": identity_of(os.getpid())}},
    }
    record.write_text(json.dumps(content))
    settings = resolve({"engine": "depot"}, os.environ)
    assert settings.explain("depot.account") == "depot.account = s (the running sandbox)"
    user("depot.account: u\n")
    assert resolve({"engine": "depot"}, os.environ)["depot.account"] == "u"
    user("")
    record.write_text(json.dumps(content | {"pids": {"daemon": {"pid": 2**30, "started": ""}}}))
    assert resolve({"engine": "depot"}, os.environ)["depot.account"] == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "depot: {acount: a}\n",
            r"depot.acount: is not a setting of the engine depot, its settings are depot.account, depot.conf_dir, "
            r"depot.log-memory \(did you mean 'depot.account'\?\) \(.*config.yaml:1\)",
        ),
        ("profiles: {p: {depot.acount: a}}\n", "profiles.p.depot.acount: is not a setting of the engine depot"),
        ("depto: {account: a}\n", r"depto.account: is not a setting \(did you mean 'depot.account'\?\)"),
        ("depot: a\n", "depot: is not a setting of the engine depot, its settings are"),
        ("local: {acount: a}\n", "local.acount: is not a setting of the engine local, which has no settings"),
        ("depot: {account: {a: b}}\n", "depot.account: must be a single value"),
        ("depot: {account: a}\ndepot.account: b\n", "depot.account: is there twice"),
        ("depot: {log-memory: much}\n", "depot.log-memory: is 'much', must be memory"),
        ("shared_paths: ['/a,b']\n", "shared_paths: has a comma, which separates values"),
    ],
)
def test_what_is_wrong_with_a_setting_is_told_with_its_place(text: str, message: str) -> None:
    user(text)
    with pytest.raises(SpecError, match=message):
        resolve({}, os.environ)


def run_config(*arguments: str) -> str:
    done = CliRunner().invoke(config, arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


def test_config_knows_settings_of_engines(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert re.search("^depot.account +-", run_config(), re.MULTILINE)
    assert json.loads(run_config("--json"))["depot.log-memory"] == {"value": "64MiB", "source": "default"}
    run_config("set", "depot.account", "research")
    assert run_config("get", "depot.account") == "research\n"
    monkeypatch.chdir(home)
    run_config("set", "depot.conf_dir", "conf", "--profile", "b")
    assert run_config("get", "depot.conf_dir", "--profile", "b") == f"{home}/conf\n"
    run_config("unset", "depot.account")
    assert run_config("get", "depot.account") == "\n"
    for command in (("get", "depot.acount"), ("set", "depot.acount", "x"), ("unset", "depot.acount")):
        with pytest.raises(SpecError, match=r"depot.acount: is not a setting.*did you mean 'depot.account'"):
            run_config(*command)
    with pytest.raises(SpecError, match=r"queu: is not a setting \(did you mean 'queue'"):
        run_config("get", "queu")
    with pytest.raises(SpecError, match="engine: is 'nosuch', known are depot"):
        run_config("set", "engine", "nosuch")
    assert run_config("get", "engine") == "local\n"


@pytest.mark.parametrize(
    ("old", "profile", "new"),
    [
        ("", "", "depot:\n  account: a\n"),
        ("queue: q\nprofiles:\n  b: {queue: r}\n", "", "queue: q\ndepot:\n  account: a\nprofiles:\n  b: {queue: r}\n"),
        ("depot:\n    conf_dir: /c  # why\n", "", "depot:\n    account: a\n    conf_dir: /c  # why\n"),
        ("depot:\n  account: b # mine\nqueue: q\n", "", "depot:\n  account: a # mine\nqueue: q\n"),
        ("depot.account: b\nqueue: q\n", "", "depot.account: a\nqueue: q\n"),
        ("queue: q\n", "b", "queue: q\nprofiles:\n  b:\n    depot:\n      account: a\n"),
        ("profiles:\n  b:\n    queue: r\n", "b", "profiles:\n  b:\n    depot:\n      account: a\n    queue: r\n"),
        ("profiles:\n  b:\n    depot.account: z\n", "b", "profiles:\n  b:\n    depot.account: a\n"),
    ],
)
def test_setting_one_changes_one_line_and_unsetting_removes_it(home: Path, old: str, profile: str, new: str) -> None:
    path = home / "config.yaml"
    path.write_text(old)
    write(path, "depot.account", "a", profile)
    assert path.read_text() == new
    remove(path, "depot.account", profile)
    assert "account" not in path.read_text()
    assert "depot:\n" not in path.read_text() or "conf_dir" in old


def test_a_form_that_can_not_be_changed_by_line_is_left_alone(home: Path) -> None:
    path = home / "config.yaml"
    path.write_text("depot: {account: b}\n")
    with pytest.raises(SpecError, match=r"edit it yourself|is not YAML"):
        write(path, "depot.account", "a")
    assert path.read_text() == "depot: {account: b}\n"


def read(text: str, **sets: str) -> JobSpec:
    return loads(ONE_ROLE + text, "job.yaml", {name.replace("__", "."): value for name, value in sets.items()}, {})[0]


def test_a_job_file_has_options_for_several_engines() -> None:
    job = read("engines: {depot: {account: a, nodes: 3, exclude: [n1, 'n2,3']}, elsewhere: {whatever: x}}\n")
    assert job.engines == {
        "depot": {"account": "a", "nodes": "3", "exclude": ("n1", "n2,3")},
        "elsewhere": {"whatever": "x"},
    }
    assert read(to_yaml(job).partition("engines")[2].join(("engines", ""))) == job
    assert decode(JobSpec, encode(job)) == job
    assert decode(JobSpec, encode(JOB)) == JOB
    assert "engines" not in encode(JOB)
    said = list(missing_engines(job))
    assert said == ["engines.elsewhere: no engine of this name is installed here, so its options were not checked"]
    (said_of_typo,) = missing_engines(read("engines: {depto: {account: a}}\n"))
    assert said_of_typo.endswith("; did you mean depot?")


def test_set_gives_an_option() -> None:
    assert read("", engines__depot__account="a").engines == {"depot": {"account": "a"}}
    assert read("engines: {depot: {qos: low}}\n", engines__depot__qos="high").engines == {"depot": {"qos": "high"}}
    with pytest.raises(SpecError, match=r"engines.depot.acount: is not an option.*\(--set engines.depot.acount\)"):
        read("", engines__depot__acount="a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{depot: {acount: a}}",
            "engines.depot.acount: is not an option of the engine depot, known are account, qos, nodes, exclude, wait, "
            "shared, template (did you mean 'account'?) (job.yaml:2)",
        ),
        (
            "{depot: {qos: hig}}",
            "engines.depot.qos: is 'hig', must be one of low, normal, high (did you mean 'high'?) (job.yaml:2)",
        ),
        ("{depot: {nodes: some}}", "engines.depot.nodes: is 'some', must be a whole number (job.yaml:2)"),
        ("{depot: {shared: 'yes'}}", "engines.depot.shared: is 'yes', must be true or false (job.yaml:2)"),
        ("{depot: {account: [a]}}", "engines.depot.account: must be a single value (job.yaml:2)"),
        (
            "{depot: {conf_dir: /c}}",
            "engines.depot.conf_dir: is a setting, which a job cannot change: `howdah config set depot.conf_dir VALUE` "
            "(job.yaml:2)",
        ),
        ("{local: {x: y}}", "engines.local.x: is not an option: the engine local has none (job.yaml:2)"),
        ("{depot: a}", "engines.depot: is 'a', must be a mapping, such as {NAME: value} (job.yaml:2)"),
    ],
)
def test_what_is_wrong_with_an_option_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SpecError) as error:
        read(f"engines: {text}\n")
    assert str(error.value) == message


def test_a_job_made_in_python_is_checked_too() -> None:
    job = JobSpec(roles=JOB.roles, engines={"depot": {"nodes": 3}})  # type: ignore[dict-item]
    assert [str(one) for one in job_mistakes(job)] == ["engines.depot.nodes: is 3, must be text"]
    job = JobSpec(roles=JOB.roles, engines={"depot": {"nodes": "x"}})
    assert [one.place for one in job_mistakes(job)] == ["engines.depot.nodes"]


def test_an_option_wins_over_the_setting_and_has_the_type_of_its_kind() -> None:
    defaults = engine_options(JOB, {}, "depot")
    assert defaults == {
        **{"account": "", "conf_dir": "", "log-memory": 64, "qos": "normal", "nodes": None, "exclude": ()},
        **{"wait": 3600.0, "shared": False, "template": ""},
    }
    settings = resolve({"engine": "depot"}, {**os.environ, "HOWDAH_DEPOT_ACCOUNT": "set"}).values
    assert engine_options(JOB, settings, "depot")["account"] == "set"
    given = read("engines: {depot: {account: job, nodes: 3, exclude: [a, 'b,c'], shared: true, wait: 2min}}\n")
    found = engine_options(given, settings, "depot")
    chosen = {name: found[name] for name in ("account", "nodes", "exclude", "shared", "wait")}
    assert chosen == {"account": "job", "nodes": 3, "exclude": ("a", "b,c"), "shared": True, "wait": 120.0}
    assert engine_options(read("engines: {depot: {account: ''}}\n"), settings, "depot")["account"] == ""
    assert engine_options(read("engines: {depot: {exclude: 'a, b'}}\n"), settings, "depot")["exclude"] == ("a", "b")
    assert engine_options(given, settings, "nowhere") == {}


def test_the_plan_has_the_options_of_the_chosen_engine(home: Path) -> None:
    user("depot: {account: set}\n")
    (home / "job.yaml").write_text(
        ONE_ROLE + "engines:\n  depot: {template: more.txt, exclude: 'a, b'}\n  elsewhere: {x: y}\n"
    )
    notices: list[str] = []
    loaded = load(home / "job.yaml", {})
    prepared = prepare(loaded.spec, home, {"engine": "depot"}, notices.append)
    options = prepared.plan.request["options"]
    assert (options["template"], options["exclude"], options["account"]) == (f"{home}/more.txt", ("a", "b"), "set")
    assert prepared.plan.job.job.engines["elsewhere"] == {"x": "y"}
    assert prepared.plan.job.settings["depot.account"] == "set"
    assert [text.partition(":")[0] for text in notices] == ["engines.elsewhere"]
    other = prepare(loaded.spec, home, {"engine": "local"}, notices.append)  # one file, several engines
    assert other.plan.job.job.engines == loaded.spec.engines


def howdah(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(home / "site")}
    return subprocess.run(
        [HOWDAH, *arguments], cwd=home, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_job_runs_with_its_options(home: Path) -> None:
    user("depot: {account: set}\n")
    (home / "job.yaml").write_text(
        "roles: {worker: {command: 'echo \"$DEPOT\"'}}\nengines: {depot: {qos: high}, elsewhere: {x: y}}\n"
    )
    done = howdah(home, "run", "--on", "depot", "--set", "engines.depot.nodes=2", "job.yaml")
    assert done.returncode == 0, done.stderr
    assert '"account": "set"' in done.stdout
    assert '"nodes": 2' in done.stdout
    assert '"qos": "high"' in done.stdout
    assert "engines.elsewhere: no engine of this name is installed here" in done.stderr
    plan = howdah(home, "plan", "--on", "depot", "job.yaml")
    assert "options of depot: qos = high" in plan.stdout
    assert "depot.account = set (user file" in plan.stdout
    refused = howdah(home, "plan", "--on", "local", "--set", "engines.depot.qos=hi", "job.yaml")
    assert refused.returncode == 64
    assert "engines.depot.qos: is 'hi', must be one of low, normal, high" in refused.stderr


def test_the_schema_takes_what_the_reader_takes() -> None:
    validator = jsonschema.Draft202012Validator(schema())
    job = {"roles": {"worker": {"command": "true"}}}
    validator.validate({**job, "engines": {"depot": {"account": "a", "nodes": 3, "exclude": ["n1"]}}})
    for wrong in ({"depot": "a"}, {"local": {"x": "y"}}, {"depot": {"a": {"b": "c"}}}):
        assert not validator.is_valid({**job, "engines": wrong}), wrong


def test_own_engines_declare_what_can_be_set_and_document_it() -> None:
    documents = ROOT / "docs"
    taken = {variable_of(key) for key in SETTINGS}
    for engine in plugins.BUILT_IN["howdah.engines"]:
        declared = find_engine(engine)
        assert declared is not None
        own = documents / f"{engine}.md"
        page = (own if own.exists() else documents / "engines.md").read_text(encoding="utf-8")
        for name, setting in declared.settings.items():
            assert f"`{engine}.{name}`" in page
            assert variable_of(f"{engine}.{name}") not in taken
            assert find_setting(f"{engine}.{name}") is setting
            check_value(f"{engine}.{name}", setting.default, "default", Path())
        for name in declared.options:
            assert f"`{name}`" in page
        for name in declared.settings.keys() & declared.options:
            assert declared.settings[name].kind == declared.options[name].kind
