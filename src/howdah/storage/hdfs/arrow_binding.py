"""HDFS through pyarrow and libhdfs, which start a JVM in this process: for encryption zones.

HOWDAH_HDFS_CLIENT=pyarrow chooses it. Hadoop's libhdfs.so and its jars must be here; howdah brings neither.
"""

from __future__ import annotations

import os
from typing import Any

from howdah.errors import SpecError, StagingError
from howdah.spec import uris
from howdah.storage.filesystem import Entry
from howdah.storage.fsspec_adapter import FsspecFileSystem

VARIABLE = "HOWDAH_HDFS_CLIENT"
CLIENTS = ("hdfs-native", "pyarrow")


def chosen() -> bool:
    """Whether the user wants it.

    Raises:
        SpecError: he wants something that there is not.
    """
    client = os.environ.get(VARIABLE) or CLIENTS[0]
    if client not in CLIENTS:
        raise SpecError.at(VARIABLE, f"{client!r} is neither hdfs-native nor pyarrow")
    return client == "pyarrow"


class ArrowHdfsFileSystem(FsspecFileSystem):
    """One cluster. A file that is replaced is away for a moment, for libhdfs can't rename over one."""

    def __init__(self, root: str, fs: Any = None) -> None:
        self.root = root
        super().__init__(root, fs or _connected(root))

    def _entry(self, info: dict[str, Any]) -> Entry:
        found = super()._entry({**info, "name": uris.path(str(info["name"]))})
        return Entry(self.root + uris.path(str(info["name"])), found.size, found.modified_ms, found.is_dir)

    def chmod(self, uri: str, mode: int) -> None:
        """Nothing: pyarrow knows no such call."""


def wrapped(fs: Any) -> Any:
    """A file system of pyarrow in fsspec's form, which takes names letter by letter, whatever is in them."""
    from fsspec.implementations.arrow import ArrowFSWrapper

    class Wrapper(ArrowFSWrapper):  # type: ignore[misc]
        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return uris.path(path)

    return Wrapper(fs)


def _connected(root: str) -> Any:
    host, _, port = uris.split(root)[1].partition(":")
    try:
        from pyarrow.fs import HadoopFileSystem

        user = os.environ.get("HADOOP_USER_NAME") or None
        return wrapped(HadoopFileSystem(host or "default", int(port or 0), user=user))
    except ImportError as error:
        raise StagingError(f"{root}: {VARIABLE} is pyarrow, which is not installed here ({error})") from error
    except OSError as error:
        reason = str(error).strip().splitlines()[0]
        raise StagingError(
            f"{root}: pyarrow can't start libhdfs: {reason}. It needs Hadoop's libhdfs.so (HADOOP_HOME or"
            " ARROW_LIBHDFS_DIR), JAVA_HOME, and CLASSPATH as `hadoop classpath --glob` prints it"
        ) from error
