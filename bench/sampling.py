"""Measures what sampling costs an executor: for a program of one process, and for a trainer of many processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from bench.processes import cpu_s, of_job, resident_mb
from bench.report import Report
from bench.temp_home import HOWDAH, run, temp_home

SHARE, EXECUTOR_MB = 0.01, 20.0
SETTLE_S, WINDOW_S = 6.0, 20.0
TREES = {"sleep": (0, 0), "8 loaders of 32 threads each": (8, 32)}
PROGRAM = """
import subprocess, sys, threading, time
loaders, threads = int(sys.argv[1]), int(sys.argv[2])
for _ in range(threads):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
for _ in range(loaders):
    subprocess.Popen([sys.executable, __file__, "0", str(threads)])
print("ready", flush=True)
time.sleep(600)
"""


def measure(report: Report) -> None:
    """Measure the whole executor, its heartbeat too; nothing is printed meanwhile."""
    with temp_home() as home:
        (home / "program.py").write_text(PROGRAM)
        for name, (loaders, threads) in TREES.items():
            (home / "job.yaml").write_text(
                "name: sampling\nfiles: [program.py]\nroles:\n  worker:\n"
                f"    command: {sys.executable} program.py {loaders} {threads}\n    resources: {{ memory: 1GiB }}\n"
            )
            id_ = run([HOWDAH, "submit", "--on", "local", str(home / "job.yaml")]).find(r"^(local-\S+)")
            try:
                time.sleep(SETTLE_S)
                executor = of_job("howdah.executor", id_)[0]
                before = cpu_s(executor)
                time.sleep(WINDOW_S)
                report.target(f"{name}: executor, of a core", (cpu_s(executor) - before) / WINDOW_S, SHARE)
                report.target(f"{name}: executor, resident", resident_mb(executor), EXECUTOR_MB, " MB")
            finally:
                subprocess.run([HOWDAH, "cancel", id_], capture_output=True, env=dict(os.environ), check=False)
