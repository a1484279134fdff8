"""The doctor's checks of Kubernetes: the API server, the namespace, the masters' service account, the home."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from howdah.cli.findings import Finding, fail, guarded, ok, warn
from howdah.cli.i18n import _
from howdah.config.extras import how_to_install
from howdah.config.settings import Settings
from howdah.engines.kubernetes import access
from howdah.engines.kubernetes.api import ApiRefused, KubernetesApi
from howdah.errors import HowdahError
from howdah.spec import uris
from howdah.storage.factory import filesystem


def checks(settings: Settings) -> Iterator[Finding]:
    """Yield the checks; a check is left out if one on which it depends has failed."""
    try:
        api = KubernetesApi.of_settings(settings.values)
    except HowdahError as error:
        yield fail("kubeconfig", str(error), _("copy a kubeconfig of the cluster to ~/.kube/config"))
        return
    try:
        version, where = str(api.get("/version")["gitVersion"]), api.cluster
        yield ok(
            "Kubernetes",
            _("{version} at {server}, context {context}", version=version, server=where.server, context=where.name),
        )
    except HowdahError as error:
        yield fail("Kubernetes", str(error), _("check that your credentials are valid: `kubectl get pods`"))
        return
    yield from guarded(_("namespace"), lambda: _rights(api))
    yield from guarded(_("service account"), lambda: _account(api, settings["kubernetes.service_account"]))
    yield from guarded(_("image"), lambda: _image(settings))
    yield from guarded(_("home"), lambda: _home(settings))


def _rights(api: KubernetesApi) -> Iterator[Finding]:
    """Check that the user may do in the namespace what submitting needs."""
    missing = []
    wanted = (
        ("batch", "jobs", "create"),
        ("", "pods", "list"),
        ("", "secrets", "create"),
        ("", "configmaps", "create"),
    )
    for group, kind, verb in wanted:
        about = {"namespace": api.namespace, "group": group, "resource": kind, "verb": verb}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        asked = {**review, "spec": {"resourceAttributes": about}}
        if not api.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", asked)["status"]["allowed"]:
            missing.append(f"{verb} {kind}")
    if missing:
        text = _("you may not {what} in the namespace {namespace}", what=", ".join(missing), namespace=api.namespace)
        yield fail(_("namespace"), text, _("ask for the cluster role `edit` in this namespace"))
    else:
        yield ok(_("namespace"), api.namespace)


def _account(api: KubernetesApi, account: str) -> Iterator[Finding]:
    name = _("service account")
    advice = f"python -m howdah.engines.kubernetes.access {api.namespace} {account} | kubectl apply -f -"
    if api.find(api.path("serviceaccounts", account)) is None:
        text = _("{account} does not exist in {namespace}", account=account, namespace=api.namespace)
        yield fail(name, text, advice)
        return
    subject = f"system:serviceaccount:{api.namespace}:{account}"
    path = f"/apis/authorization.k8s.io/v1/namespaces/{api.namespace}/localsubjectaccessreviews"
    missing = []
    try:
        for group, kind, verbs in access.RULES:
            for verb in verbs:
                about = {"namespace": api.namespace, "group": group, "resource": kind, "verb": verb}
                review = {"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview"}
                metadata = {"namespace": api.namespace}
                asked = {**review, "metadata": metadata, "spec": {"user": subject, "resourceAttributes": about}}
                if not api.call("POST", path, asked)["status"]["allowed"]:
                    missing.append(f"{verb} {kind}")
    except ApiRefused:
        yield ok(name, _("{account}; only an administrator can see its rights", account=account))
        return
    if missing:
        yield fail(name, _("{account} may not {what}", account=account, what=", ".join(missing)), advice)
    else:
        yield ok(name, account)


def _image(settings: Settings) -> Iterator[Finding]:
    image = settings["kubernetes.image"]
    if image:
        yield ok(_("image"), image)
    else:
        advice = _("howdah config set kubernetes.image IMAGE, one that has Python 3.10 or newer")
        yield warn(_("image"), _("none is set: each job has to name one"), advice)


def _home(settings: Settings) -> Iterator[Finding]:
    """Check that this machine can write to the directory of jobs."""
    from howdah.client.engine_registry import engine

    try:
        opened = engine(settings)
    except HowdahError as error:
        yield fail("howdah[kubernetes]", str(error), how_to_install("kubernetes"))
        return
    home = opened.home
    probe = uris.join(home, f".doctor-{uuid.uuid4().hex[:8]}")
    files = filesystem(home)
    files.mkdirs(home, 0o700)
    files.write_bytes(probe, b"")
    files.delete(probe)
    if home.startswith("file:") and not opened.sees(uris.path(home)):
        text = _("{home} is on this machine, and no pod mounts it", home=home)
        yield fail(_("home"), text, "howdah config set kubernetes.volumes …")
    else:
        yield ok(_("home"), home)
