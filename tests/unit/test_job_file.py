"""Tests reading job files, the messages for wrong ones, and that Python, YAML and the JSON Schema agree."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from howdah.config.job_file import job_mistakes, load, loads, to_yaml
from howdah.config.job_schema import schema
from howdah.errors import SpecError, StagingError
from howdah.frameworks import BUILT_IN
from howdah.spec import Environment, Input, JobSpec, Output, Resources, Role, Timeouts
from howdah.spec.job_file_keys import default_values
from howdah.spec.units import duration_text, memory_mib, memory_text, seconds

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*/job*.yaml"))
ONE_ROLE = "roles: {worker: {command: 'true'}}\n"


def read(text: str, sets: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None) -> JobSpec:
    return loads(text, "job.yaml", sets or {}, environ or {})[0]


def refused(text: str, sets: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(SpecError) as error:
        read(text, sets, environ)
    return [str(mistake) for mistake in error.value.mistakes]


WHOLE = """\
name: digits
framework: tensorflow
env: {MODE: fast}
files: [train.py, src#code]
archives: [data.zip#more]
inputs:
  - path: hdfs:///data/digits
    to: data
    roles: [worker]
    share: all
  - path: [a, b]
outputs:
  - {path: /models/digits, from: model, tasks: chief, overwrite: true}
environment: {requirements: requirements.lock}
success: chief
retries: 2
queue: training
priority: 3
node_label: fast
labels: {team.name: vision}
tags: [nightly]
secrets: {TOKEN: env:MY_TOKEN}
timeouts: {gang: 10min, hold: 30s, localise: 1h, run: 1d, stop: 5}
roles:
  chief:
    command: [python, train.py, --steps, 100]
    resources: {memory: 1.5GiB, vcores: 2, gpus: 1, named: {yarn.io/fpga: 1}}
    ports: [tensorboard]
  worker:
    command: python train.py
    replicas: 4
    env: {MODE: slow}
    node_label: gpu
    tracked: false
    on_failure: ignore
"""
WHOLE_SPEC = JobSpec(
    roles={
        "chief": Role(
            command=("python", "train.py", "--steps", "100"),
            resources=Resources(1536, 2, 1, {"yarn.io/fpga": 1}),
            ports=("tensorboard",),
        ),
        "worker": Role(
            "python train.py", 4, env={"MODE": "slow"}, node_label="gpu", tracked=False, on_failure="ignore"
        ),
    },
    name="digits",
    framework="tensorflow",
    env={"MODE": "fast"},
    files=("train.py", "src#code"),
    archives=("data.zip#more",),
    inputs=(Input("hdfs:///data/digits", "data", ("worker",), "all"), Input(("a", "b"))),
    outputs=(Output("/models/digits", "model", "chief", True),),
    environment=Environment(requirements="requirements.lock"),
    success="chief",
    retries=2,
    queue="training",
    priority=3,
    node_label="fast",
    labels={"team.name": "vision"},
    tags=("nightly",),
    secrets={"TOKEN": "env:MY_TOKEN"},
    timeouts=Timeouts(600.0, 30.0, 3600.0, 86400.0, 5.0),
)


class TestReading:
    def test_every_key(self) -> None:
        assert read(WHOLE) == WHOLE_SPEC

    @pytest.mark.parametrize(("path", "value"), default_values(JobSpec).items())
    def test_a_default_of_the_job_may_be_written(self, path: str, value: Any) -> None:
        """The page shows these defaults beside what is set."""
        assert read(ONE_ROLE, {path: json.dumps(value).strip('"')}) == read(ONE_ROLE)

    @pytest.mark.parametrize(("path", "value"), default_values(Role).items())
    def test_a_default_of_a_role_may_be_written(self, path: str, value: Any) -> None:
        assert read(ONE_ROLE, {f"roles.worker.{path}": json.dumps(value).strip('"')}) == read(ONE_ROLE)

    def test_from_a_file_with_its_sources(self, tmp_path: Path) -> None:
        (tmp_path / "job.yaml").write_text(
            "vars: {n: 2, m: 3}\nroles:\n  worker:\n    command: 'true'\n    replicas: ${n}\n"
        )
        loaded = load(tmp_path / "job.yaml", {"name": "other"}, {"m": "5"})
        assert (loaded.spec.name, loaded.spec.roles["worker"].replicas, loaded.base_directory) == ("other", 2, tmp_path)
        assert loaded.sources["roles.worker.replicas"] == "job.yaml:5"
        assert loaded.sources["name"] == "--set name"
        assert (loaded.sources["vars.n"], loaded.sources["vars.m"]) == ("job.yaml:1", "environment m")

    def test_text_is_what_was_written_whatever_yaml_1_1_thinks_of_it(self) -> None:
        words = ["no", "on", "yes", "True", "010", "0x1F", "1e3", "12:30:00", "2026-11-21", "1_000", ".5", "=", "-"]
        env = "".join(f"  V{number}: {word}\n" for number, word in enumerate(words[:-1]))
        spec = read(f"roles: {{worker: {{command: [{', '.join(words[:-1])}]}}}}\nenv:\n{env}")
        assert list(spec.env.values()) == words[:-1]
        assert spec.roles["worker"].command == tuple(words[:-1])

    @pytest.mark.parametrize(
        "command",
        [
            "for i in $(seq 3); do echo \"$i ${HOME} $$ ${i:-3} $${x} ${}\"; done\n\ttab\n  'quote' \\ # no comment\n",
            "no newline at the end",
            "trailing spaces   \n\n\n",
            "ümlaut 中文 🎉\n",
        ],
    )
    def test_commands_are_kept_byte_for_byte(self, command: str) -> None:
        block = f"roles:\n  worker:\n    command: |{'+' if command.endswith(chr(10)) else '-'}\n"
        block += "".join(f"      {line}" for line in command.splitlines(keepends=True))
        assert read(f"vars: {{x: 1}}\n{block}").roles["worker"].command == command.replace("${x}", "1")

    def test_an_empty_value_leaves_the_default(self) -> None:
        assert read(ONE_ROLE + "queue:\npriority: null\nenv: ~\ntimeouts:\n") == read(ONE_ROLE)

    def test_aliases_give_the_same_value_twice(self) -> None:
        text = "roles:\n  a: {command: x, resources: &big {memory: 8G}}\n  b: {command: y, resources: *big}\n"
        assert read(text).roles["b"].resources == Resources(8192)


class TestVariables:
    TEXT = "vars: {steps: 10, place: /data}\nenv: {S: '${steps} ${HOME} ${other:-x}'}\n" + ONE_ROLE

    def test_come_from_set_then_environment_then_the_file(self) -> None:
        def steps(sets: Mapping[str, str], environ: Mapping[str, str]) -> str:
            return read(self.TEXT, sets, environ).env["S"].split()[0]

        assert steps({}, {}) == "10"
        assert steps({}, {"steps": "20"}) == "20"
        assert steps({"steps": "30"}, {"steps": "20"}) == "30"

    def test_undeclared_names_reach_the_shell(self) -> None:
        assert read(self.TEXT, {}, {"HOME": "/h", "other": "o"}).env["S"] == "10 ${HOME} ${other:-x}"

    def test_an_empty_one_takes_the_default_beside_it(self) -> None:
        text = "vars: {a: ''}\nenv: {A: '${a}', B: '${a:-b}'}\n" + ONE_ROLE
        assert read(text).env == {"A": "", "B": "b"}
        assert read(text, {"a": "c"}).env == {"A": "c", "B": "c"}

    def test_are_told_when_wrong(self) -> None:
        assert refused("vars: {n: , 1a: x, b: []}\n" + ONE_ROLE) == [
            "vars.n: has no value: give one with --set n=VALUE (job.yaml:1)",
            "vars.1a: is not a name for a variable: letters, digits and _, no digit first (job.yaml:1)",
            "vars.b: must be text or a number (job.yaml:1)",
        ]
        (nested,) = refused("vars: {root: /data, out: '${root}/out ${HOME}'}\nqueue: '${out}'\n" + ONE_ROLE)
        rest = "which is not replaced there: write both here (job.yaml:2)"
        assert nested == f"queue: has ${{out}}, whose value has ${{root}}, {rest}"
        assert read("vars: {root: /data, out: '${root}'}\nqueue: '${out}'\n" + ONE_ROLE, {"out": "q"}).queue == "q"
        in_shell = "vars: {USER: me, out: '/user/${USER}'}\nroles: {worker: {command: 'ls ${out}'}}\n"
        assert read(in_shell).roles["worker"].command == "ls /user/${USER}"
        (unknown,) = refused("vars: {queue: q}\nqueue: ${quue}\n" + ONE_ROLE)
        assert unknown == "queue: has ${quue}, which `vars` doesn't declare (did you mean 'queue'?) (job.yaml:2)"
        (number,) = refused("vars: {n: two}\nretries: ${n}\n" + ONE_ROLE)
        assert number == "retries: is 'two', must be a whole number (job.yaml:2)"

    def test_set_replaces_any_field(self) -> None:
        spec = read(
            WHOLE,
            {
                "roles.worker.replicas": "8",
                "roles.chief.command": "[ -f x ] && y",
                "roles.chief.resources.memory": "2G",
                "inputs.1.path": "c",
                "files": "[a, b]",
                "queue": "",
                "labels.team.name": "text",
                "env.NEW": "~",
            },
        )
        assert spec.roles["worker"].replicas == 8
        assert spec.roles["chief"].command == "[ -f x ] && y"
        assert spec.roles["chief"].resources.memory_mib == 2048
        assert (spec.inputs[1].path, spec.files, spec.queue) == ("c", ("a", "b"), "")
        assert (spec.labels, spec.env["NEW"]) == ({"team.name": "text"}, "~")

    def test_set_takes_numbers_and_booleans_and_nothing_else(self, tmp_path: Path) -> None:
        (tmp_path / "job.yaml").write_text("vars: {n: 1}\nroles: {worker: {command: 'x=${n}'}}\n")
        loaded = load(tmp_path / "job.yaml", {"n": 3, "roles.worker.replicas": 4, "priority": 2}, {})
        assert (loaded.spec.roles["worker"].command, loaded.spec.roles["worker"].replicas) == ("x=3", 4)
        assert loaded.overrides["n"] == "3"
        for value, text in ((True, "true"), (1e-5, "1e-05"), ("True", "True")):
            assert load(tmp_path / "job.yaml", {"n": value}, {}).spec.roles["worker"].command == f"x={text}"
        for wrong in (None, [1], b"x", tmp_path):
            with pytest.raises(SpecError, match=r"^n: must be text, a number or a boolean \(--set n\)$"):
                load(tmp_path / "job.yaml", {"n": wrong}, {})

    def test_set_leaves_what_an_alias_shares(self) -> None:
        text = "roles:\n  a: {command: x, resources: &big {memory: 8G}}\n  b: {command: y, resources: *big}\n"
        roles = read(text, {"roles.b.resources.gpus": "1"}).roles
        assert (roles["a"].resources, roles["b"].resources) == (Resources(8192), Resources(8192, gpus=1))

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            ("roles.wrker.replicas", "roles.wrker: is not in the file, which has worker (did you mean 'worker'?)"),
            ("roles.worker.replcas", "roles.worker.replcas: is not a key here"),
            ("roles.worker.replicas.x", "roles.worker.replicas.x: lies inside a single value"),
            ("inputs.0.path", "inputs.0: is not there, the list has 0 items"),
            ("step", "step: is not a key here"),
            ("roles", "roles: is '1', must be a mapping"),
        ],
    )
    def test_set_of_what_is_not_there(self, path: str, message: str) -> None:
        (mistake, *_) = refused("vars: {steps: 1}\n" + ONE_ROLE, {path: "1"})
        assert mistake.startswith(message)
        assert mistake.endswith(f"(--set {path})")


class TestMistakes:
    def test_come_all_at_once_in_reading_order_with_their_lines(self) -> None:
        text = """\
name: [a]
framework: tensorfow
rolse: 3
roles:
  worker:
    replcas: 2
    replicas: 010
    cpu: 3
    command:
    resources: {memory: 2 GB, vcores: 0}
  Ps: 3
env: {A: , 1B: x}
files: a.py
inputs: [{to: /x, roles: [wrker]}]
secrets: {S: hunter2}
"""
        assert refused(text) == [
            "name: is a list, must be text (job.yaml:1)",
            f"framework: is 'tensorfow', must be one of {', '.join(sorted(BUILT_IN))}"
            " (did you mean 'tensorflow'?) (job.yaml:2)",
            "rolse: is not a key here (did you mean 'roles'?) (job.yaml:3)",
            "roles.worker.replcas: is not a key here (did you mean 'replicas'?) (job.yaml:6)",
            "roles.worker.replicas: is '010', must be a whole number (job.yaml:7)",
            "roles.worker.cpu: is not a key here: write 'vcores' inside 'resources' (job.yaml:8)",
            "roles.worker.command: is empty: write what each task of the role runs (job.yaml:9)",
            "roles.worker.resources.memory: is '2 GB', must be memory, like 2GiB, 512MiB, 1.5G, or a number of MiB"
            " (job.yaml:10)",
            "roles.worker.resources.vcores: is 0, must be at least 1 (job.yaml:10)",
            "roles.Ps: is '3', must be a mapping with command; `howdah schema` lists all keys (job.yaml:11)",
            "env.A: has no value: write '' for an empty text (job.yaml:12)",
            "env.1B: is not a variable name: letters, digits and _, no digit first (job.yaml:12)",
            "files: is 'a.py', must be a list, such as [a.py] (job.yaml:13)",
            "inputs.0.path: is missing (job.yaml:14)",
            "inputs.0.to: is '/x', must be a directory inside the working directory (job.yaml:14)",
            "inputs.0.roles.0: is 'wrker', which is not a role of this job (worker, Ps)"
            " (did you mean 'worker'?) (job.yaml:14)",
            "secrets.S: must be a reference: env:NAME or file:/path (job.yaml:15)",
        ]

    @pytest.mark.parametrize(
        ("key", "place"),
        [
            ("replicas: 2", "'replicas' inside 'roles.NAME'"),
            ("mem: 1GiB", "'memory' inside 'roles.NAME.resources'"),
        ],
    )
    def test_what_belongs_to_a_role(self, key: str, place: str) -> None:
        name, _, value = key.partition(": ")
        wrong = f"{name}: is not a key here: write {place}"
        assert refused(f"{key}\nroles: {{worker: {{command: x}}}}") == [f"{wrong} (job.yaml:1)"]
        assert refused("roles: {worker: {command: x}}", {name: value}) == [f"{wrong} (--set {name})"]

    @pytest.mark.parametrize(
        ("key", "hint"),
        [
            ("num_nodes: 2", ": write 'replicas' inside 'roles.NAME'"),
            ("run: python train.py", ": write 'command' inside 'roles.NAME'"),
            ("commands: [python train.py]", ": write 'command' inside 'roles.NAME'"),
            ("workdir: .", " (did you mean 'files'?)"),
            ("setup: pip install numpy", " (did you mean 'environment'?)"),
            ("file_mounts: {/data: 's3://data'}", " (did you mean 'inputs'?)"),
        ],
    )
    def test_keys_of_other_launchers_name_the_key_here(self, key: str, hint: str) -> None:
        name = key.partition(":")[0]
        assert refused(f"{key}\n{ONE_ROLE}") == [f"{name}: is not a key here{hint} (job.yaml:1)"]

    def test_a_key_in_the_place_of_a_role(self) -> None:
        assert refused("roles:\n  command: python train.py\n  gpu: 1\n") == [
            "roles.command: is not a key here: write 'command' inside 'roles.NAME' (job.yaml:2)",
            "roles.gpu: is not a key here: write 'gpus' inside 'roles.NAME.resources' (job.yaml:3)",
        ]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "roles: is missing (job.yaml:1)"),
            ("roles:\n\tworker: {}\n", "job.yaml:2:1: is a tab: indent with spaces"),
            ("apiVersion: batch/v1\nkind: Job\n", "job.yaml: is a Kubernetes manifest, no job file"),
            ("roles: [{command: x}]\n", "roles: is a list, must be a mapping with names that you choose, such as"),
            (ONE_ROLE + "env: [A=1]\n", "env: is a list, must be a mapping, such as {NAME: value} (job.yaml:2)"),
            ("- a\n", "job.yaml:1: is a list, must be a mapping with roles"),
            ("a\n", "job.yaml:1: is 'a', must be a mapping with roles"),
            ("roles: [", ": is not YAML: while parsing a flow"),
            ("a: b: c\n", "job.yaml:1:5: is not YAML"),
            (ONE_ROLE + "---\na: 1\n", "job.yaml:2: starts a second document"),
            (ONE_ROLE + ONE_ROLE, "roles: is there twice, first at job.yaml:1 (job.yaml:2)"),
            (ONE_ROLE + "name: !!python/object:os.system x\n", "has the tag tag:yaml.org,2002:python/object:os.system"),
            (ONE_ROLE + "env: {<<: {A: b}}\n", "env.<<: merge keys are not supported"),
            (ONE_ROLE + "env: {[a]: b}\n", "env.?: a key must be text"),
            (ONE_ROLE + "env: *none\n", "job.yaml:2: *none refers to nothing before it"),
            (ONE_ROLE + "tags: &a [*a]\n", "*a refers to nothing before it"),
            (ONE_ROLE + "timeouts: {run: yes}\n", "timeouts.run: is 'yes', must be a duration"),
            ("roles: {worker: {command: x, tracked: yes}}\n", "tracked: is 'yes', must be true or false"),
            ("roles: {worker: {command: {a: b}}}\n", "roles.worker.command: is a mapping, must be text"),
            ("roles: {ps: {command: x}}\nframework: tensorflow\n", "roles: none is tracked"),
            (ONE_ROLE + "secrets: {S: [hunter2]}\n", "secrets.S: is a list, must be text"),
            (ONE_ROLE + "name: a\0b\n", "is not YAML"),
        ],
    )
    def test_of_form(self, text: str, message: str) -> None:
        assert any(message in mistake for mistake in refused(text))

    def test_a_file_that_is_no_mapping_has_no_other_mistake(self) -> None:
        assert len(refused("- a\n")) == 1

    @pytest.mark.parametrize("text", ["[" * 400_000, "- " * 400_000, "{a: " * 100_000])
    def test_depth_is_bounded(self, text: str) -> None:
        assert "is nested deeper than 32 levels" in refused(text)[0]

    def test_size_is_bounded(self, tmp_path: Path) -> None:
        assert "a job file has at most" in refused("#" * 1_048_577)[0]
        (tmp_path / "job.yaml").write_text("#" * 2_000_000)
        with pytest.raises(SpecError, match="longer than 1048576 bytes, the limit of a job file"):
            load(tmp_path / "job.yaml")

    def test_an_alias_bomb_stays_small(self) -> None:
        many = ", ".join(["*a"] * 900)
        spec = read(f"tags: &a [x]\nenv: {{}}\nlabels: {{}}\ninputs: [{{path: d, roles: &b [worker]}}]\n{ONE_ROLE}")
        assert spec.tags == ("x",)
        assert "at most 1000 are possible" in refused(f"tags: [&a x, {many}]\nfiles: [{many}]\n{ONE_ROLE}")[0]

    def test_files_that_can_not_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(StagingError, match="No such file"):
            load(tmp_path / "none.yaml")
        (tmp_path / "job.yaml").write_bytes(b"name: \xff\n")
        with pytest.raises(SpecError, match="is not UTF-8: byte 6 is 0xff"):
            load(tmp_path / "job.yaml")


MANY = "9" * 400


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"priority: {MANY}", "must be a whole number of at most 18 digits"),
        (f"retries: -{MANY}", "must be a whole number of at most 18 digits"),
        ("priority: 999999999999999999", "is 1e+18, must be at most 2147483647"),
        (f"master: {{memory: {MANY}}}", "must be memory, like 2GiB"),
        ("master: {memory: 999999999999999999T}", "must be at most 2147483647 MiB"),
    ],
)
def test_a_number_of_many_digits_is_refused(text: str, message: str) -> None:
    (mistake,) = refused(ONE_ROLE + text)
    assert message in mistake


class TestUnits:
    @pytest.mark.parametrize(
        ("text", "mib"),
        [
            ("2GiB", 2048),
            ("2G", 2048),
            ("2g", 2048),
            ("512MiB", 512),
            ("512m", 512),
            ("2048", 2048),
            ("1.5GiB", 1536),
            ("1T", 1048576),
            ("1KiB", 1),
            ("2 gib", 2048),
            ("-1", -1),
        ],
    )
    def test_memory(self, text: str, mib: int) -> None:
        assert memory_mib(text) == mib

    @pytest.mark.parametrize("text", ["", "2GB", "G", "two", "1e3", "0x10", "1,5G", "NaN"])
    def test_no_memory(self, text: str) -> None:
        with pytest.raises(ValueError, match="must be memory"):
            memory_mib(text)

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("30s", 30),
            ("10min", 600),
            ("10m", 600),
            ("2h", 7200),
            ("1d", 86400),
            ("1h30min", 5400),
            ("250ms", 0.25),
            ("90", 90),
            ("0.5", 0.5),
            ("1e3", 1000),
            ("1.5 h", 5400),
            ("-1s", -1),
        ],
    )
    def test_durations(self, text: str, value: float) -> None:
        assert seconds(text) == pytest.approx(value)

    @pytest.mark.parametrize("text", ["", "1y", "s", "soon", "1:30", "nan", "inf"])
    def test_no_durations(self, text: str) -> None:
        with pytest.raises(ValueError, match="must be a duration"):
            seconds(text)

    @given(st.integers(0, 2**31 - 1))
    def test_memory_is_written_as_it_is_read(self, mib: int) -> None:
        assert memory_mib(memory_text(mib)) == mib

    @given(st.floats(0, 1e9))
    def test_durations_are_written_as_they_are_read(self, value: float) -> None:
        assert seconds(duration_text(value)) == value


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0$"), max_size=30)
WORDS = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
ROLES = st.builds(
    Role,
    command=st.one_of(TEXTS.map(lambda text: "x" + text), st.lists(TEXTS, max_size=3).map(lambda a: ("x", *a))),
    replicas=st.integers(1, 50),
    resources=st.builds(Resources, st.integers(1, 9999), st.integers(1, 9), st.integers(0, 4)),
    env=st.dictionaries(WORDS, TEXTS, max_size=3),
    tracked=st.sampled_from([None, True]),
    on_failure=st.sampled_from(["", "fail", "ignore"]),
)
JOBS = st.builds(
    JobSpec,
    roles=st.dictionaries(WORDS, ROLES, min_size=1, max_size=3),
    env=st.dictionaries(WORDS, TEXTS, max_size=3),
    labels=st.dictionaries(WORDS, TEXTS, max_size=3),
    tags=st.lists(WORDS, max_size=3).map(tuple),
    retries=st.integers(0, 9),
    priority=st.one_of(st.none(), st.integers(0, 9)),
    timeouts=st.builds(Timeouts, st.floats(0, 1e6), st.floats(0, 1e6)),
)
VALIDATOR = jsonschema.Draft202012Validator(schema())


class TestOneSpec:
    """Python, YAML and the JSON Schema say the same."""

    def test_python_and_yaml(self) -> None:
        assert read(to_yaml(WHOLE_SPEC)) == WHOLE_SPEC

    @pytest.mark.parametrize("text", ["a\x85b", "\u2028", "\u2029\n", "a\r\nb", "\ufeffa", "a\n b \n", " \n", "\x07"])
    def test_odd_characters_survive(self, text: str) -> None:
        spec = JobSpec({"worker": Role("x" + text, env={"A": text})})
        assert read(to_yaml(spec)) == spec

    @given(JOBS)
    @settings(max_examples=60)
    def test_any_sound_job_survives_being_written(self, spec: JobSpec) -> None:
        assert job_mistakes(spec) == []
        text = to_yaml(spec)
        assert read(text) == spec
        VALIDATOR.validate(yaml.safe_load(text))

    def test_a_job_from_python_is_told_the_same(self) -> None:
        spec = dataclasses.replace(WHOLE_SPEC, framework="tensorfow", retries=-1)
        assert [str(mistake) for mistake in job_mistakes(spec)] == [
            mistake.partition(" (job.yaml")[0] for mistake in refused(to_yaml(spec))
        ]

    def test_the_schema_is_one_and_accepts_every_key(self) -> None:
        jsonschema.Draft202012Validator.check_schema(schema())
        VALIDATOR.validate(yaml.safe_load(WHOLE))
        VALIDATOR.validate(yaml.safe_load("vars: {n: 1}\nroles: {w: {command: x, replicas: '${n}'}}"))

    @pytest.mark.parametrize(
        "text",
        [
            "name: x\n",
            "roles: {}\n",
            "roles: {Worker: {command: x}}\n",
            "roles: {w: {command: x, replicas: 0}}\n",
            "roles: {w: {command: x, cpu: 1}}\n",
            "roles: {w: {command: x, resources: {memory: 2GB}}}\n",
            ONE_ROLE + "success: most\n",
            ONE_ROLE + "timeouts: {run: soon}\n",
            ONE_ROLE + "secrets: {A: hunter2}\n",
            ONE_ROLE + "files: a.py\n",
            ONE_ROLE + "inputs: [{to: x}]\n",
        ],
    )
    def test_what_the_schema_refuses_is_refused(self, text: str) -> None:
        with pytest.raises(jsonschema.ValidationError):
            VALIDATOR.validate(yaml.safe_load(text))
        assert refused(text)

    @pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
    def test_the_examples_are_sound(self, path: Path) -> None:
        load(path, {}, {})
        VALIDATOR.validate(yaml.safe_load(path.read_text()))

    def test_every_key_is_described_for_people(self) -> None:
        reference = (ROOT / "docs" / "spec.md").read_text()

        def keys(part: Any) -> set[str]:
            if not isinstance(part, dict):
                return set()
            own = set(part.get("properties", {}))
            return own.union(
                *(keys(value) for value in part.values() if isinstance(value, dict)),
                *(keys(item) for value in part.values() if isinstance(value, list) for item in value),
            )

        whole = schema()
        del whole["properties"]["engines"][
            "properties"
        ]  # described in docs/engines.md: tests/unit/test_engine_options.py
        missing = [key for key in keys(whole) if f"`{key}`" not in reference]
        assert missing == []
        for part in ("", "roles.worker"):
            target = schema()["properties"]
            described = target if not part else target["roles"]["additionalProperties"]["properties"]
            assert all(entry.get("description") for entry in described.values())


def test_a_format_that_an_installed_package_brings_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = JobSpec(roles={"worker": Role("cat")}, inputs=(Input("x", strategy="stream", format="logfmt"),))
    assert [str(mistake).partition(":")[0] for mistake in job_mistakes(job)] == ["inputs.0.format"]
    package = tmp_path / "logfmt-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: logfmt\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[howdah.readers]\nlogfmt = logfmt:Reader\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert job_mistakes(job) == []
