"""Real clusters on this machine for trying and testing: each sandbox starts the daemons of Hadoop, of Slurm, of
Kubernetes or of Spark, and stops exactly these daemons."""

from __future__ import annotations

from howdah.sandbox.cluster import Sandbox, current
from howdah.sandbox.daemons import Daemon
from howdah.sandbox.kubernetes.cluster import KubernetesSandbox
from howdah.sandbox.slurm import SlurmSandbox
from howdah.sandbox.spark import SparkSandbox

__all__ = ["Daemon", "KubernetesSandbox", "Sandbox", "SlurmSandbox", "SparkSandbox", "current"]
