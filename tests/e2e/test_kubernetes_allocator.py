"""Tests the allocator of Kubernetes by the allocators' contract, for a master that is this process."""

from __future__ import annotations

import contextlib
import urllib.error
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes_setup import machine

from howdah.client.engine_registry import settings_for
from howdah.engines import MasterContext
from howdah.engines.kubernetes import manifests
from howdah.engines.kubernetes.allocator import KubernetesAllocator
from howdah.sandbox import KubernetesSandbox
from howdah.spec import JobSpec, Resources, Role
from howdah.testing.allocator_contract import AllocatorContract, staged_job

ROLES = {"worker": Role("x", 3, Resources(256)), "ps": Role("x", 1, Resources(128))}


pytestmark = pytest.mark.usefixtures("kubernetes_settings")


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture
def context(kubernetes: KubernetesSandbox, tmp_path: Path) -> Iterator[MasterContext]:
    """A job of this machine's address, without a Job."""
    job_id = f"kubernetes-test-{uuid.uuid4().hex[:8]}"
    values = settings_for({"engine": "kubernetes"}).values
    staged = staged_job(tmp_path, JobSpec(ROLES), user="tester", settings=values)
    path = f"/api/v1/namespaces/{values['kubernetes.namespace']}"
    api = kubernetes.api()
    api.create(f"{path}/configmaps", manifests.bootstrap_map(job_id, []))
    yield MasterContext(job_id, staged, tmp_path.as_uri(), machine(kubernetes), 1)
    api.delete(f"{path}/configmaps/{job_id}")
    for pod in api.get(f"{path}/pods?labelSelector={manifests.JOB}%3D{job_id}")["items"]:
        with contextlib.suppress(urllib.error.HTTPError):  # it has just gone
            api.delete(f"{path}/pods/{pod['metadata']['name']}?gracePeriodSeconds=0")


class TestKubernetesAllocator(AllocatorContract):
    implementation = KubernetesAllocator

    @pytest.fixture(autouse=True)
    def _api(self, kubernetes: KubernetesSandbox) -> None:
        self.api = kubernetes.api()

    def take_master_away(self, context: MasterContext) -> None:
        """Let it have a Job that nobody has deleted; without one it takes the signal for the end."""
        containers = [{"name": "main", "image": "none"}]
        pod = {"spec": {"restartPolicy": "Never", "containers": containers}}
        job = {"metadata": {"name": context.job_id}, "spec": {"suspend": True, "template": pod}}
        namespace = settings_for({"engine": "kubernetes"}).values["kubernetes.namespace"]
        self.api.create(f"/apis/batch/v1/namespaces/{namespace}/jobs", job)
