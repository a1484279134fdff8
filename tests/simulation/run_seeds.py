"""Runs seeds and counts the events of their runs: `run_seeds.py COUNT [PROCESSES [FIRST [LIMIT_S]]]`.

It goes on after each violation. After LIMIT_S no more seeds are begun. The exit status is 1 if an invariant was broken.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from runs import simulate

EACH = 50


def run(first: int, deadline: float) -> tuple[int, Counter[str], Counter[str], list[str]]:
    """Run a block of seeds; return how many were run, how often and in how many of them each event happened, and the
    violations."""
    runs, times, broken = Counter[str](), Counter[str](), []
    for done, seed in enumerate(range(first, first + EACH)):
        if time.monotonic() > deadline:
            return done, runs, times, broken
        try:
            simulation = simulate(seed)
        except Exception as error:
            broken.append(f"seed {seed}: {type(error).__name__}: {error}")
            continue
        times.update(simulation.seen)
        assert simulation.outcome is not None
        times[f"the job {simulation.outcome.state.value}"] += 1
        runs.update({what: 1 for what, count in {**simulation.seen}.items() if count})
    return EACH, runs, times, broken


def main(count: int, processes: int = 1, first: int = 0, limit_s: float = 1e9) -> int:
    began, done = time.monotonic(), 0
    runs, times, broken = Counter[str](), Counter[str](), list[str]()
    blocks = range(first, first + count, EACH)
    with ProcessPoolExecutor(processes) as pool:
        for number, *happened, problems in pool.map(run, blocks, [began + limit_s] * len(blocks)):
            done += number
            runs.update(happened[0])
            times.update(happened[1])
            broken += problems
            for problem in problems:
                print(problem, flush=True)
    for what in sorted(times):
        print(f"{runs[what] or times[what]:9} runs {times[what]:9} times  {what}")
    seconds = time.monotonic() - began
    print(f"{done} of {count} seeds in {seconds:.0f} s, {len(broken)} violations")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
