"""Tests every rule of the spec by the message that people read, and that a correct job has none."""

from __future__ import annotations

import dataclasses

import pytest

from howdah.spec import Board, Checkpoint, Environment, Input, JobSpec, Output, Resources, Role, TaskId, Timeouts, chief
from howdah.spec.containers import requested_image, runtime_variables
from howdah.spec.validation import find_mistakes, has_chief
from howdah.spec.working_files import file_name

WORKER = Role(command="true", replicas=2)
SOUND = JobSpec(roles={"worker": WORKER, "ps": Role(command=("serve", "-v"))})
KNOWN = ("generic", "tensorflow", "pytorch")


def job(**changes: object) -> JobSpec:
    return dataclasses.replace(SOUND, **changes)  # type: ignore[arg-type]


def worker(**changes: object) -> JobSpec:
    return job(roles={"worker": dataclasses.replace(WORKER, **changes)})  # type: ignore[arg-type]


def test_a_sound_job_has_no_mistakes() -> None:
    assert find_mistakes(SOUND, KNOWN) == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (job(roles={}), "roles: is empty, a job has at least one role"),
        (job(roles={"Worker": WORKER}), "roles.Worker: is not a name"),
        (job(roles={"w" * 64: WORKER}), "is not a name"),
        (worker(replicas=0), "roles.worker.replicas: is 0, must be at least 1"),
        (worker(replicas=100_001), "roles: have 100001 tasks together, at most 100000 are possible"),
        (worker(command="  "), "roles.worker.command: is empty"),
        (worker(command=()), "roles.worker.command: is empty"),
        (worker(command=("", "x")), "roles.worker.command: is empty"),
        (worker(command="a\0b"), "roles.worker.command: contains a NUL byte"),
        (worker(resources=Resources(memory_mib=0)), "resources.memory: is 0 MiB, must be at least 1 MiB"),
        (worker(resources=Resources(memory_mib=2**40)), "must be at most 2147483647 MiB"),
        (worker(resources=Resources(vcores=0)), "resources.vcores: is 0, must be at least 1"),
        (worker(resources=Resources(gpus=-1)), "resources.gpus: is -1, must be at least 0"),
        (worker(resources=Resources(named={"yarn.io/gpu": 1})), "named.yarn.io/gpu: has its own key: write `gpus`"),
        (worker(resources=Resources(named={"a b": 1})), "named.a b: is not a resource type"),
        (worker(resources=Resources(named={"yarn.io/fpga": -1})), "named.yarn.io/fpga: is -1, must be at least 0"),
        (worker(env={"1A": "x"}), "roles.worker.env.1A: is not a variable name"),
        (worker(env={"A": "\0"}), "roles.worker.env.A: contains a NUL byte"),
        (worker(node_label="a b"), "roles.worker.node_label: is 'a b', must be one label"),
        (
            worker(on_failure="ignor"),
            "on_failure: is 'ignor', must be one of fail, ignore, restart, restart-role (did you mean 'ignore'?)",
        ),
        (worker(ports=("main",)), "ports.0: is 'main', which every task has anyway"),
        (worker(ports=("a-b", "a_b")), "ports.1: is 'a_b', but HOWDAH_PORT_A_B is taken"),
        (worker(ports=("A",)), "ports.0: is 'A'"),
        (worker(tracked=False), "roles: none is tracked"),
        (job(checkpoint=Checkpoint(path="yes")), "checkpoint.path: is 'yes', must be the path of a directory"),
        (
            job(board=Board(path="True")),
            "board.path: is 'True', must be the path of a directory: one of that name is ./",
        ),
        (job(name=""), "name: is '', must be one line"),
        (job(name="a\nb"), "name: is 'a\\nb', must be one line"),
        (job(framework="tensorfow"), "framework: is 'tensorfow', must be one of generic, pytorch, tensorflow (did"),
        (job(port_range="30000-20000"), "port_range: is '30000-20000', must be two ports from 1024 to 65535"),
        (job(port_range="80-2000"), "port_range: is '80-2000', must be two ports"),
        (job(port_range="2000"), "port_range: is '2000', must be two ports"),
        (job(board=Board(port=80)), "board.port: is 80, must be 0, or a port from 1024 to 65535"),
        (job(success="100.5%"), "success: is '100.5%', must be one of all, any, chief"),
        (job(success="cheif"), "success: is 'cheif', must be one of all, any, chief (did you mean 'chief'?)"),
        (job(roles={"a": WORKER, "b": WORKER}, success="chief"), "success: is 'chief', but the roles a, b have no"),
        (job(retries=-1), "retries: is -1, must be at least 0"),
        (job(queue="a b"), "queue: is 'a b', which no queue can be called"),
        (job(priority=-1), "priority: is -1, must be at least 0"),
        (job(node_label="!"), "node_label: is '!', must be one label"),
        (job(tags=("a,b",)), "tags.0: is 'a,b'"),
        (job(timeouts=Timeouts(gang_s=-1)), "timeouts.gang: is -1 s, must be at least 0 s"),
        (job(timeouts=Timeouts(run_s=float("nan"))), "timeouts.run: is nan s"),
        (job(environment=Environment(python="a", archive="b")), "environment: has python and archive, at most one"),
        (job(files=("a/x", "b/x")), "files.1: would be 'x' in the working directory, as files.0 is"),
        (
            job(files=("x",), inputs=(Input("d", to="x/y"),)),
            "files.0: would be 'x' in the working directory, as inputs.0",
        ),
        (job(files=("/",)), "files.0: is '/', must be a path"),
        (job(archives=("a#b/c",)), "archives.0: is 'a#b/c', must be a path, or path#name with a plain name"),
        (job(inputs=(Input(""),)), "inputs.0.path: is empty"),
        (job(inputs=(Input(("a", "")),)), "inputs.0.path: is empty"),
        (job(inputs=(Input("a", to="../b"),)), "inputs.0.to: is '../b', must be a directory inside"),
        (job(inputs=(Input("a", share="any"),)), "inputs.0.share: is 'any', must be one of all, bytes, split"),
        (job(inputs=(Input("a", roles=("wrker",)),)), "inputs.0.roles.0: is 'wrker', which is not a role of this job"),
        (job(outputs=(Output(""),)), "outputs.0.path: is empty"),
        (job(outputs=(Output("/o", source="/m"),)), "outputs.0.from: is '/m', must be a directory inside"),
        (job(outputs=(Output("/o"), Output("/o/"))), "outputs.1.path: is '/o', as outputs.0.path is"),
        (job(outputs=(Output("/o/p"), Output("/o"))), "outputs.0.path: is '/o/p', which lies inside outputs.1.path"),
        (job(outputs=(Output("/o", tasks="worker:2"),)), "outputs.0.tasks: is 'worker:2', the tasks of worker are"),
        (job(outputs=(Output("/o", tasks="wrker:0"),)), "outputs.0.tasks: is 'wrker:0', which is not a role"),
        (job(roles={"a": WORKER, "b": WORKER}, outputs=(Output("/o", tasks="chief"),)), "outputs.0.tasks: is 'chief'"),
        (job(retries=10**400), "retries: is a number of many digits, must be at most 2147483647"),
        (job(retries=-(10**400)), "retries: is a number of many digits, must be at least 0"),
        (job(env={"A=B": "x"}), "env.A=B: is not a variable name"),
        (job(env={"PATH": "/x:$PATH"}), "env.PATH: has $PATH, which is text here: put /x:$PATH into `extend`"),
        (job(env={"PATH": "/x:${PATH:+$PATH}:/y"}), "env.PATH: has $PATH, which is text here: put /x:$PATH:/y into"),
        (job(env={"PATH": "${PATH:-/bin}:/x"}), "env.PATH: has $PATH, which is text here: put /x into `extend`"),
        (job(env={"PATH": "/x:$PATH:"}), "env.PATH: has $PATH, which is text here: put /x:$PATH into `extend`"),
        (worker(env={"L": "${L}:/x:/y"}), "roles.worker.env.L: has $L, which is text here: put /x:/y into `extend`"),
        (job(secrets={"P": "env:P"}, env={"P": "x"}), "secrets.P: is in env too"),
        (job(secrets={"1": "env:P"}), "secrets.1: is not a variable name"),
    ],
)
def test_each_rule_is_told_with_place_value_and_what_is_allowed(spec: JobSpec, message: str) -> None:
    (mistake,) = find_mistakes(spec, KNOWN)
    assert message in str(mistake)


def test_a_secret_written_out_is_refused_and_not_repeated() -> None:
    (mistake,) = find_mistakes(job(secrets={"PASSWORD": "hunter2"}))
    assert str(mistake) == "secrets.PASSWORD: must be a reference: env:NAME or file:/path"


def test_all_mistakes_come_at_once_and_in_the_users_words() -> None:
    spec = job(roles={"worker": Role(replicas=0)}, framework="caffe")
    origins = {"roles.worker.replicas": "--worker-num", "roles.worker": "--launch-cmd"}
    assert [(m.place, m.origin) for m in find_mistakes(spec, KNOWN, origins)] == [
        ("roles.worker.command", "--launch-cmd"),
        ("roles.worker.replicas", "--worker-num"),
        ("framework", None),
    ]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (worker(replicas="2"), "roles.worker.replicas: is '2', must be a whole number"),
        (worker(replicas=True), "roles.worker.replicas: is True, must be a whole number"),
        (worker(command=7), "roles.worker.command: is 7, must be text"),
        (worker(command=("a", 1)), "roles.worker.command.1: is 1, must be text"),
        (worker(tracked="yes"), "roles.worker.tracked: is 'yes', must be true or false"),
        (worker(resources={"memory_mib": 1}), "must be a Resources"),
        (job(files="a"), "files: is 'a', must be a list"),
        (job(env={"A": 1}), "env.A: is 1, must be text"),
        (job(env=[]), "env: is [], must be a mapping"),
        (job(timeouts=Timeouts(run_s="1h")), "timeouts.run_s: is '1h', must be a number"),  # type: ignore[arg-type]
    ],
)
def test_a_job_built_in_python_with_wrong_types_is_told_so(spec: JobSpec, message: str) -> None:
    (mistake,) = find_mistakes(spec, KNOWN)
    assert message in str(mistake)


@pytest.mark.parametrize(
    ("names", "first"),
    [("worker chief", "chief"), ("worker master", "master"), ("ps worker", "worker"), ("trainer", "trainer")],
)
def test_whom_chief_means(names: str, first: str) -> None:
    roles = dict.fromkeys(names.split(), WORKER)
    assert has_chief(roles)
    assert chief(JobSpec(roles)) == TaskId(first, 0)


def test_among_equals_it_is_not_plain_whom_chief_means() -> None:
    assert not has_chief({"a": WORKER, "b": WORKER})


def test_names_in_the_working_directory() -> None:
    assert [file_name(entry) for entry in ("a/b.py", "src/", "a/b.py#c", "hdfs://n/x/y#z")] == ["b.py", "src", "c", "z"]


def test_a_container_is_asked_for_in_one_way() -> None:
    kind, image = "YARN_CONTAINER_RUNTIME_TYPE", "YARN_CONTAINER_RUNTIME_DOCKER_IMAGE"
    two = {"worker": Role("true", image="b", mounts=("/a:/a:ro",)), "ps": Role("true", mounts=("/c:/c:rw",))}
    asked = job(roles=two, environment=Environment(mounts=("/m:/m:ro",)))
    assert [str(mistake) for mistake in find_mistakes(asked)] == [
        "roles.ps.mounts: has no effect without an image (roles.ps.image)"
    ]
    assert runtime_variables(asked, "worker") == {
        kind: "docker",
        image: "b",
        "YARN_CONTAINER_RUNTIME_DOCKER_MOUNTS": "/m:/m:ro,/a:/a:ro",
    }
    assert runtime_variables(asked, "ps") == {}
    alone = job(env={image: "a", "YARN_CONTAINER_RUNTIME_DOCKER_CONTAINER_NETWORK": "host", "OTHER": "x"})
    assert find_mistakes(alone) == []
    assert requested_image(runtime_variables(alone, "worker")) == "a"
    assert runtime_variables(alone, "worker")["YARN_CONTAINER_RUNTIME_DOCKER_CONTAINER_NETWORK"] == "host"
    runc = job(env={kind: "runc"}, environment=Environment(image="c", mounts=("/m:/m",)))
    assert runtime_variables(runc, "worker") == {
        kind: "runc",
        "YARN_CONTAINER_RUNTIME_RUNC_IMAGE": "c",
        "YARN_CONTAINER_RUNTIME_RUNC_MOUNTS": "/m:/m",
    }
    assert requested_image(runtime_variables(job(env={kind: "docker"}), "worker")) == "the cluster's default image"
    for wrong, place in (
        (job(env={image: "a"}, environment=Environment(image="c")), f"env.{image}: is 'a', but environment.image is"),
        (job(env={kind: "default"}, environment=Environment(image="c")), f"env.{kind}: is 'default', but environment"),
        (job(environment=Environment(mounts=("/m:/m",))), "environment.mounts: has no effect without an image"),
    ):
        assert [str(mistake)[: len(place)] for mistake in find_mistakes(wrong)] == [place]
