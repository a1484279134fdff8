"""Lets jobs of the tests find a Kubernetes sandbox."""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Iterator

import pytest

from howdah.config.settings import variable_of
from howdah.sandbox import KubernetesSandbox

HOME_SECRET = "s3-home"


@contextlib.contextmanager
def settings(kubernetes: KubernetesSandbox) -> Iterator[pytest.MonkeyPatch]:
    """Let the engine find the sandbox. Its pods see this machine's temporary directory, too."""
    values = kubernetes.settings()
    values["kubernetes.volumes"] += ",/tmp"
    with pytest.MonkeyPatch.context() as environment:
        for name, value in values.items():
            environment.setenv(variable_of(name), value)
        yield environment


@contextlib.contextmanager
def object_store_home(kubernetes: KubernetesSandbox) -> Iterator[str]:
    """Give the home on the sandbox's object store. Pods reach it by a Secret of the namespace, and have no volume."""
    known, secrets = kubernetes.client(), "/api/v1/namespaces/howdah/secrets"
    access = {
        "AWS_ENDPOINT_URL": known["s3_endpoint"],
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "hush",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    home = f"s3://{known['s3_bucket']}/howdah"
    kubernetes.api().create(secrets, {"metadata": {"name": HOME_SECRET}, "stringData": access})
    with settings(kubernetes) as environment:
        for name, value in access.items():
            environment.setenv(name, value)
        environment.delenv("HADOOP_CONF_DIR", raising=False)
        environment.setenv("HOWDAH_KUBERNETES_HOME", home)
        environment.setenv("HOWDAH_KUBERNETES_ENVIRONMENT_SECRETS", HOME_SECRET)
        environment.setenv("HOWDAH_KUBERNETES_VOLUMES", "")
        yield home
    kubernetes.api().delete(f"{secrets}/{HOME_SECRET}")


def machine(kubernetes: KubernetesSandbox) -> str:
    """Return the address by which pods reach this machine."""
    return urllib.parse.urlsplit(kubernetes.client()["s3_endpoint"]).hostname or ""
