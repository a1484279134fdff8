"""The sandbox of Kubernetes: its daemons, with a kubelet and a containerd for each node, on this machine."""

from __future__ import annotations

import os
import shutil
import signal as signals
import subprocess
from dataclasses import replace
from pathlib import Path

from howdah.errors import EngineUnavailable, SpecError, StagingError
from howdah.localfiles.own_directories import state_directory
from howdah.sandbox.daemon_sandbox import DaemonSandbox
from howdah.sandbox.install import apt_install
from howdah.sandbox.kubernetes import build, images, namespaces, network, object_store
from howdah.sandbox.kubernetes.api import AdminApi
from howdah.sandbox.kubernetes.daemons import KubernetesDaemons, identity
from howdah.sandbox.kubernetes.record import KubernetesRecord
from howdah.sandbox.kubernetes.roles import CONTROL
from howdah.sandbox.kubernetes.shape import KubernetesShape, validate
from howdah.storage.content_cache import local_directory
from howdah.storage.progress import Notice, no_notice

_PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "ip": "iproute2",
    "openssl": "openssl",
    "unshare": "util-linux",
    "nsenter": "util-linux",
}
"""The programs that the sandbox runs beside Kubernetes itself, each with its Debian package."""
_HIDDEN = ("/run", "/var/lib", "/var/log", "/proc", "/sys")
"""Directories that each node has for itself."""
_GONE_LIMIT_S = 10.0


def default_run_dir() -> Path:
    return state_directory(os.environ) / "sandbox-kubernetes"


class KubernetesSandbox(DaemonSandbox[KubernetesDaemons]):
    """A Kubernetes of `nodes` nodes, each a kubelet with containerd in namespaces of its own, and an S3 server.

    A node offers `memory_mib`, `vcores` and `gpus`, whatever this machine has; the GPUs are counted, not real. A node
    whose kubelet is silent for `expiry_s` is lost. `cache` is the directory for the daemons and images.
    It needs root.
    """

    OPTION = "--kubernetes"

    def __init__(
        self,
        run_dir: Path | None = None,
        nodes: int = 2,
        *,
        memory_mib: int = 8192,
        vcores: int = 8,
        gpus: int = 4,
        expiry_s: int = 15,
        cache: Path | None = None,
    ) -> None:
        shape = KubernetesShape(nodes=nodes, memory_mib=memory_mib, vcores=vcores, gpus=gpus, expiry_s=expiry_s)
        super().__init__(run_dir or default_run_dir(), validate(shape))
        self.cache = cache or local_directory()

    @classmethod
    def open(cls, run_dir: Path | None = None) -> KubernetesSandbox | None:
        """Return the sandbox in a run directory (by default the default one), up or down; None if there is none."""
        known = KubernetesRecord.load(run_dir or default_run_dir())
        return cls(run_dir, **vars(known.shape)) if known else None

    @property
    def version(self) -> str:
        """Return the version of Kubernetes."""
        return build.VERSION

    @property
    def kubeconfig(self) -> Path:
        """Return the kubeconfig of an ordinary user, who may use one namespace."""
        return Path(self.client()["kubeconfig"])

    @property
    def admin_kubeconfig(self) -> Path:
        """Return the kubeconfig of the cluster's administrator."""
        return Path(self.client()["admin_kubeconfig"])

    @property
    def shared_dir(self) -> Path:
        """Return the directory that all nodes and this machine see at the same path: pods mount it by hostPath."""
        return Path(self.client()["shared_dir"])

    def client(self) -> dict[str, str]:
        """Return the facts for clients: kubeconfig, admin_kubeconfig, namespace, image, shared_dir, s3_endpoint,
        s3_bucket, aws_config_file, aws_shared_credentials_file."""
        return self._loaded().client()

    def settings(self) -> dict[str, str]:
        """Return the settings with which jobs run here, such as `kubernetes.home`."""
        return self._loaded().settings()

    def api(self) -> AdminApi:
        """Return the apiserver's API, as its administrator sees it."""
        return self._loaded().api

    def env(self) -> dict[str, str]:
        """Return the variables that a client's environment needs: the cluster's and the S3 server's."""
        known = self.client()
        return {
            "KUBECONFIG": known["kubeconfig"],
            "AWS_CONFIG_FILE": known["aws_config_file"],
            "AWS_SHARED_CREDENTIALS_FILE": known["aws_shared_credentials_file"],
            "AWS_ENDPOINT_URL": known["s3_endpoint"],
        }

    def up(self, progress: Notice = no_notice) -> None:
        self._require_root()
        super().up(progress)

    def _summary(self, daemons: KubernetesDaemons) -> str:
        return f"Kubernetes {self.version}, {self.shape.nodes} nodes, apiserver at {daemons.configuration.server}"

    def _remove_data(self) -> None:
        _empty(self.run_dir)
        super()._remove_data()

    def start(self, name: str) -> None:
        """Start one daemon unless it runs; for a node, start all its daemons. Return when it listens."""
        daemons = self._loaded()
        role = daemons.role(name)
        wanted = [role, *(other for other in daemons.roles.values() if other.place == name)]
        daemons.start([each for each in wanted if not daemons.alive(each.name)])
        daemons.wait_listening(wanted)

    def stop(self, name: str, signal: int = signals.SIGTERM) -> None:
        """Signal one daemon and wait until it has ended. The daemon "node1" is the first node itself: all its processes
        end, pods too. After SIGKILL to a kubelet or to containerd, pods run on."""
        super().stop(name, signal)

    def wait_nodes(self, count: int) -> None:
        """Return when exactly `count` nodes are ready.

        Raises:
            EngineUnavailable: they are not ready within the limit, or a daemon has ended.
        """
        self._loaded().wait_nodes(count)

    def _load(self) -> KubernetesDaemons | None:
        record = KubernetesRecord.load(self.run_dir)
        return KubernetesDaemons(self.run_dir, record, self.cache) if record else None

    def _require_root(self) -> None:
        if os.geteuid() != 0:
            raise EngineUnavailable("a Kubernetes sandbox needs root: its nodes mount file systems and make networks")
        for hidden in _HIDDEN:
            if self.run_dir.is_relative_to(hidden):
                problem = f"{self.run_dir} is below {hidden}, of which each node has its own: set HOWDAH_HOME"
                raise SpecError.at("run_dir", problem)

    def _load_kept(self) -> KubernetesDaemons | None:
        """Return the daemons of a sandbox that runs here at least in part, or that was killed or kept: it then
        continues with its data.

        Raises:
            SpecError: a sandbox of another shape runs here.
        """
        daemons = self._load()
        if daemons is None:
            return None
        if daemons.alive(CONTROL):
            self._require_shape(daemons)
            return daemons
        daemons.stop_all()  # nodes without a network are of no use
        known = daemons.record
        same = (known.shape, known.version) == (self.shape, build.VERSION)
        return daemons if same and Path(known.binaries).is_dir() and network.is_free(known.network) else None

    def _prepare(self, progress: Notice) -> KubernetesDaemons:
        missing = {package for program, package in _PROGRAMS.items() if not _has(program)}
        if missing:
            apt_install(f"a Kubernetes sandbox runs {', '.join(sorted(missing))}", sorted(missing), progress)
        self.cache.mkdir(parents=True, exist_ok=True)
        binaries = build.binaries(self.cache, progress)
        s3_packages = object_store.packages(self.cache, progress)
        images.python_image(self.cache)
        _empty(self.run_dir)
        (self.run_dir / "log").mkdir()
        images.write_pause(self.run_dir / "pause.tar", binaries / build.PAUSE)
        addresses = network.choose(f"hwd{identity(self.run_dir)}")
        prepared = KubernetesRecord(build.VERSION, self.shape, addresses, str(binaries), s3_packages)
        daemons = KubernetesDaemons(self.run_dir, prepared, self.cache)
        daemons.configuration.write()
        daemons.record = replace(prepared, client=daemons.client(), settings=daemons.settings())
        daemons.record.save(self.run_dir)
        return daemons


def _has(program: str) -> bool:
    return shutil.which(program, path=namespaces.search_path()) is not None


def _empty(run_dir: Path) -> None:
    """Remove everything in a run directory except its lock. File systems that are mounted there are not touched."""
    for point in reversed(namespaces.mounts_below(run_dir)):
        subprocess.run(["umount", "--lazy", point], capture_output=True, timeout=_GONE_LIMIT_S)
    left = namespaces.mounts_below(run_dir)
    if left:
        raise StagingError(f"{left[0]} is mounted and cannot be unmounted: nothing in {run_dir} was removed")
    for entry in run_dir.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != "lock":
            entry.unlink()
