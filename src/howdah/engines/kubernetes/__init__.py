"""Kubernetes as an engine: a job's master is a batch/v1 Job, and its tasks are pods that the master creates."""

from __future__ import annotations

from howdah.engines.info import EngineInfo
from howdah.spec.setting import Setting

_SHARED = {
    "image": Setting("", "Image of the master, and of jobs that name none; it has a Python."),
    "image_pull_policy": Setting("", "When images are pulled.", choices=("Always", "IfNotPresent", "Never")),
    "image_pull_secrets": Setting("", "Secrets of the namespace with which images are pulled.", "list"),
    "node_selector": Setting("", "Labels that nodes must have: pool=a100.", "list"),
    "tolerations": Setting("", "Taints of nodes that are tolerated: gpu=yes:NoSchedule, or a key alone.", "list"),
    "priority_class": Setting("", "Priority class of the pods."),
    "scheduler": Setting("", "Scheduler of the tasks' pods; empty: the cluster's default."),
    "pod_group": Setting("", "Pod group of the tasks, which a coscheduling scheduler knows."),
    "task_service_account": Setting("", "Service account of the tasks' pods; empty: the namespace's default."),
    "environment_secrets": Setting("", "Secrets of the namespace that become variables of all pods.", "list"),
    "run_as": Setting("", "User and group of all processes, such as 1000:1000; empty: the image's."),
}
INFO = EngineInfo(
    engine="howdah.engines.kubernetes.engine:KubernetesEngine",
    allocator="howdah.engines.kubernetes.allocator:KubernetesAllocator",
    id_prefix="kubernetes-",
    forgets_jobs=True,
    is_configured=lambda settings: bool(settings.get("kubernetes.home")),
    how_to_configure="`howdah config set kubernetes.home HOME`, a directory that the pods see, too, or s3://bucket/prefix",
    checks="howdah.cli.doctor_kubernetes:checks",
    extra="kubernetes",
    settings={
        "kubeconfig": Setting("", "File that names the cluster and you; else KUBECONFIG, else ~/.kube/config.", "path"),
        "context": Setting("", "Context of the kubeconfig; empty: its current one."),
        "namespace": Setting("", "Namespace of the jobs; empty: the context's, else default."),
        "home": Setting("", "Place of jobs and files: a directory that pods see, too, or s3://bucket/prefix.", "path"),
        "volumes": Setting("", "What pods mount: /data, /host:/in/pod, claim:NAME:/in/pod; `:ro` at the end.", "list"),
        "service_account": Setting("howdah-master", "Service account of masters, which may create pods."),
        "gpu_resource": Setting("nvidia.com/gpu", "Resource that counts GPUs."),
        **_SHARED,
    },
    options=_SHARED,
)
