"""Measures how soon a gang of 1,000 has printed all its first lines on Slurm, beside `srun` alone.

Slurm's ten nodes are on this machine, so both start 1,000 processes on its cores. Executors need 15 GB of memory.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from bench.report import Report, alternate, ratios
from bench.temp_home import HOWDAH, run, temp_home
from bench.two_lines import COMMAND, JOB
from howdah.client.clusters import engine_of
from howdah.sandbox import SlurmSandbox
from howdah.sandbox.slurm_conf import SlurmShape

TASKS, NODES, ROUNDS = 1000, 10, 2
MEMORY_MIB = 256
NEEDED_KB = 16_000_000
GANG_LIMIT_S = 1800.0


def measure(report: Report) -> None:
    """Start the gang by both in turns, on one cluster."""
    free = int(re.findall(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())[0])
    if free < NEEDED_KB:
        print(f"  {free} kB of memory are free, {NEEDED_KB} are needed: not measured")
        return
    # Each node also has room for one more process: the master's.
    shape = SlurmShape(nodes=NODES, vcores=TASKS // NODES + 1, memory_mib=(TASKS // NODES + 8) * MEMORY_MIB, gpus=0)
    with temp_home() as home, SlurmSandbox(home / "slurm", shape) as sandbox:
        os.environ.update(sandbox.env() | {"HOWDAH_PYTHON": os.path.realpath(sys.executable)})
        job = home / "job.yaml"
        job.write_text(JOB.replace("replicas: 2", f"replicas: {TASKS}"))
        times = alternate({"howdah": lambda: _ours(job), "srun": _srun}, ROUNDS, warm_ups=0)
    ours = report.figure("howdah run, start → last of 1,000 first lines", times["howdah"])
    bare = report.figure("srun, start → last of 1,000 first lines", times["srun"])
    report.figure("howdah ÷ srun", ratios(times["howdah"], times["srun"]), "x")
    print(f"  a task more costs howdah {1000 * ours / TASKS:.0f} ms of this machine, srun {1000 * bare / TASKS:.0f} ms")


def _ours(job: Path) -> float:
    done = run([HOWDAH, "run", "--on", "slurm", "--logs", "none", str(job)], limit_s=GANG_LIMIT_S)
    id_ = done.find(r"slurm-[\w-]+")
    found = engine_of(id_)
    logs = b"".join(data for heading, data in found.logs(id_, None) if heading.endswith("stdout"))
    return _last(logs.decode(), done.output) - done.started


def _srun() -> float:
    done = run(["srun", f"-n{TASKS}", "-c1", f"--mem-per-cpu={MEMORY_MIB}", *COMMAND.split()], limit_s=GANG_LIMIT_S)
    return _last(done.output, done.output) - done.started


def _last(text: str, output: str) -> float:
    lines = [float(found) for found in re.findall(r"^(\d+\.\d+)$", text, re.MULTILINE)]
    if len(lines) != TASKS:
        raise SystemExit(f"{TASKS} lines were to come, not {len(lines)}:\n{output[-3000:]}")
    return max(lines)
