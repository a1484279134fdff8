"""Measures a job of one task that does nothing on this machine, start to exit, beside TorchX's local scheduler."""

from __future__ import annotations

from bench.report import Report, alternate, ratios
from bench.rivals import torchx
from bench.temp_home import HOWDAH, run, temp_home

LIMIT_S = 0.40
ROUNDS = 15
JOB = """name: nothing
roles:
  worker:
    command: ["true"]
    resources: { memory: 64MiB, vcores: 1 }
"""


def measure(report: Report) -> None:
    """Measure `howdah run`: it starts a master, an executor and the program, follows them, and prints the end."""
    with temp_home() as home:
        (home / "job.yaml").write_text(JOB)
        commands = {"howdah run": [HOWDAH, "run", str(home / "job.yaml")]}
        if rival := torchx():
            commands["torchx run"] = [rival, "run", "-s", "local_cwd", "utils.sh", "true"]
        # TorchX makes its log directory in the temporary directory.
        subjects = {
            name: lambda command=command: run(command, {"TMPDIR": str(home)}, cwd=home).seconds
            for name, command in commands.items()
        }
        times = alternate(subjects, ROUNDS, warm_ups=2)
    ours = report.figure("howdah run, one task: true", times["howdah run"])
    if rival:
        report.figure("torchx run -s local_cwd utils.sh true", times["torchx run"])
        report.figure("ratio", ratios(times["howdah run"], times["torchx run"]), "")
    report.target("local job, start to exit", ours, LIMIT_S, " s")
