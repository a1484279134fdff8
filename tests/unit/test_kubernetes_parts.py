"""Tests what the engine of Kubernetes reads and writes, without a cluster."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from howdah.engines import NO_PREFERENCES, ContainerPreferences
from howdah.engines.kubernetes import INFO, access, kubeconfig, manifests
from howdah.engines.kubernetes.admission_checks import check_quotas, quantity
from howdah.engines.kubernetes.manifests import Volume
from howdah.engines.kubernetes.pod_status import CONTAINER, end_of, taken_away, waits_for
from howdah.engines.options import engine_options
from howdah.errors import EngineRejected, EngineUnavailable, SpecError
from howdah.spec import JobSpec, Resources, Role, StagedJob
from howdah.spec.job import Checkpoint, Environment, Master, Placement, Preemption, Timeouts
from howdah.wire.launch_messages import TERM_GRACE_S, TERM_TO_ALL

TOKEN = "token-of-alice"
NO_GROUP = '""'


def pod(phase: str = "Running", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "labels": {}}, "spec": {"nodeName": "n"}, "status": {"phase": phase, **status}}


def ended(code: int, reason: str = "Error", **more: Any) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": reason}}
    return pod("Failed" if code else "Succeeded", containerStatuses=[{"name": CONTAINER, "state": state}], **more)


def disrupted(reason: str) -> list[dict[str, str]]:
    return [{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "because"}]


SILENT_NODE = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]


@pytest.mark.parametrize(
    ("found", "cause", "code", "signal"),
    [
        (ended(0, "Completed"), "exit", 0, None),
        (ended(3), "exit", 3, None),
        (ended(137), "signal", None, 9),
        (ended(137, "OOMKilled"), "memory", None, 9),
        (ended(128, "StartError"), "start", None, None),
        (ended(143, conditions=disrupted("PreemptionByScheduler")), "preempted", None, None),
        (ended(143, conditions=disrupted("EvictionByEvictionAPI")), "withdrawn", None, None),
        (ended(5, conditions=disrupted("EvictionByEvictionAPI")), "exit", 5, None),
        (pod(conditions=[*disrupted("DeletionByTaintManager"), *SILENT_NODE]), "lost", None, None),
        (ended(143, conditions=disrupted("DeletionByTaintManager")), "withdrawn", None, None),
        (pod("Failed", reason="Evicted", message="low on memory"), "withdrawn", None, None),
    ],
)
def test_the_end_of_a_pod(found: dict[str, Any], cause: str, code: int | None, signal: int | None) -> None:
    exit = end_of(found, 256)
    assert exit is not None
    assert (exit.cause, exit.code, exit.signal) == (cause, code, signal)


def test_a_pod_that_runs_or_is_being_evicted_has_not_ended() -> None:
    assert end_of(pod(), 256) is None
    evicted = pod(conditions=disrupted("EvictionByEvictionAPI"))
    assert end_of(evicted, 256) is None
    assert taken_away(evicted) is not None
    tainted = pod(conditions=[*disrupted("DeletionByTaintManager"), {"type": "Ready", "status": "True"}])
    assert end_of(tainted, 256) is None, "its program has its grace on a node that a taint forbids"
    deleted = pod()
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert taken_away(deleted) == ("withdrawn", "its pod was deleted")


def test_what_a_pod_waits_for() -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    assert waits_for(pod("Pending", conditions=[unscheduled])) == ("room", "0/2 nodes")
    waiting = {"name": CONTAINER, "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    assert waits_for(pod("Pending", containerStatuses=[waiting])) == ("image", "ImagePullBackOff: no such image")
    waiting["state"] = {"waiting": {"reason": "ContainerCreating"}}
    assert waits_for(pod("Pending", containerStatuses=[waiting])) == ("", "")


def test_volumes() -> None:
    assert Volume.parse("/data", "x") == Volume("/data", "/data")
    assert Volume.parse("/on/node:/in/pod:ro", "x") == Volume("/on/node", "/in/pod", read_only=True)
    assert Volume.parse("claim:team-data:/mnt/team", "x") == Volume("team-data", "/mnt/team", is_claim=True)
    assert Volume.parse("claim:team:/mnt", "x").sees(Path("/mnt/a"))
    assert not Volume.parse("/on/node:/in/pod", "x").sees(Path("/in/pod/a"))
    for wrong in ("data", "claim:team", "claim:team:/a:/b", "/a:/b:rw", ""):
        with pytest.raises(SpecError, match="must be /data"):
            Volume.parse(wrong, "kubernetes.volumes")


def options(job: JobSpec, **settings: str) -> dict[str, Any]:
    values = {"kubernetes.image": "python:3", **{f"kubernetes.{name}": value for name, value in settings.items()}}
    return engine_options(job, values, "kubernetes")


def task_pod(role: Role, preferences: ContainerPreferences = NO_PREFERENCES, **more: Any) -> dict[str, Any]:
    settings = more.pop("settings", {})
    job = JobSpec({"worker": role}, **more)
    staged = StagedJob(job, "file:///home", user="alice@example")
    return manifests.task_pod("job", staged, options(job, **settings), "worker", "job-w", preferences, "s", {"A": "b"})


def test_a_task_gets_what_its_role_asks_for() -> None:
    role = Role("x", 2, Resources(300, 2, 1, named={"vendor.example/ib": 1}), image="own:1", mounts=("/scratch",))
    made = task_pod(role, ContainerPreferences(memory_mib=600, avoid=("bad",), prefer={"good": 2}))
    container = made["spec"]["containers"][0]
    amounts = {"cpu": "2", "memory": "600Mi", "nvidia.com/gpu": "1", "vendor.example/ib": "1"}
    assert container["resources"] == {"requests": amounts, "limits": amounts}
    assert container["image"] == "own:1"
    assert made["spec"]["automountServiceAccountToken"] is False
    assert {"name": "A", "value": "b"} in container["env"]
    assert any(each.get("hostPath") == {"path": "/scratch"} for each in made["spec"]["volumes"])
    node = made["spec"]["affinity"]["nodeAffinity"]
    (term,) = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "NotIn", "values": ["bad"]}]
    assert node["preferredDuringSchedulingIgnoredDuringExecution"][0]["weight"] == 20
    assert made["metadata"]["labels"][manifests.USER] != "alice@example"


def test_nodes_are_selected_by_label_and_avoided_by_name_at_once() -> None:
    settings = {"node_selector": "pool=a100,ssd", "tolerations": "gpu=yes:NoSchedule,spot"}
    made = task_pod(Role("x", node_label="zone=b"), ContainerPreferences(avoid=("bad",)), settings=settings)
    required = made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    assert [each["key"] for each in term["matchExpressions"]] == ["pool", "ssd", "zone"]
    assert term["matchFields"]
    assert made["spec"]["tolerations"] == [
        {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Exists"},
    ]


def test_labels_of_schedulers_are_set_when_asked_for() -> None:
    plain = task_pod(Role("x", 3))["metadata"]
    assert not any("kueue" in name or "scheduling" in name for name in plain["labels"])
    made = task_pod(Role("x", 3), queue="team", settings={"pod_group": "gang"})["metadata"]
    assert made["labels"]["kueue.x-k8s.io/queue-name"] == "team"
    assert made["labels"]["kueue.x-k8s.io/pod-group-name"] == "job"
    assert made["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "3"
    assert made["labels"]["scheduling.x-k8s.io/pod-group"] == "gang"


def test_a_pod_group_has_those_pods_that_are_asked_for_together() -> None:
    roles = {"worker": Role("x", 2), "ps": Role("x"), "eval": Role("x", after=("worker",)), "tensorboard": Role()}
    job = JobSpec(roles, queue="team")
    staged, found = StagedJob(job, "file:///home", user="alice"), {}
    for role, preferences in [*((role, NO_PREFERENCES) for role in roles), ("spare", ContainerPreferences(spare=True))]:
        name = "worker" if role == "spare" else role
        made = manifests.task_pod("job", staged, options(job), name, f"job-{role}", preferences, "s", {})["metadata"]
        total = made["annotations"]["kueue.x-k8s.io/pod-group-total-count"]
        found[role] = (made["labels"]["kueue.x-k8s.io/pod-group-name"], total)
    assert found["worker"] == found["ps"] == ("job", "3")
    assert found["eval"] == ("job-1", "1")
    assert found["tensorboard"] == ("job-tensorboard", "1")
    assert found["spare"] == ("job-spare", "1")


def test_a_group_of_one_pod_has_a_name_however_long_its_roles_is() -> None:
    name = manifests.base_name("kubernetes-20261130-172323-abcd", "Parameter_server-of-all", "0a1b2c-12345") + "-999"
    job = JobSpec({"worker": Role("x", 1000)}, queue="team", gang=False)
    staged = StagedJob(job, "file:///home", user="alice")
    made = manifests.task_pod("job", staged, options(job), "worker", name, NO_PREFERENCES, "s", {})["metadata"]
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", made["labels"]["kueue.x-k8s.io/pod-group-name"])


def test_each_node_has_one_task_of_a_role_that_is_spread() -> None:
    (rule,) = task_pod(Role("x", placement=Placement(spread=True)))["spec"]["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert rule["labelSelector"]["matchLabels"] == {manifests.JOB: "job", manifests.ROLE: "worker"}


def test_processes_run_as_the_user_who_is_named() -> None:
    spec = task_pod(Role("x"), settings={"run_as": "1000:100"})["spec"]
    assert spec["securityContext"]["runAsUser"] == 1000
    assert spec["securityContext"]["fsGroup"] == 100
    assert spec["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    with pytest.raises(SpecError, match=r"kubernetes\.run_as: is 'alice'"):
        task_pod(Role("x"), settings={"run_as": "alice"})


@pytest.mark.parametrize(
    ("more", "notice", "term", "whole"),
    [
        ({}, 15, "10", 15 + 10 + 15),
        ({"timeouts": Timeouts(stop_s=120.0)}, 15, "120", 15 + 120 + 15),
        ({"timeouts": Timeouts(stop_s=1.5), "checkpoint": Checkpoint("/c", local="c")}, 15, "1.5", 15 + 67 + 15),
        ({"timeouts": Timeouts(stop_s=1e6)}, 15, "3600", 15 + 3600 + 15),
        ({"role": Role("x", preemption=Preemption(grace_s=60.0))}, 60, "10", 60 + 10 + 15),
    ],
)
def test_a_pod_has_time_for_all_that_is_to_be_done(more: dict[str, Any], notice: int, term: str, whole: int) -> None:
    spec = task_pod(more.pop("role", Role("x")), **more)["spec"]
    (container,) = spec["containers"]
    assert container["lifecycle"] == {"preStop": {"sleep": {"seconds": notice}}}
    assert {"name": TERM_GRACE_S, "value": term} in container["env"]
    assert TERM_TO_ALL not in {each["name"] for each in container["env"]}
    assert spec["terminationGracePeriodSeconds"] == whole


@pytest.mark.parametrize(("stop_s", "grace"), [(10.0, 45), (120.0, 155), (1e6, 3630)])
def test_a_masters_pod_has_time_to_stop_its_job(stop_s: float, grace: int) -> None:
    staged = StagedJob(JobSpec({"worker": Role("x")}, timeouts=Timeouts(stop_s=stop_s)), "file:///home", user="alice")
    made = manifests.master_job("job", staged, options(staged.job), {})
    assert made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == grace


@pytest.mark.parametrize(("run_as", "mode"), [("", 0o444), ("1000:1000", 0o400)])
def test_the_user_of_an_image_reads_the_keys(run_as: str, mode: int) -> None:
    task, master = task_pod(Role("x"), settings={"run_as": run_as})["spec"], master_pod(run_as=run_as)
    volumes = {each["name"]: each for spec in (task, master) for each in spec["volumes"]}
    assert [volumes[name]["secret"]["defaultMode"] for name in ("key", "job")] == [mode, mode]


def master_pod(**settings: str) -> dict[str, Any]:
    job = JobSpec({"worker": Role("x")}, timeouts=Timeouts(total_s=60.0))
    made = manifests.master_job("job", StagedJob(job, "file:///home", user="alice"), options(job, **settings), {})
    # A deadline of the Job counts from its start; the master may wait for room much longer than the job may run.
    assert "activeDeadlineSeconds" not in made["spec"]
    return dict(made["spec"]["template"]["spec"])


@pytest.mark.parametrize("kind", ["docker", "runc"])
def test_variables_of_yarn_ask_for_an_image(kind: str) -> None:
    prefix = f"YARN_CONTAINER_RUNTIME_{kind.upper()}_"
    own = {"YARN_CONTAINER_RUNTIME_TYPE": kind, f"{prefix}IMAGE": "of:env", f"{prefix}MOUNTS": "/a:/b:ro,/c:/d:rw"}
    for role, job in ((Role("x", env=own), {}), (Role("x"), {"env": own})):
        spec = task_pod(role, **job)["spec"]
        assert spec["containers"][0]["image"] == "of:env"
        mounts = {each["mountPath"]: each.get("readOnly") for each in spec["containers"][0]["volumeMounts"]}
        assert (mounts["/b"], mounts["/d"]) == (True, False)
    master = JobSpec({"worker": Role("x")}, env=own)
    assert manifests.image_of(master, engine_options(master, {}, "kubernetes")) == "of:env"


def test_an_image_that_is_not_named_is_the_settings() -> None:
    made = task_pod(Role("x", env={"YARN_CONTAINER_RUNTIME_TYPE": "docker"}))
    assert made["spec"]["containers"][0]["image"] == "python:3"
    wrong = {"YARN_CONTAINER_RUNTIME_DOCKER_IMAGE": "of:env", "YARN_CONTAINER_RUNTIME_DOCKER_MOUNTS": "data"}
    with pytest.raises(SpecError, match=r"env\.YARN_CONTAINER_RUNTIME_DOCKER_MOUNTS: is 'data'"):
        task_pod(Role("x", env=wrong))


def test_a_pod_needs_an_image() -> None:
    job = JobSpec({"worker": Role("x")})
    with pytest.raises(SpecError, match=r"roles\.worker\.image"):
        manifests.image_of(job, engine_options(job, {}, "kubernetes"), "worker")
    named = JobSpec({"worker": Role("x")}, environment=Environment(image="of:job"))
    assert manifests.image_of(named, engine_options(named, {}, "kubernetes")) == "of:job"


def test_quantities() -> None:
    assert [quantity(text) for text in ("2", "500m", "1Gi", "2k")] == [2.0, 0.5, 2**30, 2000.0]
    assert [quantity(text) for text in ("5e-1", "2E3", "1E", "500000u", "500000000n")] == [0.5, 2000.0, 1e18, 0.5, 0.5]
    with pytest.raises(ValueError, match="no quantity"):
        quantity("much")


class Quotas:
    """An API that has one quota."""

    namespace = "team"

    def __init__(self, hard: dict[str, str]) -> None:
        self.hard = hard

    def path(self, kind: str) -> str:
        return kind

    def get(self, path: str) -> dict[str, Any]:
        return {"items": [{"metadata": {"name": "small"}, "spec": {"hard": self.hard}}]}


def check(job: JobSpec, **hard: str) -> None:
    """Check a job against a quota. Its master has 1 GiB."""
    staged = StagedJob(dataclasses.replace(job, master=Master(memory_mib=1024)), "file:///home", user="alice")
    known, spec = options(job), staged.job
    pods = {role: manifests.task_pod("job", staged, known, role, role, NO_PREFERENCES, "s", {}) for role in spec.roles}
    own = manifests.master_job("job", staged, known, {})["spec"]["template"]
    check_quotas(Quotas({name.replace("_", "."): text for name, text in hard.items()}), spec, pods, own)  # type: ignore[arg-type]


def test_a_gang_that_no_quota_allows_is_refused() -> None:
    gang = JobSpec({"worker": Role("x", 3, Resources(1024))})
    check(gang, limits_memory="4Gi", pods="4", cpu="4")
    with pytest.raises(EngineRejected, match=r"4096Mi limits\.memory, quota 'small' of the namespace team allows 3Gi"):
        check(gang, limits_memory="3Gi")
    with pytest.raises(EngineRejected, match="its pods need 4 pods"):  # its master is one, too
        check(gang, pods="3")
    check(dataclasses.replace(gang, gang=False), limits_memory="2Gi", pods="2")
    with pytest.raises(EngineRejected, match="2048Mi"):
        check(dataclasses.replace(gang, gang=False), limits_memory="1Gi")


def test_a_quota_must_have_room_for_the_largest_stage_of_the_smallest_gang() -> None:
    stages = {"prepare": Role("x", 2, Resources(512)), "train": Role("x", 3, Resources(1024), after=("prepare",))}
    check(JobSpec(stages), limits_memory="4Gi", pods="4")
    with pytest.raises(EngineRejected, match="4096Mi"):
        check(JobSpec(stages), limits_memory="4000Mi")
    elastic = JobSpec({"worker": Role("x", 8, Resources(1024), min_replicas=2)})
    check(elastic, limits_memory="3Gi", pods="3")
    with pytest.raises(EngineRejected, match="3072Mi"):
        check(elastic, limits_memory="3000Mi")
    check(JobSpec({"worker": Role("x", 2, Resources(1024)), "tensorboard": Role()}), pods="3")


def write_kubeconfig(path: Path, user: dict[str, Any], **cluster: Any) -> Path:
    content = {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(json.dumps(content))
    return path


def test_a_kubeconfig_with_a_token(tmp_path: Path) -> None:
    found = kubeconfig.load(str(write_kubeconfig(tmp_path / "config", {"token": TOKEN})), "")
    assert (found.name, found.namespace, found.server) == ("main", "team", "http://127.0.0.1:1")
    assert found.token() == TOKEN


def test_a_kubeconfig_with_a_program(tmp_path: Path) -> None:
    script = tmp_path / "login"
    status = {"token": TOKEN, "expirationTimestamp": "2000-01-01T00:00:00Z"}
    script.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\necho '{json.dumps({'status': status})}'\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    path = write_kubeconfig(tmp_path / "config", {"exec": {"command": "./login", "apiVersion": "v1"}})
    found = kubeconfig.load(str(path), "")
    assert found.token() == TOKEN
    assert found.token() == TOKEN
    assert (tmp_path / "runs").read_text().count("run") == 2, "credentials that have expired are asked for again"
    script.write_text("#!/bin/sh\necho 'log in first' >&2\nexit 1\n")
    with pytest.raises(EngineRejected, match="log in first"):
        found.token()


@pytest.mark.parametrize(
    ("user", "cluster", "text"),
    [
        ({"token": TOKEN, "as": "root"}, {}, "its user has 'as', which howdah does not know"),
        ({"auth-provider": {"name": "oidc"}}, {}, "its user has 'auth-provider', which howdah does not know"),
        ({}, {"proxy-url": "socks5://127.0.0.1:1080"}, "the proxy socks5://127.0.0.1:1080"),
    ],
)
def test_what_howdah_does_not_know_in_a_kubeconfig_is_not_left_out(
    user: dict[str, Any], cluster: dict[str, Any], text: str, tmp_path: Path
) -> None:
    path = write_kubeconfig(tmp_path / "config", user, **cluster)
    with pytest.raises(EngineUnavailable, match=f"context 'main' cannot be used: .*{text}") as raised:
        kubeconfig.load(str(path), "")
    assert "\n" not in str(raised.value)


def test_several_kubeconfigs_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    first = write_kubeconfig(tmp_path / "first", {"tokenFile": "token"})
    second = write_kubeconfig(tmp_path / "second", {"token": "other"})
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, (first, second, tmp_path / "absent"))))
    assert kubeconfig.load("", "").token().strip() == TOKEN


def test_what_is_wrong_with_a_kubeconfig_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"kubernetes\.kubeconfig: no such file: /nowhere/config"):
        kubeconfig.load("/nowhere/config", "")
    path = write_kubeconfig(tmp_path / "config", {})
    with pytest.raises(SpecError, match=r"kubernetes\.context: is 'prod', contexts of .* are main"):
        kubeconfig.load(str(path), "prod")
    path.write_text("[")
    with pytest.raises(EngineUnavailable, match="is not a kubeconfig"):
        kubeconfig.load(str(path), "")
    write_kubeconfig(path, {}, **{"server": "https://a", "certificate-authority-data": base64.b64encode(b"x").decode()})
    with pytest.raises(EngineUnavailable, match="context 'main' cannot be used"):
        kubeconfig.load(str(path), "")


def test_the_documented_role_is_the_one_that_is_written() -> None:
    text = (Path(__file__).parents[2] / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    _, role, binding = access.manifest("team")
    for rule in role["rules"]:
        (group,), (kind,) = rule["apiGroups"], rule["resources"]
        written = f"apiGroups: [{group or NO_GROUP}], resources: [{kind}], verbs: [{', '.join(rule['verbs'])}]"
        assert written in text
    assert binding["subjects"][0]["namespace"] == "team"


def test_every_setting_and_option_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    for name in INFO.settings:
        assert f"| `{name}` |" in text or f"| `kubernetes.{name}` |" in text, name
