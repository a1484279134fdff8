"""Runs benchmarks, prints figures, and exits with 1 when a target was missed: `python -m bench [name ...]`.

`python -m bench quick` compares some ratios with those that are kept in `ratios.json`, which `quick --keep` replaces.
"""

from __future__ import annotations

import importlib
import os
import sys

from bench.report import Report, wait_for_quiet

NAMES = (
    "startup",
    "local",
    "queue",
    "yarn_first_line",
    "memory",
    "training",
    "save",
    "frameworks",
    "download",
    "resubmit",
    "environments",
    "stream",
    "records",
    "curves",
    "engines",
    "slurm_gang",
    "spark",
    "spark_distributor",
    "spark_faults",
    "compat_commands",
    "page",
    "page_paint",
    "chaos",
    "containers",
    "pods",
    "heartbeats",
    "failures",
    "history",
    "logsearch",
    "sampling",
    "journals",
    "relay",
)


def main(names: list[str]) -> int:
    """Run the named benchmarks, all of them without a name."""
    if names[:1] == ["quick"] and names[1:] in ([], ["--keep"]):
        return importlib.import_module("bench.quick").main(keep="--keep" in names)  # type: ignore[no-any-return]
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are quick [--keep], {', '.join(NAMES)}", file=sys.stderr)
        return 64
    report = Report()
    for name in names or NAMES:
        module = importlib.import_module(f"bench.{name}")
        print(f"{name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
        print(f"  {wait_for_quiet():.0%} of {os.cpu_count()} cores idle", flush=True)
        module.measure(report)
    print(f"missed: {', '.join(report.missed)}" if report.missed else "all targets met")
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
