"""Reaches HDFS through pyarrow and libhdfs, which start a JVM in this process; encryption zones need that.

HOWDAH_HDFS_CLIENT=pyarrow chooses it. The machine must have Hadoop's libhdfs.so and its jars; howdah has neither.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from howdah.errors import SpecError, StagingError
from howdah.spec import uris
from howdah.storage.filesystem import Entry
from howdah.storage.fsspec_adapter import FsspecFileSystem

VARIABLE = "HOWDAH_HDFS_CLIENT"
CLIENTS = ("hdfs-native", "pyarrow")


def is_pyarrow_chosen() -> bool:
    """Return whether the user has chosen pyarrow.

    Raises:
        SpecError: the user has chosen an unknown client.
    """
    client = os.environ.get(VARIABLE) or CLIENTS[0]
    if client not in CLIENTS:
        raise SpecError.at(VARIABLE, f"{client!r} is neither hdfs-native nor pyarrow")
    return client == "pyarrow"


class ArrowHdfsFileSystem(FsspecFileSystem):
    """One cluster. A file that is replaced is missing for a moment, because libhdfs cannot rename over a file."""

    def __init__(self, root: str, fs: Any = None) -> None:
        self.root = root
        super().__init__(root, fs or _connect(root))

    def _entry(self, info: dict[str, Any]) -> Entry:
        path = uris.path(str(info["name"]))
        return dataclasses.replace(super()._entry({**info, "name": path}), uri=self.root + path)

    def chmod(self, uri: str, mode: int) -> None:
        """Do nothing: pyarrow has no such call."""


def wrap_for_fsspec(fs: Any) -> Any:
    """Wrap a file system of pyarrow for fsspec, so that special letters in names mean nothing."""
    from fsspec.implementations.arrow import ArrowFSWrapper

    class Wrapper(ArrowFSWrapper):  # type: ignore[misc]
        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return uris.path(path)

    return Wrapper(fs)


def _connect(root: str) -> Any:
    host, _, port = uris.split(root)[1].partition(":")
    try:
        from pyarrow.fs import HadoopFileSystem

        user = os.environ.get("HADOOP_USER_NAME") or None
        return wrap_for_fsspec(HadoopFileSystem(host or "default", int(port or 0), user=user))
    except ImportError as error:
        raise StagingError(f"{root}: {VARIABLE} is pyarrow, which is not installed here ({error})") from error
    except OSError as error:
        reason = str(error).strip().splitlines()[0]
        raise StagingError(
            f"{root}: pyarrow can't start libhdfs: {reason}. It needs Hadoop's libhdfs.so (HADOOP_HOME or"
            " ARROW_LIBHDFS_DIR), JAVA_HOME, and CLASSPATH as `hadoop classpath --glob` prints it"
        ) from error
