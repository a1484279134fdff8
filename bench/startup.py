"""Measures how fast the command line answers: `howdah --help` beside `torchx --help`, with warm caches."""

from __future__ import annotations

from bench.report import Report, alternate, ratios
from bench.rivals import torchx
from bench.temp_home import HOWDAH, run, temp_home

LIMIT_S = 0.10
ROUNDS = 21


def measure(report: Report) -> None:
    """Measure whole processes, from start to exit."""
    commands = {"howdah --help": [HOWDAH, "--help"]}
    if rival := torchx():
        commands["torchx --help"] = [rival, "--help"]
    with temp_home():
        subjects = {name: lambda command=command: run(command).seconds for name, command in commands.items()}
        times = alternate(subjects, ROUNDS, warm_ups=3)
    ours = report.figure("howdah --help", times["howdah --help"])
    if rival:
        report.figure("torchx --help", times["torchx --help"])
        report.figure("ratio", ratios(times["howdah --help"], times["torchx --help"]), "")
    report.target("howdah --help", ours, LIMIT_S, " s")
