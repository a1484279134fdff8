"""Measures a gang of 100 tasks, each with an environment of 2 GiB that it may change, beside one without environment.

On this machine: from the command's start to the last program's. The environment is a venv with 30,000 further files; it
is unpacked once, before anything is measured. Size: HOWDAH_BENCH_TASKS (100).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from functools import partial
from pathlib import Path

from bench.report import Report, alternate, ratios
from bench.temp_home import HOWDAH, run, temp_home

TASKS = int(os.environ.get("HOWDAH_BENCH_TASKS", "100"))
FILES, SIZE = 30_000, 2 << 30
ROUNDS, LIMIT = 3, 1.2
JOB = """name: environments
roles:
  worker:
    command: [date, +begins-%s.%N]
    replicas: {tasks}
    resources: {{ memory: 16MiB, vcores: 1 }}
{environment}
"""


def measure(report: Report) -> None:
    """Measure both in turns."""
    with temp_home() as home:
        os.environ |= {"HOWDAH_LOCAL_VCORES": str(TASKS), "HOWDAH_LOCAL_MEMORY_MIB": str(TASKS * 64)}
        archive = _pack(home)
        jobs = {"without": "", f"with {SIZE >> 30} GiB": f"environment: {{ archive: {archive} }}"}
        for name, environment in jobs.items():
            (home / f"{name}.yaml").write_text(JOB.format(tasks=TASKS, environment=environment))
        taken = alternate({name: partial(_start, home / f"{name}.yaml") for name in jobs}, ROUNDS, warm_ups=1)
        for name, seconds in taken.items():
            report.figure(f"{TASKS} tasks {name}: command -> last program", seconds)
        ours, bare = taken[f"with {SIZE >> 30} GiB"], taken["without"]
        ratio = report.figure("ratio", ratios(ours, bare), "")
        report.target(f"{TASKS} tasks with an environment of their own, of those without", ratio, LIMIT)


def _pack(home: Path) -> Path:
    """Write an archive of a venv that has grown to SIZE, of content that gzip makes small."""
    root, archive = home / "env", home / "env.tar"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    content = b"0" * (SIZE // FILES)
    for number in range(FILES):
        path = root / "share" / f"{number % 300}" / f"{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    with tarfile.open(archive, "w") as tar:
        tar.add(root, ".")
    shutil.rmtree(root)
    return archive


def _start(job: Path) -> float:
    """Return the seconds from the command's start to the last program's."""
    done = run([HOWDAH, "run", "--logs", "all", str(job)])
    begun = [float(line.rpartition("begins-")[2]) for line in done.output.splitlines() if "begins-" in line]
    if len(begun) != TASKS:
        raise SystemExit(f"{len(begun)} of {TASKS} programs have begun:\n{done.output[-2000:]}")
    return max(begun) - done.started
