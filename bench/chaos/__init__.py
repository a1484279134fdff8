"""Injects faults of every kind into jobs on a real cluster, and checks that nothing is lost.

Each cell is a job of two workers that count, keep checkpoints, are saved while they run, and write an output.
Something is killed, stopped, cut off, slowed or filled; the job must end as it would have without. As root all of it
runs in a network of its own, with disks of its own, which can be cut off and filled; without root these cells are left
out, and said so.
CHAOS=kill:executor:mid,stop:master:mid runs some cells; CHAOS=all every fault at every moment.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.chaos.cell import Cell, Result
from bench.chaos.cluster import Cluster
from bench.chaos.faults import FAULTS, MOMENTS
from bench.report import Report
from bench.temp_home import temp_home

INSIDE = "HOWDAH_CHAOS_INSIDE"
SEEN_S, LOST_NODE_S, TAKEOVER_S = 10.0, 10.0, 15.0


def measure(report: Report) -> None:
    """Run the cells, print the table, and compare with what is promised."""
    if os.geteuid() == 0 and INSIDE not in os.environ:
        _in_a_network_of_its_own(report)
        return
    results = []
    with tempfile.TemporaryDirectory(prefix="howdah-chaos-") as shared, temp_home(), Cluster() as cluster:
        for number, (fault, moment) in enumerate(wanted(os.environ.get("CHAOS", ""))):
            cell = Cell(cluster, Path(shared) / str(number), FAULTS[fault], moment)
            results.append(cell.run())
            print(f"  {results[-1].line}", flush=True)
    _judge(report, results)


def wanted(choice: str) -> list[tuple[str, str]]:
    """Which cells: kills and ends of the master's attempt at every moment, everything else in the middle, unless they
    are named."""
    if choice and choice != "all":
        return [(cell.rpartition(":")[0], cell.rpartition(":")[2]) for cell in choice.split(",")]
    every = [(fault, moment) for fault in FAULTS for moment in MOMENTS]
    often = {fault for fault in FAULTS if fault.startswith("kill") or FAULTS[fault].ends_attempt}
    return [one for one in every if choice == "all" or one[0] in often or one[1] == "mid"]


def _in_a_network_of_its_own(report: Report) -> None:
    inside = f"ip link set lo up && exec {sys.executable} -m bench chaos"
    done = subprocess.run(["unshare", "--net", "--mount", "--", "sh", "-c", inside], env={**os.environ, INSIDE: "1"})
    if done.returncode:
        report.missed.append("chaos")


def _judge(report: Report, results: list[Result]) -> None:
    wrong = [result for result in results if result.wrong]
    for result in wrong:
        print(f"  LOST {result.name}: {'; '.join(result.wrong)}\n{result.client_output}", flush=True)
    report.target("cells in which something was lost", len(wrong), 0)
    for fault, limit in (("kill:user", 1.0), ("kill:executor", SEEN_S), ("cut:master", LOST_NODE_S + 15.0)):
        seen = [result.seen_s for result in results if result.fault == fault and result.seen_s is not None]
        if seen:
            report.target(f"{fault}: seen after", report.figure(f"{fault}: seen", seen), limit, " s")
    taken = [result.seen_s for result in results if result.fault == "kill:master" and result.seen_s is not None]
    if taken:
        report.target("kill:master: next one at work after", statistics.median(taken), TAKEOVER_S, " s")
