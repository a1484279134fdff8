"""Starts and stops the daemons of one Kubernetes sandbox, and turns them into a cluster to which jobs can be sent."""

from __future__ import annotations

import functools
import hashlib
import http.client
import signal as signals
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from howdah.engines.kubernetes import access
from howdah.sandbox import process
from howdah.sandbox.daemons import Daemons
from howdah.sandbox.kubernetes import build, images, namespaces, network, object_store
from howdah.sandbox.kubernetes.api import AdminApi
from howdah.sandbox.kubernetes.record import KubernetesRecord
from howdah.sandbox.kubernetes.roles import (
    BUCKET,
    CONTROL,
    NAMESPACE,
    S3,
    S3_PORT,
    USER,
    KubernetesConfiguration,
    KubernetesRole,
    roles,
)
from howdah.storage.progress import Notice, no_notice

GPU = "nvidia.com/gpu"
_ENDED_LIMIT_S = 10.0


def identity(run: Path) -> str:
    """Return a text that distinguishes the names of this run directory's cgroups and interface from those of others."""
    return hashlib.sha256(str(run).encode()).hexdigest()[:8]


class KubernetesDaemons(Daemons[KubernetesRole, KubernetesRecord]):
    """Starts and stops the daemons of one Kubernetes, and turns them into a cluster to which jobs can be sent."""

    def __init__(self, run: Path, record: KubernetesRecord, cache: Path) -> None:
        super().__init__(run, record, roles(record.shape, record.network))
        group, binaries = f"howdah-{identity(run)}-", Path(record.binaries)
        self.configuration = KubernetesConfiguration(run, binaries, record.shape, record.network, group)
        self._cache = cache

    @functools.cached_property
    def api(self) -> AdminApi:
        """Return the apiserver's API, as its administrator sees it."""
        return AdminApi(self.configuration.server, self.configuration.certificates)

    def client(self) -> dict[str, str]:
        """Return the facts about the sandbox for clients."""
        made = self.configuration
        return {
            "kubeconfig": str(made.kubeconfig),
            "admin_kubeconfig": str(made.admin_kubeconfig),
            "namespace": NAMESPACE,
            "image": images.PYTHON_IMAGE,
            "shared_dir": str(made.shared),
            "s3_endpoint": made.s3_url,
            "s3_bucket": BUCKET,
            "aws_config_file": str(self.run / "aws-config"),
            "aws_shared_credentials_file": str(self.run / "aws-credentials"),
        }

    def settings(self) -> dict[str, str]:
        """Return the settings with which jobs run here, unless other settings are made."""
        known = self.client()
        values = {name: known[name] for name in ("kubeconfig", "namespace", "image")}
        values |= {"home": f"file://{known['shared_dir']}/howdah", "volumes": known["shared_dir"]}
        return {f"kubernetes.{name}": value for name, value in values.items()}

    def _command(self, role: KubernetesRole) -> tuple[list[str], Mapping[str, str]]:
        if role.name == S3:
            host = self.record.network.machine
            return object_store.command(host, S3_PORT), object_store.environment(self.record.s3_packages)
        return self.configuration.command(role), {"PATH": namespaces.search_path(), "HOME": "/root"}

    def spawn(self, role: KubernetesRole) -> None:
        if role.holds:
            self._hold(role)
        elif role.place:
            command, environment = self._command(role)
            self._note(role.name, namespaces.spawn(self._pid(role.place), command, environment, self.log(role.name)))
        else:
            super().spawn(role)

    def _hold(self, role: KubernetesRole) -> None:
        shape, addresses = self.record.shape, self.record.network
        self._note(role.name, namespaces.hold(Path(self.record.binaries, build.PAUSE), self.log(role.name)))
        if not role.node:
            network.connect_machine(addresses, self._pid(role.name), shape.nodes)
            return
        data, group = self.configuration.data(role.node), f"{self.configuration.group}{role.name}"
        namespaces.furnish(self._pid(role.name), data, role.name, shape.vcores, shape.memory_mib, group)
        network.connect_node(addresses, self._pid(CONTROL), self._pid(role.name), role.node, shape.nodes)

    def _pid(self, name: str) -> int:
        return self.processes[name].pid

    def _start_missing(self) -> None:
        self.start(self.missing())
        self.wait_ready()

    def start(self, missing: Sequence[KubernetesRole]) -> None:
        """Start these processes in the sandbox's order: the apiserver starts while the nodes take their images."""
        late = [role for role in missing if role.title in ("kube-controller-manager", "kube-scheduler", "kubelet")]
        for role in missing:
            self._note(role.name, None)  # or else a process that has ended would count as one that ends while starting
        for role in missing:
            if role not in late:
                self.spawn(role)
        with ThreadPoolExecutor() as pool:
            list(pool.map(self._load_images, (role for role in missing if role.title == "containerd")))
        # A kubelet or controller that finds no apiserver waits for seconds before it asks again.
        self.wait("the apiserver", self.api.is_ready)
        for role in late:
            self.spawn(role)

    def _load_images(self, role: KubernetesRole) -> None:
        """Give a node's containerd the images, if it does not have them."""
        socket = Path(f"/proc/{self._pid(role.place)}/root/run/containerd/containerd.sock")
        self.wait(f"{role.name} at its socket", socket.exists)
        tool = ["ctr", "--namespace", "k8s.io", "images"]
        known = namespaces.run(self._pid(role.place), [*tool, "list", "--quiet"]).split()
        archives = {
            images.PAUSE_IMAGE: self.run / "pause.tar",
            images.PYTHON_IMAGE: images.python_image(self._cache),
        }
        snapshotter = ["--snapshotter", self.configuration.snapshotter]
        for name, archive in archives.items():
            if name not in known:
                namespaces.run(self._pid(role.place), [*tool, "import", *snapshotter, str(archive)])

    def wait_ready(self) -> None:
        """Return when all nodes are ready, with their GPUs, and the namespace and the bucket exist."""
        self.wait_listening(self.roles.values())
        self.wait(f"the namespace {NAMESPACE}", self._has_namespace)
        self.wait_nodes(self.record.shape.nodes)
        self.wait("the S3 server", lambda: object_store.make_bucket(self.configuration.s3_url, BUCKET))

    def _has_namespace(self) -> bool:
        """Make the namespace, with the rights of the user and of masters; return whether pods can be made there."""
        group, namespace = "rbac.authorization.k8s.io", f"/api/v1/namespaces/{NAMESPACE}"
        binding = {
            "metadata": {"name": "user"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": USER}],
        }
        places = {
            "ServiceAccount": f"{namespace}/serviceaccounts",
            "Role": f"/apis/{group}/v1/namespaces/{NAMESPACE}/roles",
            "RoleBinding": f"/apis/{group}/v1/namespaces/{NAMESPACE}/rolebindings",
        }
        try:
            self.api.ensure("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            self.api.ensure(places["RoleBinding"], binding)
            for entry in access.manifest(NAMESPACE):
                self.api.ensure(places[entry["kind"]], entry)
            # Controllers fill the role, which is the sum of others, and make the account and the authority's copy.
            rules = self.api.get(f"/apis/{group}/v1/clusterroles/edit").get("rules")
            for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
                self.api.get(f"{namespace}/{path}")
        except (OSError, http.client.HTTPException, ValueError):
            return False
        return bool(rules)

    def wait_nodes(self, count: int) -> None:
        """Return when exactly `count` nodes are ready, each with its GPUs."""

        def ready() -> bool:
            nodes = self.api.ready_nodes()
            for node in nodes:
                self._offer_gpus(node["metadata"]["name"], node["status"].get("allocatable", {}))
            return len(nodes) == count

        self.wait(f"a cluster with {count} nodes", ready)

    def _offer_gpus(self, node: str, allocatable: Mapping[str, str]) -> None:
        """Let a node say that it has GPUs, as a device plugin would. A kubelet that starts again takes them back."""
        gpus = str(self.record.shape.gpus)
        if allocatable.get(GPU, "0") != gpus:
            offered = {"capacity": {GPU: gpus}, "allocatable": {GPU: gpus}}
            try:
                self.api.merge(f"/api/v1/nodes/{node}/status", {"status": offered})
            except (OSError, http.client.HTTPException):
                return

    def stop(self, names: Sequence[str], number: int = signals.SIGTERM) -> None:
        """Signal these processes together and wait until they have ended. When the first process of a set of namespaces
        ends, every other process in there ends, including pods, as when a machine loses its power."""
        inside = [role.name for role in self.roles.values() if role.place in names]
        process.stop(filter(None, (self.alive(name) for name in names if name not in inside)), number)
        process.wait_ended(list(filter(None, map(self.alive, inside))), _ENDED_LIMIT_S)
        for name in {*names, *inside}:
            self._note(name, None)

    def stop_all(self, progress: Notice = no_notice) -> None:
        """End all processes, and remove the resources that they held outside their namespaces."""
        self.stop([role.name for role in self.roles.values() if role.holds or role.name == S3], signals.SIGKILL)
        network.disconnect(self.record.network.leg)
        namespaces.remove_cgroups(self.configuration.group)
