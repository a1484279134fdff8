"""Another cluster's Hadoop configuration: this machine's own, with other files on top of it.

The directory's name is derived from its content, because a job's cluster must be found again later.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from howdah.errors import SpecError
from howdah.hadoop import conf
from howdah.storage.content_cache import local_directory

_NAMES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml")


def overlay_configuration(files: Sequence[str], base: str = "") -> Path:
    """Return the directory; `base` is the configuration below the files, HADOOP_CONF_DIR unless given.

    Raises:
        SpecError: a file does not exist, or is no configuration.
    """
    over = [Path(file.removeprefix("file://")) for file in files]
    if missing := next((path for path in over if not path.is_file()), None):
        raise SpecError.at("--cluster", f"no such file: {missing}")
    own = conf.directory(base)
    below = [Path(own, name) for name in _NAMES] if own else []
    properties, _ = conf.merge([*below, *over])
    text = conf.to_xml(properties)
    # Each file has all properties: a program that reads one of the files alone finds what it needs.
    directory = local_directory() / "conf" / hashlib.sha256(text.encode()).hexdigest()[:16]
    directory.mkdir(parents=True, exist_ok=True)
    for name in _NAMES:
        partial = directory / f".{name}.{os.getpid()}"
        partial.write_text(text, encoding="utf-8")
        partial.replace(directory / name)
    return directory
