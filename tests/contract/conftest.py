"""Provides a real ResourceManager alone, which starts in seconds, and an object store with the protocol of S3."""

from __future__ import annotations

from collections.abc import Iterator

import fsspec
import pytest
from moto.server import ThreadedMotoServer

from howdah.engines.yarn.conf import Configuration, load
from howdah.sandbox import Sandbox


@pytest.fixture(scope="session")
def resourcemanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with Sandbox(tmp_path_factory.mktemp("rm") / "run", nodes=0, hdfs=False, expiry_s=600) as alone:
        yield alone


@pytest.fixture
def configuration(resourcemanager: Sandbox) -> Configuration:
    """Return the configuration with which clients reach the ResourceManager that runs alone."""
    return load(str(resourcemanager.conf_dir))


@pytest.fixture(scope="module")
def s3() -> Iterator[None]:
    """Start an object store with the bucket `howdah`, found by AWS's own variables."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
            environment.setenv("AWS_ACCESS_KEY_ID", "key")
            environment.setenv("AWS_SECRET_ACCESS_KEY", "secret")
            fsspec.get_filesystem_class("s3").clear_instance_cache()  # they know the server of another module
            fsspec.filesystem("s3").makedirs("howdah", exist_ok=True)
            yield
    finally:
        server.stop()
