"""The job that prints the time in two containers: what starting costs, and nothing else."""

from __future__ import annotations

COMMAND = "date +%s.%N"
JOB = f"""name: two-lines
roles:
  worker:
    replicas: 2
    command: {COMMAND}
    resources: {{ memory: 256MiB, vcores: 1 }}
"""
