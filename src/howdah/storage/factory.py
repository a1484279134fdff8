"""`filesystem(uri)`: finds the file system of a URI by its scheme.

The libraries of a scheme are imported when that scheme is first asked for.
"""

from __future__ import annotations

from howdah.spec import uris
from howdah.storage.filesystem import FileSystem


def filesystem(uri: str, conf_dir: str = "") -> FileSystem:
    """Return the file system that `uri` is on. `conf_dir` is Hadoop's configuration directory, else $HADOOP_CONF_DIR.

    Libraries are imported here, when a scheme first needs them: HDFS takes hdfs-native, others but `file` fsspec.

    Raises:
        StagingError: no library here knows the scheme.
        EngineUnavailable: the configuration can't be read, or names no such cluster.
    """
    scheme = uris.split(uri)[0]
    if scheme == "file":
        from howdah.storage.local import LocalFileSystem

        return LocalFileSystem()
    if scheme == "hdfs":
        from howdah.storage.hdfs import arrow_binding

        if arrow_binding.is_pyarrow_chosen():
            return arrow_binding.ArrowHdfsFileSystem(uris.root(uri))
        from howdah.storage.hdfs.client import HdfsFileSystem

        return HdfsFileSystem(uris.root(uri), conf_dir)
    if scheme == "viewfs":
        from howdah.storage.viewfs import ViewFileSystem

        return ViewFileSystem(uris.root(uri), conf_dir, filesystem)
    from howdah.storage.fsspec_adapter import FsspecFileSystem

    return FsspecFileSystem(uri)
