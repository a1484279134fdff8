"""Moves files that are replaced to the user's trash on HDFS, as `hadoop fs -rm` does, if `fs.trash.interval` is set.

Source: TrashPolicyDefault of Hadoop 3.5. The NameNode itself makes the checkpoints of the trash, after which it is
emptied.
"""

from __future__ import annotations

import contextlib
import time

from howdah.hadoop import conf as hadoop_conf
from howdah.spec import uris
from howdah.storage.filesystem import FileSystem

_ONLY_OWNER = 0o700


def move_to_trash(fs: FileSystem, uri: str, place: str, conf_dir: str = "") -> str:
    """Move a file or directory to the trash, under the path that it had at `place`; return its URI there, "" if its
    file system has no trash. `conf_dir` is Hadoop's configuration directory, else $HADOOP_CONF_DIR.

    Raises:
        StagingError: it can't be moved there; it stays.
    """
    found, original = fs.resolve(uri), fs.resolve(place)
    if uris.split(found)[0] != "hdfs":
        return ""
    conf = hadoop_conf.load(hadoop_conf.directory(conf_dir))
    minutes = 0.0
    with contextlib.suppress(ValueError):
        minutes = float(conf.get("fs.trash.interval", "").strip() or 0)
    trash = uris.join(hadoop_conf.home(conf, uris.root(found)), ".Trash")
    if minutes <= 0 or f"{original}/".startswith(f"{trash}/"):
        return ""
    target = uris.join(trash, "Current", uris.path(original))
    fs.mkdirs(uris.parent(target), _ONLY_OWNER)
    if fs.exists(target):
        target += str(int(time.time() * 1000))
    fs.rename(found, target)
    return target
