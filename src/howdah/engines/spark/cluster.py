"""Finds the Spark that the settings lead to: its master, its programs, its configuration."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path

from howdah.config.paths import running_sandbox
from howdah.localfiles.own_directories import state_directory
from howdah.spec.values import dataclass

SPARK_HOME, SPARK_CONF_DIR = "SPARK_HOME", "SPARK_CONF_DIR"
DEFAULTS = "spark-defaults.conf"


@dataclass(frozen=True)
class SparkCluster:
    """Where a cluster is, and what brings jobs there."""

    master: str
    """The master, as `spark-submit --master` takes it; "" if none is known."""
    submit: str
    """The path of spark-submit; "" if there is none."""
    variables: Mapping[str, str]
    """The variables with which spark-submit finds its installation and its configuration."""

    @property
    def defaults(self) -> Path | None:
        """Return the spark-defaults.conf that spark-submit reads, whether it is there or not; None if only spark-submit
        itself knows: a program on PATH may be a script that starts another one elsewhere."""
        if conf := self.variables.get(SPARK_CONF_DIR):
            return Path(conf, DEFAULTS)
        home = Path(self.variables.get(SPARK_HOME) or Path(self.submit).resolve().parents[1])
        return home / "conf" / DEFAULTS if (home / "jars").is_dir() else None

    @property
    def is_standalone(self) -> bool:
        """Return whether Spark's own master has the executors."""
        return self.master.startswith("spark://")


def find_cluster(settings: Mapping[str, str], environment: Mapping[str, str]) -> SparkCluster:
    """Return the cluster of the settings, of SPARK_HOME and SPARK_CONF_DIR, or the sandbox that runs."""
    record = state_directory(environment) / "sandbox-spark" / "sandbox.json"
    sandbox = running_sandbox(record)
    home = settings.get("spark.install") or environment.get(SPARK_HOME, "")
    conf = settings.get("spark.conf_dir") or environment.get(SPARK_CONF_DIR, "")
    master = settings.get("spark.master") or _configured_master(Path(conf or Path(home or "/nonexistent", "conf")))
    if not master and sandbox:
        home, conf = str(sandbox["home"]), str(record.parent / "conf")
        master = _configured_master(Path(conf))
    variables = {name: value for name, value in ((SPARK_HOME, home), (SPARK_CONF_DIR, conf)) if value}
    return SparkCluster(master, _find_submit(home), variables)


def _configured_master(conf: Path) -> str:
    """Return `spark.master` of a spark-defaults.conf; "" if there is none."""
    defaults = conf / DEFAULTS
    words = (line.split(None, 1) for line in defaults.read_text().splitlines()) if defaults.exists() else ()
    return next((word[1].strip() for word in words if len(word) == 2 and word[0] == "spark.master"), "")


def _find_submit(home: str) -> str:
    if home:
        return str(Path(home, "bin", "spark-submit"))
    found = importlib.util.find_spec("pyspark")
    if found is not None and found.origin is not None:
        return str(Path(found.origin).with_name("bin") / "spark-submit")
    return shutil.which("spark-submit") or ""
