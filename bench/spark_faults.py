"""Kills a random process of clusters on Spark while they are fed, and counts how many hang."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections import Counter
from typing import Any

from bench.report import Report
from bench.spark import start_program
from bench.temp_home import temp_home
from howdah.sandbox import SparkSandbox

ROUNDS = 100


def measure(report: Report) -> None:
    """Run the rounds in one application, and say what became of each kind of victim."""
    with temp_home() as home, SparkSandbox(home / "spark") as sandbox:
        seed = str(time.time_ns() % 10**6)
        print(f"  seed {seed}")
        printed = start_program(sandbox, home, "kills.py", [str(ROUNDS), seed], sys.executable)
    rounds = [json.loads(line.removeprefix("ROUND ")) for line in printed.splitlines() if line.startswith("ROUND ")]
    for victim in dict.fromkeys(each["victim"] for each in rounds):
        found = Counter(map(_outcome, (each for each in rounds if each["victim"] == victim)))
        print(f"  {victim} killed: " + ", ".join(f"{count} × {what}" for what, count in sorted(found.items())))
    longest = statistics.quantiles([each.get("seconds", 1e9) for each in rounds], n=20)[-1]
    report.figure("seconds of a round", [each["seconds"] for each in rounds if "seconds" in each])
    print(f"  19 of 20 rounds within {longest:.0f} s")
    unnamed = [each for each in rounds if each["outcome"] == "another error"]
    report.target("rounds that hang", sum(each["outcome"] == "hung" for each in rounds) + ROUNDS - len(rounds), 0)
    report.target("failures that do not name their cause", len(unnamed), 0)
    early = [each for each in rounds if each["outcome"] == "failed" and not each.get("killed")]
    for each in (*unnamed, *early):  # what failed before anything was killed has another cause
        print(f"  {each}")


def _outcome(said: dict[str, Any]) -> str:
    late = "" if said.get("killed") else ", killed too late"
    return f"{said['outcome']} (retries {said['retries']}{late})"
