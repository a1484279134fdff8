"""Writes the objects that an administrator installs once in a namespace: the masters' service account, with the least
rights.

python -m howdah.engines.kubernetes.access NAMESPACE | kubectl apply -f -
"""

from __future__ import annotations

import json
import sys
from typing import Any

ACCOUNT = "howdah-master"
GROUP = "rbac.authorization.k8s.io"
RULES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("", "pods", ("create", "list", "watch", "delete")),
    ("", "secrets", ("create", "delete")),
    ("batch", "jobs", ("get",)),
)
"""The rights of a master in its namespace: API group, kind, and verbs. It reads no secret; from its Job it learns why
it ends."""


def manifest(namespace: str, account: str = ACCOUNT) -> list[dict[str, Any]]:
    """Return the service account, its role, and the binding between them."""
    about = {"name": account, "namespace": namespace}
    subject = {"kind": "ServiceAccount", **about}
    rules = [{"apiGroups": [group], "resources": [kind], "verbs": list(verbs)} for group, kind, verbs in RULES]
    role = {"apiGroup": GROUP, "kind": "Role", "name": account}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about},
        {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": about, "rules": rules},
        {"apiVersion": f"{GROUP}/v1", "kind": "RoleBinding", "metadata": about, "roleRef": role, "subjects": [subject]},
    ]


if __name__ == "__main__":
    listed = {"apiVersion": "v1", "kind": "List", "items": manifest(*sys.argv[1:3] or ["default"])}
    print(json.dumps(listed, indent=1))
