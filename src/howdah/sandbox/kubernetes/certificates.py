"""Makes the certificates of a sandbox's authority, daemons and users, and their kubeconfigs, by openssl.

In Kubernetes a client certificate's common name is the user, and its organisations are the groups.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from howdah.errors import EngineUnavailable

AUTHORITY = "ca"
SERVICE_ACCOUNTS = "service-accounts"
"""The name of the key pair that signs the tokens of service accounts."""
CONTEXT = "howdah-sandbox"

_LIMIT_S = 30
_DAYS = "3650"
_CONFIGURATION = """[req]
distinguished_name = name
prompt = no
[name]
CN = howdah-sandbox
[authority]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign, digitalSignature
subjectKeyIdentifier = hash
"""


class Certificates:
    """The keys and certificates in one directory, which only its owner may enter."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def certificate(self, name: str = AUTHORITY) -> Path:
        return self.directory / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.directory / f"{name}.key"

    def make_authority(self) -> None:
        """Make the directory, the authority that signs all other certificates, and the service accounts' keys."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.directory / "openssl.cnf").write_text(_CONFIGURATION)
        key, certificate = str(self.key(AUTHORITY)), str(self.certificate())
        self._make_key(AUTHORITY)
        request = ["req", "-x509", "-new", "-config", "openssl.cnf", "-extensions", "authority"]
        self._openssl(*request, "-key", key, "-days", _DAYS, "-out", certificate)
        self._make_key(SERVICE_ACCOUNTS)
        public = str(self.certificate(SERVICE_ACCOUNTS).with_suffix(".pub"))
        self._openssl("pkey", "-in", str(self.key(SERVICE_ACCOUNTS)), "-pubout", "-out", public)

    def make(self, name: str, user: str, groups: Sequence[str] = (), addresses: Sequence[str] = ()) -> None:
        """Make a key and a certificate for `user`; with `addresses` (IP addresses and host names) it is a server's
        too."""
        self._make_key(name)
        request, extensions = self.directory / f"{name}.csr", self.directory / f"{name}.ext"
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        signing = ["-key", str(self.key(name)), "-subj", subject, "-out", str(request)]
        self._openssl("req", "-new", "-config", "openssl.cnf", *signing)
        names = [f"{'IP' if part.replace('.', '').isdigit() else 'DNS'}:{part}" for part in addresses]
        uses = "clientAuth, serverAuth" if names else "clientAuth"
        lines = ["basicConstraints = CA:false", f"extendedKeyUsage = {uses}", "keyUsage = critical, digitalSignature"]
        lines += [f"subjectAltName = {', '.join(names)}"] if names else []
        extensions.write_text("\n".join(lines) + "\n")
        signer = ["-CA", str(self.certificate()), "-CAkey", str(self.key(AUTHORITY)), "-CAcreateserial"]
        details = ["-days", _DAYS, "-extfile", str(extensions), "-out", str(self.certificate(name))]
        self._openssl("x509", "-req", "-in", str(request), *signer, *details)

    def write_kubeconfig(self, path: Path, name: str, server: str, namespace: str = "default") -> None:
        """Write the kubeconfig of the certificate `name`. It holds the key, so that only its owner may read it."""
        cluster = {"server": server, "certificate-authority-data": _encoded(self.certificate())}
        user = {
            "client-certificate-data": _encoded(self.certificate(name)),
            "client-key-data": _encoded(self.key(name)),
        }
        context = {"cluster": CONTEXT, "user": name, "namespace": namespace}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": CONTEXT, "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": CONTEXT, "context": context}],
            "current-context": CONTEXT,
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(document, indent=1) + "\n")  # JSON is YAML

    def _make_key(self, name: str) -> None:
        self.key(name).touch(mode=0o600)
        curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
        self._openssl("genpkey", *curve, "-out", str(self.key(name)))

    def _openssl(self, *arguments: str) -> None:
        command = ["openssl", *arguments]
        done = subprocess.run(command, cwd=self.directory, capture_output=True, text=True, timeout=_LIMIT_S)
        if done.returncode:
            raise EngineUnavailable(f"`{' '.join(command[:3])} …` failed: {done.stderr.strip()[-300:]}")


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
