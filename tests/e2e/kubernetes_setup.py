"""Lets jobs of the tests find a Kubernetes sandbox."""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Iterator

import pytest

from howdah.config.settings import variable_of
from howdah.sandbox import KubernetesSandbox


@contextlib.contextmanager
def settings(kubernetes: KubernetesSandbox) -> Iterator[pytest.MonkeyPatch]:
    """Let the engine find the sandbox. Its pods see this machine's temporary directory, too."""
    values = kubernetes.settings()
    values["kubernetes.volumes"] += ",/tmp"
    with pytest.MonkeyPatch.context() as environment:
        for name, value in values.items():
            environment.setenv(variable_of(name), value)
        yield environment


def machine(kubernetes: KubernetesSandbox) -> str:
    """Return the address by which pods reach this machine."""
    return urllib.parse.urlsplit(kubernetes.client()["s3_endpoint"]).hostname or ""
