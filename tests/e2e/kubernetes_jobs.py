"""A job on a Kubernetes sandbox, for tests that look at its events and pods."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from submitted_job import SubmittedJob, until

from howdah.client.engine_registry import engine as engine_for
from howdah.client.engine_registry import settings_for
from howdah.engines.kubernetes import manifests
from howdah.engines.kubernetes.engine import KubernetesEngine
from howdah.sandbox import KubernetesSandbox

PODS, JOBS = "/api/v1/namespaces/howdah/pods", "/apis/batch/v1/namespaces/howdah/jobs"


def pods_of(kubernetes: KubernetesSandbox, job: SubmittedJob, role: str = "worker") -> list[dict[str, Any]]:
    selector = f"{manifests.JOB}%3D{job.id},{manifests.ROLE}%3D{role}"
    found: list[dict[str, Any]] = kubernetes.api().get(f"{PODS}?labelSelector={selector}")["items"]
    return found


def running_pods_of(kubernetes: KubernetesSandbox, job: SubmittedJob, count: int) -> list[dict[str, Any]]:
    """Return a job's task pods once so many of them have a node. In an ended job, pods may be gone whose end the master
    had not seen."""

    def found() -> list[dict[str, Any]]:
        pods = [pod for pod in pods_of(kubernetes, job) if "nodeName" in pod["spec"]]
        return pods if len(pods) == count else []

    pods: list[dict[str, Any]] = until(found, f"{count} pods of {job.id}")
    return pods


def evict(kubernetes: KubernetesSandbox, pod: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    kubernetes.api().create(f"{PODS}/{pod}/eviction", body)


@contextlib.contextmanager
def opened_engine() -> Iterator[KubernetesEngine]:
    """Yield the engine that the environment describes; at the end, cancel its jobs that still run."""
    found = engine_for(settings_for({"engine": "kubernetes"}))
    assert isinstance(found, KubernetesEngine)
    yield found
    for report in found.describe():
        if not report.state.ended:
            found.cancel(report.id)
