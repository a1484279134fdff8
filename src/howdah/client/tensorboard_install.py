"""Installs TensorBoard's environment at a place where a job's master finds it, or runs TensorBoard on this machine."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import howdah
from howdah.client.submit import ENVIRONMENT_ARCHIVE, is_seen, packed_environment
from howdah.config.settings import Settings
from howdah.engines import Engine
from howdah.errors import StagingError
from howdah.spec import Environment, JobSpec, Resources, Role, StagedFile, uris
from howdah.spec.codec import encode
from howdah.spec.staged import IMPORT_PATH
from howdah.spec.values import dataclass
from howdah.staging import virtual_environments
from howdah.storage.content_cache import Cache
from howdah.storage.factory import filesystem
from howdah.storage.progress import Notice
from howdah.wire.tensorboard_command import INSTALLED, READY, VARIABLE, argv, link

REQUIREMENTS = Path(__file__).with_name("tensorboard.txt")


def install(engine: Engine, settings: Settings, notice: Notice) -> None:
    """Make TensorBoard's environment, once, and note its location in the engine's home.

    Raises:
        StagingError: the environment can't be made, or there is no room.
        EngineUnavailable: the file system does not answer.
    """
    conf_dir = settings["hadoop_conf_dir"]
    if is_seen(virtual_environments.environment_path(REQUIREMENTS), engine, settings):
        directory = virtual_environments.ensure_environment(REQUIREMENTS, notice) / "bin"
        file = StagedFile(ENVIRONMENT_ARCHIVE, uris.of_local(directory), "directory")
    else:
        file = Cache(engine.home, conf_dir).place(packed_environment(REQUIREMENTS, engine, settings, notice))
        file = replace(file, source="")
    fs, note = filesystem(engine.home, conf_dir), uris.join(engine.home, INSTALLED)
    text = json.dumps(encode(file)).encode()
    if not fs.exists(note) or fs.read_bytes(note) != text:
        fs.mkdirs(engine.home, 0o700)
        fs.write_bytes(note, text, 0o600)


def of_all(engine: Engine, request: Mapping[str, Any]) -> JobSpec:
    """Return a job that runs TensorBoard over all jobs of an engine; `request` is that of `howdah.tensorboard`."""
    whole = {"homes": [engine.home], **request, "host": "0.0.0.0", "title": "howdah"}  # noqa: S104 - a token opens it
    import_paths = (IMPORT_PATH, str(Path(howdah.__file__).parents[1]))
    role = Role(argv("python3", import_paths, whole), resources=Resources(2048), yields={"AT": READY})
    environment = Environment(requirements=str(REQUIREMENTS))
    return JobSpec({"tensorboard": role}, name="tensorboard", framework="board", environment=environment)


@dataclass
class LocalTensorBoard:
    """A TensorBoard on this machine, which ends when no browser has requested it for a while."""

    process: subprocess.Popen[str]
    """The process of TensorBoard."""
    url: str
    """The address that opens TensorBoard without a password."""

    def wait(self) -> None:
        """Wait until TensorBoard has ended."""
        self.process.wait()

    def end(self) -> None:
        """End TensorBoard now."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5.0)
        self.process.kill()


def run_locally(request: Mapping[str, Any], notice: Notice) -> LocalTensorBoard:
    """Start TensorBoard on this machine's loopback; `request` is that of `howdah.tensorboard`.

    Raises:
        StagingError: its environment can't be made, or TensorBoard does not start.
    """
    python = virtual_environments.ensure_environment(REQUIREMENTS, notice) / "bin" / "python"
    token = secrets.token_hex(16)
    import_paths = (str(Path(howdah.__file__).parents[1]), *_libraries())
    command = argv(str(python), import_paths, {**request, "host": "127.0.0.1", "attached": True})
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env={**os.environ, VARIABLE: token}, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if READY in line:
            return LocalTensorBoard(process, link("127.0.0.1", int(line.rpartition(":")[2]), token))
    raise StagingError(f"TensorBoard did not start: it ended with status {process.wait()}")


def _libraries() -> list[str]:
    """Return the directories of the libraries that read HDFS."""
    found = (importlib.util.find_spec(name) for name in ("hdfs_native", "fsspec"))
    return list(dict.fromkeys(str(Path(spec.origin).parents[1]) for spec in found if spec and spec.origin))
