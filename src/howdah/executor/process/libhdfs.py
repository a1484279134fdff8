"""Sets the variables by which libhdfs finds Hadoop and Java: TensorFlow and pyarrow read `hdfs://` through it.

libhdfs starts a JVM inside the program. It looks for libjvm on LD_LIBRARY_PATH, and for each jar on CLASSPATH. If the
node has no libhdfs nothing is set. Variables that are set already are only extended.
"""

from __future__ import annotations

import glob
import os
import shutil
from typing import Dict, Iterator, List, Mapping

HOMES = ("HADOOP_HDFS_HOME", "HADOOP_HOME", "HADOOP_COMMON_HOME", "HADOOP_PREFIX")
# Where a tar ball of Hadoop has its jars, and where distributions' packages have them.
_JARS = (*(f"share/hadoop/{part}" for part in ("common", "common/lib", "hdfs", "hdfs/lib")), ".", "lib")
_JVM = ("lib/server", "jre/lib/server", "jre/lib/*/server", "lib/*/server")
_NOT_NEEDED = ("-tests.jar", "-test-sources.jar", "-sources.jar")
MAX_CLASSPATH = 120 << 10  # the system takes no variable longer than 128 KiB


def variables(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables to set in a program's `environment`; none without a libhdfs below one of the HOMES."""
    homes = list(dict.fromkeys(os.path.abspath(environment[name]) for name in HOMES if environment.get(name)))
    directories = [os.path.join(home, "lib/native") for home in homes]
    native = next((path for path in directories if glob.glob(os.path.join(glob.escape(path), "libhdfs.so*"))), "")
    if not native:
        return {}
    java = environment.get("JAVA_HOME") or _java_home(environment.get("PATH", ""))
    home = os.path.dirname(os.path.dirname(native))
    found = {name: environment.get(name, home) for name in ("HADOOP_HOME", "HADOOP_HDFS_HOME")}
    found.update(CLASSPATH=_class_path(environment, homes), ARROW_LIBHDFS_DIR=native)
    libraries = [environment.get("LD_LIBRARY_PATH", ""), native]
    if java:
        found["JAVA_HOME"] = java
        libraries += [path for pattern in _JVM for path in sorted(glob.glob(os.path.join(java, pattern)))][:1]
    found["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, libraries))
    return {name: value for name, value in found.items() if value != environment.get(name)}


def _java_home(path: str) -> str:
    """Find the home of the `java` on PATH, which is a link into it."""
    program = shutil.which("java", path=path)
    return os.path.dirname(os.path.dirname(os.path.realpath(program))) if program else ""


def _class_path(environment: Mapping[str, str], homes: List[str]) -> str:
    """Return the class path: the program's own entries, then the job's configuration, then Hadoop's jars."""
    jars = list(dict.fromkeys(jar for home in homes for jar in _jars(home)))
    entries = [environment.get("CLASSPATH", ""), environment.get("HADOOP_CONF_DIR", "")]
    path = os.pathsep.join(filter(None, [*entries, *jars]))
    if len(path) > MAX_CLASSPATH:  # newer versions expand stars themselves
        directories = dict.fromkeys(os.path.join(os.path.dirname(jar), "*") for jar in jars)
        path = os.pathsep.join(filter(None, [*entries, *directories]))
    return path


def _jars(home: str) -> Iterator[str]:
    for part in _JARS:
        for jar in sorted(glob.glob(os.path.join(glob.escape(os.path.normpath(os.path.join(home, part))), "*.jar"))):
            if not jar.endswith(_NOT_NEEDED):
                yield jar
