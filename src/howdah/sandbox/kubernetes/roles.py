"""Describes the daemons of a Kubernetes sandbox: their command lines, their configuration files and where they run.

Each set of namespaces has addresses of its own, so that the daemons listen at the ports that they always have.
"""

from __future__ import annotations

import json
from pathlib import Path

from howdah.sandbox.daemons import DaemonRole
from howdah.sandbox.kubernetes.api import ADMIN
from howdah.sandbox.kubernetes.certificates import SERVICE_ACCOUNTS, Certificates
from howdah.sandbox.kubernetes.images import PAUSE_IMAGE
from howdah.sandbox.kubernetes.network import Network
from howdah.sandbox.kubernetes.shape import KubernetesShape
from howdah.spec.values import dataclass

CONTROL = "control"
S3 = "s3"
S3_PORT = 9000
BUCKET = "howdah"
NAMESPACE = "howdah"
USER = "howdah"
"""The user of the kubeconfig, who has the rights of the cluster role `edit` in NAMESPACE, and none elsewhere."""

_ISSUER = "https://kubernetes.default.svc"
_EVICTION_S = 5
"""Seconds after the loss of a node before its pods are deleted; Kubernetes' default is 300."""


@dataclass(frozen=True, kw_only=True)
class KubernetesRole(DaemonRole):
    """Describes one process of the sandbox."""

    place: str = ""
    """The name of the process in whose namespaces it runs; "" for this machine's."""
    holds: bool = False
    """Whether it is the first process of namespaces, with no other work."""
    node: int = 0
    """The number of its node, from 1; 0 for processes of the control plane and of this machine."""


def node_name(number: int) -> str:
    return f"node{number}"


def roles(shape: KubernetesShape, network: Network) -> list[KubernetesRole]:
    """Return the processes of this shape in the order in which they are started."""
    control = network.control
    return [
        KubernetesRole(CONTROL, "namespaces", holds=True),
        KubernetesRole("etcd", "etcd", place=CONTROL),
        KubernetesRole("apiserver", "kube-apiserver", f"{control}:443", place=CONTROL),
        KubernetesRole("controllers", "kube-controller-manager", f"{control}:10257", place=CONTROL),
        KubernetesRole("scheduler", "kube-scheduler", f"{control}:10259", place=CONTROL),
        *(role for number in range(1, shape.nodes + 1) for role in _node_roles(number, network)),
        KubernetesRole(S3, "S3 server", f"{network.machine}:{S3_PORT}"),
    ]


def _node_roles(number: int, network: Network) -> list[KubernetesRole]:
    name, address = node_name(number), network.node(number)
    return [
        KubernetesRole(name, "namespaces", holds=True, node=number),
        KubernetesRole(f"{name}-containerd", "containerd", place=name, node=number),
        KubernetesRole(f"{name}-kubelet", "kubelet", f"{address}:10250", place=name, node=number),
    ]


@dataclass(frozen=True)
class KubernetesConfiguration:
    """The files and command lines of one sandbox, in its run directory."""

    run: Path
    """The run directory."""
    binaries: Path
    """The directory of Kubernetes' daemons."""
    shape: KubernetesShape
    """What the user asked for."""
    network: Network
    """The addresses."""
    group: str
    """The start of the names of the nodes' cgroups."""

    @property
    def certificates(self) -> Certificates:
        """Return the certificates and keys of the daemons and users."""
        return Certificates(self.run / "certificates")

    @property
    def server(self) -> str:
        """Return the apiserver's URL."""
        return f"https://{self.network.control}"

    @property
    def kubeconfig(self) -> Path:
        """Return the path of the user's kubeconfig."""
        return self.run / "kubeconfig"

    @property
    def admin_kubeconfig(self) -> Path:
        """Return the path of the administrator's kubeconfig."""
        return self.run / "admin.kubeconfig"

    @property
    def shared(self) -> Path:
        """Return the directory that all nodes and this machine see at the same path."""
        return self.run / "shared"

    @property
    def snapshotter(self) -> str:
        """Return the way in which containerd makes a file system from an image's layers: overlayfs, if possible."""
        return "native" if _is_overlay(self.run) else "overlayfs"

    def data(self, number: int) -> Path:
        """Return the directory of a node's own files."""
        return self.run / node_name(number)

    def write(self) -> None:
        """Write all certificates, kubeconfigs and configuration files."""
        made, network = self.certificates, self.network
        made.make_authority()
        servers = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"]
        made.make("apiserver", "apiserver", (), [*servers, network.control, network.apiserver_service, "127.0.0.1"])
        made.make("apiserver-to-kubelet", "apiserver", ["system:masters"])
        made.make(ADMIN, ADMIN, ["system:masters"])
        made.make("controllers", "system:kube-controller-manager")
        made.make("scheduler", "system:kube-scheduler")
        made.make(USER, USER, ["howdah-users"])
        for name in ("controllers", "scheduler"):
            made.write_kubeconfig(self.run / f"{name}.kubeconfig", name, self.server)
        made.write_kubeconfig(self.admin_kubeconfig, ADMIN, self.server)
        made.write_kubeconfig(self.kubeconfig, USER, self.server, NAMESPACE)
        self.shared.mkdir(exist_ok=True)
        self.shared.chmod(0o1777)
        for number in range(1, self.shape.nodes + 1):
            self._write_node(number)
        self._write_s3()

    def _write_node(self, number: int) -> None:
        name, data = node_name(number), self.data(number)
        data.mkdir(exist_ok=True)
        address = self.network.node(number)
        self.certificates.make(name, f"system:node:{name}", ["system:nodes"], [name, address])
        self.certificates.write_kubeconfig(data / "kubeconfig", name, self.server)
        (data / "kubelet.json").write_text(json.dumps(self._kubelet(number), indent=1) + "\n")
        (data / "containerd.toml").write_text(self._containerd(data))
        (data / "cni").mkdir(exist_ok=True)
        (data / "cni" / "pods.conflist").write_text(json.dumps(self._pod_network(number), indent=1) + "\n")

    def _write_s3(self) -> None:
        (self.run / "aws-config").write_text(f"[default]\nregion = us-east-1\nendpoint_url = {self.s3_url}\n")
        credentials = self.run / "aws-credentials"
        credentials.touch(mode=0o600)
        credentials.write_text("[default]\naws_access_key_id = howdah\naws_secret_access_key = howdah-sandbox\n")

    @property
    def s3_url(self) -> str:
        """Return the URL of the S3 server."""
        return f"http://{self.network.machine}:{S3_PORT}"

    def command(self, role: KubernetesRole) -> list[str]:
        """Return the command line of a daemon of the control plane or of a node."""
        if role.title == "containerd":
            return ["containerd", "--config", str(self.data(role.node) / "containerd.toml")]
        options = {
            "etcd": self._etcd,
            "kube-apiserver": self._apiserver,
            "kube-controller-manager": self._controllers,
            "kube-scheduler": self._scheduler,
        }
        found = options[role.title]() if role.title in options else self._kubelet_options(role.node)
        return [str(self.binaries / role.title), *(f"--{name}={value}" for name, value in found.items())]

    def _etcd(self) -> dict[str, object]:
        client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
        return {
            "data-dir": self.run / "etcd",
            "unsafe-no-fsync": "true",  # the data need not outlive this machine's power
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
        }

    def _apiserver(self) -> dict[str, object]:
        made = self.certificates
        return {
            "etcd-servers": "http://127.0.0.1:2379",
            "bind-address": "0.0.0.0",  # noqa: S104 - all addresses of a network namespace that only the sandbox reaches
            # The service's own port: its address is one of the control plane's.
            "secure-port": 443,
            "advertise-address": self.network.control,
            "cert-dir": self.run / "certificates",
            "tls-cert-file": made.certificate("apiserver"),
            "tls-private-key-file": made.key("apiserver"),
            "client-ca-file": made.certificate(),
            "kubelet-client-certificate": made.certificate("apiserver-to-kubelet"),
            "kubelet-client-key": made.key("apiserver-to-kubelet"),
            "kubelet-certificate-authority": made.certificate(),
            "kubelet-preferred-address-types": "InternalIP",
            "service-account-issuer": _ISSUER,
            "service-account-key-file": made.certificate(SERVICE_ACCOUNTS).with_suffix(".pub"),
            "service-account-signing-key-file": made.key(SERVICE_ACCOUNTS),
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "service-cluster-ip-range": self.network.services,
            "allow-privileged": "true",
            "default-not-ready-toleration-seconds": _EVICTION_S,
            "default-unreachable-toleration-seconds": _EVICTION_S,
        }

    def _controllers(self) -> dict[str, object]:
        made = self.certificates
        kubeconfig = self.run / "controllers.kubeconfig"
        return {
            "kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "leader-elect": "false",
            "root-ca-file": made.certificate(),
            "service-account-private-key-file": made.key(SERVICE_ACCOUNTS),
            "use-service-account-credentials": "true",
            "node-monitor-period": "2s",
            "node-monitor-grace-period": f"{self.shape.expiry_s}s",
            "cert-dir": self.run / "certificates" / "controllers",
        }

    def _scheduler(self) -> dict[str, object]:
        kubeconfig = self.run / "scheduler.kubeconfig"
        return {
            "kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "leader-elect": "false",
            "cert-dir": self.run / "certificates" / "scheduler",
        }

    def _kubelet_options(self, number: int) -> dict[str, object]:
        data = self.data(number)
        return {
            "config": data / "kubelet.json",
            "kubeconfig": data / "kubeconfig",
            "hostname-override": node_name(number),
            "node-ip": self.network.node(number),
        }

    def _kubelet(self, number: int) -> dict[str, object]:
        name, made = node_name(number), self.certificates
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.network.node(number),
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(made.certificate())},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(made.certificate(name)),
            "tlsPrivateKeyFile": str(made.key(name)),
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.group}{name}",
            "failCgroupV1": False,
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            # Where root may not lower a process's score, the kubelet would not start.
            "oomScoreAdj": 0,
            "makeIPTablesUtilChains": False,
            "resolvConf": "",
            # A node's memory is what the shape says, while its use is counted on the whole machine.
            "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%", "nodefs.inodesFree": "1%"},
            # There is no registry to fetch an image from again.
            "imageGCHighThresholdPercent": 100,
            "imageMinimumGCAge": "87600h",
            "nodeStatusUpdateFrequency": "2s",
            "nodeLeaseDurationSeconds": 10,
            "syncFrequency": "5s",
            "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        }

    def _containerd(self, data: Path) -> str:
        cri = "io.containerd.grpc.v1.cri"
        return f"""version = 2
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs"]
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."{cri}"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."{cri}".containerd]
    snapshotter = "{self.snapshotter}"
    [plugins."{cri}".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."{cri}".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."{cri}".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{data}/cni"
"""

    def _pod_network(self, number: int) -> dict[str, object]:
        ranges = [[{"subnet": self.network.pods(number)}]]
        ipam = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
        bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "ipMasq": False, "ipam": ipam}
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}


def _is_overlay(directory: Path) -> bool:
    """Return whether a directory is on overlayfs, which cannot hold the upper directories of another one."""
    best, kind = Path("/"), ""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point, found = Path(line.split()[4]), line.partition(" - ")[2].split()[0]
        if directory.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, kind = point, found
    return kind == "overlay"
