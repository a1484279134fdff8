"""Writes the objects of a job: the Job of its master, the pods of its tasks, and the secrets that they mount.

The Job owns all others: deleting it deletes them.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from howdah.engines import MASTER_ATTEMPTS, ContainerPreferences
from howdah.engines.kubernetes import master_start
from howdah.engines.kubernetes.pod_status import CONTAINER
from howdah.errors import SpecError
from howdah.spec import JobSpec, Resources, StagedJob
from howdah.spec.containers import DEFAULT_IMAGE, PREFIX, TYPE, requested_image, requested_mounts, runtime_variables
from howdah.spec.values import dataclass
from howdah.staging.bootstrap_archive import NAME as BOOTSTRAP
from howdah.staging.bootstrap_archive import bootstrap_archive
from howdah.wire import launch_messages

ENGINE = "kubernetes"
JOB, ROLE, USER = "howdah/job", "howdah/role", "howdah/user"
"""Labels of all objects of a job; the role of the master's pod is MASTER."""
MASTER = "howdah-master"
SUBMITTED, NAME, OWNER, CANCELLED = "howdah/submitted", "howdah/name", "howdah/owner", "howdah/cancelled-by"
"""Annotations of the Job: its submission in seconds since 1970, the job's name, its user, and the user who has
cancelled it."""
KEPT_S = 7 * 86400
"""Seconds for which the cluster keeps a Job that has ended, and with it the logs and statuses of its pods."""
MASTER_MEMORY_MIB, MASTER_GRACE_S, SAVE_GRACE_S = 512, 30, 15
LEAVE_S, MAX_STOP_S = 15, 3600
"""Seconds within which stopped processes leave their pod; and the most seconds that a node waits for programs to
stop."""
_DIRECTORY, _LABEL = "/howdah", re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_NO_NAME, _ROLE_LETTERS = re.compile(r"[^a-z0-9]+"), 12
_KUEUE, _COSCHEDULING = "kueue.x-k8s.io", "scheduling.x-k8s.io/pod-group"
_VOLUME = re.compile(r"(?:claim:(?P<claim>[a-z0-9.-]+):)?(?P<path>/[^:]*)(?::(?P<inside>/[^:]*))?(?P<ro>:ro)?")


@dataclass(frozen=True)
class Volume:
    """A volume that pods mount: a directory of the nodes, or a PersistentVolumeClaim."""

    source: str
    """The directory on the nodes, or the claim's name."""
    inside: str
    """The path at which pods see it."""
    is_claim: bool = False
    """Whether `source` names a PersistentVolumeClaim."""
    read_only: bool = False
    """Whether pods may not write there."""

    @classmethod
    def parse(cls, text: str, place: str) -> Volume:
        """Parse `/data`, `/on/node:/in/pod` or `claim:NAME:/in/pod`, each with or without `:ro` at its end.

        Raises:
            SpecError: `text`, which stands at `place`, is none of these.
        """
        found = _VOLUME.fullmatch(text)
        if found is None or (found["claim"] and found["inside"]):
            raise SpecError.at(
                place, f"is {text!r}, must be /data, /on/node:/in/pod or claim:NAME:/in/pod, with or without :ro"
            )
        source, inside = found["claim"] or found["path"], found["inside"] or found["path"]
        return cls(source, inside, bool(found["claim"]), bool(found["ro"]))

    def sees(self, path: Path) -> bool:
        """Return whether pods see `path` of this machine: it is mounted at the same path as on this machine."""
        return path.is_relative_to(self.inside) and (self.is_claim or self.source == self.inside)


def job_volumes(job: JobSpec, options: Mapping[str, Any], role: str = "") -> list[Volume]:
    """Return the volumes that the pods of a role mount, "" for the master's; the job's own mounts come last."""
    found = [Volume.parse(text, "kubernetes.volumes") for text in options["volumes"]]
    if role:
        found += [Volume.parse(text, "environment.mounts") for text in job.environment.mounts]
        found += [Volume.parse(text, f"roles.{role}.mounts") for text in job.roles[role].mounts]
        own = {*job.environment.mounts, *job.roles[role].mounts}
        variables = runtime_variables(job, role)
        place = f"env.{PREFIX}{variables.get(TYPE, '').upper()}_MOUNTS"
        named = (text for text in requested_mounts(variables) if text not in own)
        # NodeManagers require a mode; `rw` is one.
        found += [Volume.parse(re.sub(":rw$", "", text), place) for text in named]
    return list({volume.inside: volume for volume in found}.values())


def label(text: str) -> str:
    """Return the value of a label that stands for a text; other texts hardly ever have the same value."""
    if _LABEL.fullmatch(text):
        return text
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40].rstrip("-") + f"-{sum(text.encode()) % 997}"


def base_name(job_id: str, role: str, ending: str) -> str:
    """Return the beginning of the names of a role's pods; a number follows it. Each name may also be the value of a
    label, which has at most 63 letters."""
    return f"{job_id}-{_NO_NAME.sub('-', role.lower()).strip('-')[:_ROLE_LETTERS].rstrip('-')}-{ending}"


def image_of(job: JobSpec, options: Mapping[str, Any], role: str = "") -> str:
    """Return the image of a role's pods, or of the master's pod, which may use any image of the job.

    Raises:
        SpecError: nobody names one.
    """
    requested = [requested_image(runtime_variables(job, each)) for each in ([role] if role else job.roles)]
    named = [image for image in requested if image != DEFAULT_IMAGE]
    images = [*named, options["image"]] if role else [options["image"], job.environment.image, *named]
    found = next(filter(None, images), "")
    if not found:
        place = f"roles.{role}.image" if role else "kubernetes.image"
        raise SpecError.at(
            place, "pods need an image: name one here, in environment.image, or `howdah config set kubernetes.image`"
        )
    return str(found)


def master_job(
    job_id: str, staged: StagedJob, options: Mapping[str, Any], settings: Mapping[str, str]
) -> dict[str, Any]:
    """Return the Job of a master. It is suspended, so that nothing runs before everything that it mounts is there."""
    job, labels = staged.job, {JOB: job_id, ROLE: MASTER, USER: label(staged.user)}
    memory = job.master.memory_mib or int(settings.get("master_memory_mib") or MASTER_MEMORY_MIB)
    vcores = job.master.vcores or int(settings.get("master_vcores") or 1)
    spec = _pod_spec(
        options, image_of(job, options), job_volumes(job, options), Resources(memory, vcores), job.master.node_label
    )
    spec["serviceAccountName"] = options["service_account"]
    spec["terminationGracePeriodSeconds"] = MASTER_GRACE_S + math.ceil(min(job.stop_limit_s, MAX_STOP_S))
    _mount(spec, "job", {"secret": {"secretName": job_id, "defaultMode": _secret_mode(options)}})
    _mount(spec, "bootstrap", {"configMap": {"name": job_id}})
    container = spec["containers"][0]
    container["command"] = [_python(staged), f"{_DIRECTORY}/job/{master_start.NAME}"]
    container["terminationMessagePolicy"] = "FallbackToLogsOnError"
    container["env"] += [
        {"name": "HOWDAH_MEMORY_MIB", "value": str(memory)},
        {"name": "HOWDAH_MASTER_ATTEMPTS", "value": str(job.master.attempts or MASTER_ATTEMPTS)},
        {"name": "HOWDAH_CREDENTIALS", "value": f"{_DIRECTORY}/job/credentials"},
        {"name": "HOWDAH_BOOTSTRAP", "value": f"{_DIRECTORY}/bootstrap/{BOOTSTRAP}"},
        {
            "name": "HOWDAH_JOB_UID",
            "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/controller-uid']"}},
        },
    ]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_id,
            "labels": {**job.labels, **labels},
            "annotations": {NAME: job.name, OWNER: staged.user},
        },
        "spec": {
            "suspend": True,
            "backoffLimit": (job.master.attempts or MASTER_ATTEMPTS) - 1,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {
                "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
            },
            "ttlSecondsAfterFinished": KEPT_S,
            "template": {"metadata": {"labels": {**job.labels, **labels}}, "spec": spec},
        },
    }


def task_pod(
    job_id: str,
    staged: StagedJob,
    options: Mapping[str, Any],
    role: str,
    name: str,
    preferences: ContainerPreferences,
    secret: str,
    variables: Mapping[str, str],
) -> dict[str, Any]:
    """Return the pod of a container of `role`, which mounts its key from `secret`. It has no rights in the cluster."""
    job, wanted = staged.job, resources_of(staged.job, role, preferences)
    spec = _pod_spec(
        options, image_of(job, options, role), job_volumes(job, options, role), wanted, _node_label(job, role)
    )
    notice, stop = notice_s(job, role), min(job.timeouts.stop_s, MAX_STOP_S)
    spec |= {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": notice + math.ceil(stop + job.last_copy_s) + LEAVE_S,
        **({"serviceAccountName": options["task_service_account"]} if options["task_service_account"] else {}),
        **({"schedulerName": options["scheduler"]} if options["scheduler"] else {}),
    }
    key = {"secretName": secret, "items": [{"key": name, "path": "key"}], "defaultMode": _secret_mode(options)}
    _mount(spec, "key", {"secret": key})
    _mount(spec, "bootstrap", {"configMap": {"name": job_id}})
    spec["volumes"].append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{wanted.memory_mib}Mi"}})
    container = spec["containers"][0]
    container["volumeMounts"].append({"name": "shm", "mountPath": "/dev/shm"})  # noqa: S108 - the runtime's own has 64 MiB
    container["command"] = [_python(staged), f"{_DIRECTORY}/bootstrap/{BOOTSTRAP}"]
    # The time between the notice of an eviction to the program and the SIGTERM to its executor.
    container["lifecycle"] = {"preStop": {"sleep": {"seconds": notice}}}
    own = {
        **variables,
        launch_messages.KEY_FILE: f"{_DIRECTORY}/key/key",
        launch_messages.CONTAINER_DIRECTORY: f"{_DIRECTORY}/work",
        launch_messages.STORES_LOGS: "1",
        launch_messages.TERM_GRACE_S: f"{stop:g}",
    }
    container["env"] += [{"name": each, "value": value} for each, value in own.items()]
    spec["affinity"] = _affinity(job, role, job_id, preferences, spec.pop("affinity", {}))
    labels = {**job.labels, JOB: job_id, ROLE: label(role), USER: label(staged.user)}
    annotations = {}
    if job.queue:
        group, total = name, 1
        if job.gang and job.roles[role].command and not preferences.spare:  # TensorBoard's role has no command
            number, wave = next((number, wave) for number, wave in enumerate(job.waves) if role in wave)
            group = f"{job_id}-{number}" if number else job_id  # Kueue waits for all pods of a group
            total = sum(job.roles[each].replicas for each in wave if job.roles[each].command)
        labels |= {f"{_KUEUE}/queue-name": job.queue, f"{_KUEUE}/pod-group-name": group}
        annotations[f"{_KUEUE}/pod-group-total-count"] = str(total)
    if options["pod_group"]:
        labels[_COSCHEDULING] = options["pod_group"]
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def notice_s(job: JobSpec, role: str) -> int:
    """Return how many seconds before its TERM a program is told that its pod is taken away."""
    return max(int(job.roles[role].preemption.grace_s), SAVE_GRACE_S)


def resources_of(job: JobSpec, role: str, preferences: ContainerPreferences) -> Resources:
    """Return the resources of a container."""
    wanted = job.roles[role].resources
    return replace(wanted, memory_mib=preferences.memory_mib) if preferences.memory_mib else wanted


def secret(name: str, job_id: str, data: Mapping[str, bytes], owner: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a Secret with `data`, which Kubernetes removes with its owner."""
    metadata = {"name": name, "labels": {JOB: job_id}, "ownerReferences": owner}
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "immutable": True, "data": encoded}


def bootstrap_map(job_id: str, owner: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the ConfigMap with the bootstrap archive, which all pods of the job mount."""
    metadata = {"name": job_id, "labels": {JOB: job_id}, "ownerReferences": owner}
    data = {BOOTSTRAP: base64.b64encode(bootstrap_archive()).decode()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True, "binaryData": data}


def owner_of(job_id: str, uid: str) -> list[dict[str, Any]]:
    """Return the owner references of the objects that a Job owns; none if there is no Job."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job_id, "uid": uid}
    return [{**owner, "controller": False, "blockOwnerDeletion": False}] if uid else []


def _pod_spec(
    options: Mapping[str, Any], image: str, volumes: Sequence[Volume], wanted: Resources, node_label: str
) -> dict[str, Any]:
    """Return the parts that the specs of masters' and tasks' pods have in common."""
    amounts = {"cpu": str(wanted.vcores), "memory": f"{wanted.memory_mib}Mi"}
    amounts |= {options["gpu_resource"]: str(wanted.gpus)} if wanted.gpus else {}
    amounts |= {name: str(count) for name, count in wanted.named.items()}
    address = {"name": "HOWDAH_HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    container = {
        "name": CONTAINER,
        "image": image,
        "workingDir": f"{_DIRECTORY}/work",
        "env": [address],
        "envFrom": [{"secretRef": {"name": name}} for name in options["environment_secrets"]],
        "resources": {"requests": amounts, "limits": amounts},
        "volumeMounts": [{"name": "work", "mountPath": f"{_DIRECTORY}/work"}],
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "enableServiceLinks": False,
        # A process with the number 1 ignores signals that it does not handle.
        "shareProcessNamespace": True,
        "containers": [container],
        "volumes": [{"name": "work", "emptyDir": {}}],
        "imagePullSecrets": [{"name": name} for name in options["image_pull_secrets"]],
        "tolerations": [_toleration(text) for text in options["tolerations"]],
    }
    if options["image_pull_policy"]:
        container["imagePullPolicy"] = options["image_pull_policy"]
    if options["priority_class"]:
        spec["priorityClassName"] = options["priority_class"]
    if options["run_as"]:
        _run_as(spec, options["run_as"])
    for number, volume in enumerate(volumes):
        source: dict[str, Any] = {"hostPath": {"path": volume.source}}
        if volume.is_claim:
            source = {"persistentVolumeClaim": {"claimName": volume.source, "readOnly": volume.read_only}}
        _mount(spec, f"volume-{number}", source, volume.inside, volume.read_only)
    selectors = [*options["node_selector"], *filter(None, node_label.split(","))]
    if terms := [_node_term(each) for each in selectors]:
        required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return spec


def _mount(
    spec: dict[str, Any], name: str, source: Mapping[str, Any], inside: str = "", read_only: bool = True
) -> None:
    spec["volumes"].append({"name": name, **source})
    mount = {"name": name, "mountPath": inside or f"{_DIRECTORY}/{name}", "readOnly": read_only}
    spec["containers"][0]["volumeMounts"].append(mount)


def _run_as(spec: dict[str, Any], text: str) -> None:
    """Let a pod run as a user, as the restricted standard of Pod Security demands."""
    user, _, group = text.partition(":")
    if not user.isdecimal() or not (group or "0").isdecimal():
        raise SpecError.at("kubernetes.run_as", f"is {text!r}, must be numbers such as 1000:1000")
    numbers: dict[str, Any] = {"runAsUser": int(user), "runAsGroup": int(group or user), "fsGroup": int(group or user)}
    spec["securityContext"] = {**numbers, "runAsNonRoot": user != "0", "seccompProfile": {"type": "RuntimeDefault"}}
    spec["containers"][0]["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def _secret_mode(options: Mapping[str, Any]) -> int:
    """Return the mode of secret files, which belong to root. With `run_as` the cluster also lets its group read them.
    Otherwise the user of the image is not known, and everybody may read them: nobody else is in the pod."""
    return 0o400 if options["run_as"] else 0o444


def _toleration(text: str) -> dict[str, str]:
    """Parse `key=value:effect`; value and effect may be left out."""
    rest, _, effect = text.partition(":")
    key, equals, value = rest.partition("=")
    operator = {"operator": "Equal", "value": value} if equals else {"operator": "Exists"}
    return {"key": key, **operator, **({"effect": effect} if effect else {})}


def _node_label(job: JobSpec, role: str) -> str:
    return job.roles[role].node_label or job.node_label


def _node_term(text: str) -> dict[str, Any]:
    """Return a term that selects nodes with a label `key=value`, or with a label of this key."""
    key, equals, value = text.partition("=")
    return {"key": key, "operator": "In", "values": [value]} if equals else {"key": key, "operator": "Exists"}


def _affinity(
    job: JobSpec, role: str, job_id: str, preferences: ContainerPreferences, selected: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the nodes on which a container may and should be."""
    node: dict[str, Any] = dict(selected.get("nodeAffinity") or {})
    if preferences.avoid:
        apart = [{"key": "metadata.name", "operator": "NotIn", "values": [host]} for host in preferences.avoid]
        required = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {"nodeSelectorTerms": [{}]}
        (term,) = required["nodeSelectorTerms"]
        node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [{**term, "matchFields": apart}]}
    if preferences.prefer:
        node["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {
                "weight": min(100, 10 * count),
                "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [host]}]},
            }
            for host, count in preferences.prefer.items()
        ]
    found: dict[str, Any] = {"nodeAffinity": node} if node else {}
    if job.roles[role].placement.spread:
        same = {"matchLabels": {JOB: job_id, ROLE: label(role)}}
        rule = {"topologyKey": "kubernetes.io/hostname", "labelSelector": same}
        found["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}
    return found


def _python(staged: StagedJob) -> str:
    """Return the Python of the image, because a Python that the job brings is not there yet when the pod starts."""
    return "python3" if staged.python.startswith(".") else staged.python
