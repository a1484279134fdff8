"""Measures how soon a gang of up to 1,000 has printed all its first lines on Slurm, beside `srun` alone.

Slurm's ten nodes are on this machine: all processes of the gang have its cores, and its memory says how many tasks
there can be. A task of howdah is an executor, and what Slurm has for a step of its own (`srun`, a daemon).
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

MAX_TASKS, NODES, ROUNDS = 1000, 10, 2
MEMORY_MIB = 256
NEEDED_KB = 40_000
"""Memory that a task needs here, in kB; half of it is left for what else there is."""
GANG_LIMIT_S = 1800.0


def measure(report: Report) -> None:
    """Start the gang by both in turns, on one cluster."""
    free = int(re.findall(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())[0])
    tasks = min(MAX_TASKS, free // NEEDED_KB // 100 * 100)
    if not tasks:
        print(f"  {free} kB of memory are free, {100 * NEEDED_KB} are needed: not measured")
        return
    # Each node also has room for one more process: the master's.
    shape = SlurmShape(nodes=NODES, vcores=tasks // NODES + 1, memory_mib=(tasks // NODES + 8) * MEMORY_MIB, gpus=0)
    with temp_home() as home, SlurmSandbox(home / "slurm", shape) as sandbox:
        os.environ.update(sandbox.env() | {"HOWDAH_PYTHON": os.path.realpath(sys.executable)})
        _measure_no_memory(home / "slurm" / "slurm.conf")
        job = home / "job.yaml"
        job.write_text(JOB.replace("replicas: 2", f"replicas: {tasks}"))
        times = alternate({"howdah": lambda: _ours(job, tasks), "srun": lambda: _srun(tasks)}, ROUNDS, warm_ups=0)
    ours = report.figure(f"howdah run, start → last of {tasks} first lines (no sampling by Slurm)", times["howdah"])
    bare = report.figure(f"srun, start → last of {tasks} first lines", times["srun"])
    report.figure("howdah ÷ srun", ratios(times["howdah"], times["srun"]), "x")
    print(f"  a task more costs howdah {1000 * ours / tasks:.0f} ms of this machine, srun {1000 * bare / tasks:.0f} ms")


def _measure_no_memory(conf: Path) -> None:
    """Let Slurm sample no processes: each step would look through those of all nodes, since they are one machine."""
    conf.write_text(re.sub(r"(?m)^JobAcctGatherFrequency=.*$", "JobAcctGatherFrequency=0", conf.read_text()))
    run(["scontrol", "reconfigure"])


def _ours(job: Path, tasks: int) -> float:
    done = run([HOWDAH, "run", "--on", "slurm", "--logs", "none", str(job)], limit_s=GANG_LIMIT_S)
    id_ = done.find(r"slurm-[\w-]+")
    found = engine_of(id_)
    logs = b"".join(data for heading, data in found.logs(id_, None) if heading.endswith("stdout"))
    return _last(logs.decode(), done.output, tasks) - done.started


def _srun(tasks: int) -> float:
    done = run(["srun", f"-n{tasks}", "-c1", f"--mem-per-cpu={MEMORY_MIB}", *COMMAND.split()], limit_s=GANG_LIMIT_S)
    return _last(done.output, done.output, tasks) - done.started


def _last(text: str, output: str, tasks: int) -> float:
    lines = [float(found) for found in re.findall(r"^(\d+\.\d+)$", text, re.MULTILINE)]
    if len(lines) != tasks:
        raise SystemExit(f"{tasks} lines were to come, not {len(lines)}:\n{output[-3000:]}")
    return max(lines)
