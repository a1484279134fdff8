"""Measures how long compat commands take to parse a command line, and until a job's first line on YARN.

Each line carries its own time (`date +%s.%N`), so how it reaches the terminal takes no part in it.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.report import Report, alternate, ratios
from bench.temp_home import HOWDAH, run, temp_home
from howdah.sandbox import Sandbox

ADDED_S, RATIO = 0.05, 1.05
PARSE_ROUNDS, PARSE_WARM_UPS = 21, 3
ROUNDS, WARM_UPS = 9, 2
COMMAND = "date +%s.%N"
JOB = f"""name: first-line
roles:
  worker:
    command: {COMMAND}
    resources: {{ memory: 128MiB, vcores: 1 }}
"""
PROPERTIES = f"executes={COMMAND}\ntony.worker.instances=1\ntony.worker.memory=128m\ntony.ps.instances=0\n"
_XL = ("--app-type", "any", "--worker-num", "1", "--worker-memory", "128M", "--launch-cmd", COMMAND)
DOORS: Mapping[str, tuple[str, ...]] = {
    "xl-submit": _XL,
    "hbox-submit": _XL,
    "tony": ("--executes", COMMAND, "--conf", "tony.worker.instances=1", "--conf", "tony.worker.memory=128m"),
    "azkaban-job": ("first-line.properties",),
    "submarine": (
        *("job", "run", "--name", "first-line", "--num_workers", "1", "--worker_resources", "memory=128M"),
        *("--worker_launch_cmd", COMMAND, "--wait_job_finish"),
    ),
}
CLASSES = {
    "xl-submit": "howdah.compat.xlearning.submit:XlSubmit",
    "hbox-submit": "howdah.compat.xlearning.submit:HboxSubmit",
    "tony": "howdah.compat.tony.submit:Tony",
    "azkaban-job": "howdah.compat.tony.azkaban:AzkabanJob",
    "submarine": "howdah.compat.submarine.job_run:Submarine",
}
_HELP = "import howdah.cli; howdah.cli.main(['--help'])"


def measure(report: Report) -> None:
    """Compare each compat command with howdah's own command."""
    with temp_home() as home:
        (home / "job.yaml").write_text(JOB)
        (home / "first-line.properties").write_text(PROPERTIES)
        _parsing(report, home)
        with Sandbox() as sandbox:
            os.environ.update(sandbox.env())
            _first_lines(report, home)


def _parsing(report: Report, home: Path) -> None:
    """Compare processes that parse a command line and print the help with those that only print the help."""
    programs = {"help": _HELP}
    for door, target in CLASSES.items():
        module, _, name = target.partition(":")
        programs[door] = f"import {module} as m; m.{name}().parse({list(DOORS[door])!r}); {_HELP}"
    subjects = {
        name: lambda program=program: run([sys.executable, "-c", program], cwd=home).seconds
        for name, program in programs.items()
    }
    times = alternate(subjects, PARSE_ROUNDS, PARSE_WARM_UPS)
    for door in CLASSES:
        added = [mine - plain for mine, plain in zip(times[door], times["help"], strict=True)]
        middle = report.figure(f"reading a command line of {door} adds", added)
        report.target(f"reading a command line of {door}", middle, ADDED_S, " s")


def _first_lines(report: Report, home: Path) -> None:
    """Measure one task on YARN from the command's start to its first line."""
    commands = {"howdah run": ["run", "--on", "yarn", "job.yaml"], **{door: [door, *DOORS[door]] for door in DOORS}}
    subjects = {name: lambda words=words: _line(words, home) for name, words in commands.items()}
    times = alternate(subjects, ROUNDS, WARM_UPS)
    report.figure("command -> first line: howdah run", times["howdah run"])
    for door in DOORS:
        report.figure(f"command -> first line: {door}", times[door])
        of_native = statistics.median(ratios(times[door], times["howdah run"]))
        report.target(f"command -> first line: {door} / howdah run", of_native, RATIO)


def _line(words: list[str], home: Path) -> float:
    done = run([HOWDAH, *words], cwd=home)
    return float(done.find(r"(?<=\| )\d{10}\.\d+")) - done.started
