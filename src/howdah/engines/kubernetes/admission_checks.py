"""Explains in one line why the cluster refuses a job, and finds quotas into which its gang can never fit."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from howdah.engines.kubernetes.api import ApiRefused, KubernetesApi
from howdah.errors import EngineRejected
from howdah.spec import JobSpec

_UNITS: dict[str, float] = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_UNITS |= {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_KINDS = {"secrets": "Secret", "persistentvolumeclaims": "PersistentVolumeClaim"}
_QUANTITY = re.compile(r"([0-9.]+(?:[eE][-+]?[0-9]+)?)([A-Za-z]*)")


def refusal_text(what: str, error: ApiRefused, api: KubernetesApi) -> str:
    """Return one line about an object, `what`, that the cluster refuses."""
    text = " ".join(str(error).split())
    if error.status == 404 and "namespaces" in text:
        hint = "`howdah config set kubernetes.namespace NAME`"
        return f"there is no namespace {api.namespace!r} on {api.cluster.name}: {hint}"
    if "serviceaccount" in text and "not found" in text:
        return f"{text}; an administrator makes it once: `howdah doctor --on kubernetes` says how"
    return f"the cluster refuses {what}: {text}"


def check_quotas(
    api: KubernetesApi, job: JobSpec, pods: Mapping[str, Mapping[str, Any]], master: Mapping[str, Any]
) -> None:
    """Refuse a job that needs more at once than a quota of the namespace allows: the master with the largest stage of
    the gang, or with one task if there is no gang. `pods` has a pod of each role. Quotas that count only some pods
    (scopes) are left to the cluster.

    Raises:
        EngineRejected: a quota can never be met.
    """
    try:
        quotas = api.get(api.path("resourcequotas"))["items"]
    except ApiRefused:  # not everybody may read them
        return
    at_once = [{role: 1} for role in job.roles]
    if job.gang:
        gang = {name: role.min_replicas or role.replicas for name, role in job.roles.items() if role.command}
        at_once += [{role: gang[role] for role in wave if role in gang} for wave in job.waves]
    wanted: dict[str, float] = {}
    for stage in at_once:
        total = Counter(_amounts(master))
        for role, count in stage.items():
            total.update({name: amount * count for name, amount in _amounts(pods[role]).items()})
        wanted = {name: max(wanted.get(name, 0.0), total[name]) for name in {*wanted, *total}}
    for quota in quotas:
        if quota["spec"].get("scopes") or quota["spec"].get("scopeSelector"):
            continue
        for name, text in (quota["spec"].get("hard") or {}).items():
            if wanted.get(name, 0.0) > quantity(text):
                asked = f"{wanted[name] / 2**20:.0f}Mi" if "memory" in name else f"{wanted[name]:g}"
                where = f"quota {quota['metadata']['name']!r} of the namespace {api.namespace}"
                raise EngineRejected(f"can never run there: its pods need {asked} {name}, {where} allows {text}")


def _amounts(pod: Mapping[str, Any]) -> dict[str, float]:
    """Return the amounts that a pod needs of each resource that a quota may count."""
    (container,) = pod["spec"]["containers"]
    found = {"pods": 1.0, "count/pods": 1.0}
    for kind in ("requests", "limits"):
        found |= {f"{kind}.{name}": quantity(text) for name, text in container["resources"][kind].items()}
    return found | {name: found[f"requests.{name}"] for name in ("cpu", "memory")}


def check_named_objects(api: KubernetesApi, pods: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a job whose pods name a Secret or a claim that does not exist, because the cluster would let them wait for
    ever.

    Raises:
        EngineRejected: there is no such object in the namespace.
    """
    named: dict[tuple[str, str, str], None] = {}
    for spec in (pod["spec"] for pod in pods):
        (container,) = spec["containers"]
        claims = [volume.get("persistentVolumeClaim") for volume in spec["volumes"]]
        named |= {("secrets", each["name"], "kubernetes.image_pull_secrets"): None for each in spec["imagePullSecrets"]}
        variables = [each["secretRef"]["name"] for each in container["envFrom"]]
        named |= {("secrets", name, "kubernetes.environment_secrets"): None for name in variables}
        named |= {
            ("persistentvolumeclaims", each["claimName"], "kubernetes.volumes or a mount"): None
            for each in claims
            if each
        }
    for kind, name, setting in named:
        with contextlib.suppress(ApiRefused):  # not everybody may look
            if api.find(api.path(kind, name)) is None:
                text = f"the namespace {api.namespace} has no {_KINDS[kind]} {name!r}"
                raise EngineRejected(f"{text}, which {setting} names")


def quantity(text: str) -> float:
    """Return the number that a quantity such as `500m` or `8Gi` stands for.

    Raises:
        ValueError: the text is not a quantity.
    """
    found = _QUANTITY.fullmatch(str(text))
    if found is None or found[2] not in _UNITS:
        raise ValueError(f"{text!r} is no quantity")
    return float(found[1]) * _UNITS[found[2]]
