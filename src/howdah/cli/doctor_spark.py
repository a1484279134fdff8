"""The doctor's checks of Spark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from howdah.cli.findings import Finding, fail, ok
from howdah.cli.i18n import _
from howdah.config.settings import Settings
from howdah.engines.spark.cluster import find_cluster
from howdah.engines.spark.engine import SparkEngine
from howdah.errors import EngineUnavailable

_REMEDIES = {
    "spark.master": "howdah config set spark.master spark://HOST:7077",
    "spark-submit": "howdah config set spark.install /opt/spark",
    "spark.home": "howdah config set spark.home /shared/DIRECTORY",
}
"""What helps, by the beginning of what is wrong with the settings."""


def checks(settings: Settings) -> Iterator[Finding]:
    """Yield whether Spark's programs are here, and whether its master answers."""
    engine = SparkEngine(settings.values)
    for problem in engine.wrong_settings():
        yield fail("spark", problem, next(help for name, help in _REMEDIES.items() if problem.startswith(name)))
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        yield fail("spark: java", _("not found; Spark needs Java 17"), "apt install openjdk-17-jre-headless")
    try:
        engine.reach_master()
    except EngineUnavailable as error:
        yield fail("spark: master", str(error), "howdah config set spark.master spark://HOST:7077")
    else:
        yield ok("spark: master", find_cluster(settings.values, os.environ).master)
