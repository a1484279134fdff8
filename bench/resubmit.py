"""Measures submitting an unchanged directory of 10,000 files again: the time it takes, and the bytes sent.

In a process of its own each time, as a submission is: from the job to all that containers need in its place on HDFS.
Beside it a directory of one file. Size: HOWDAH_BENCH_FILES (10000).
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from bench.report import Report, alternate
from bench.temp_home import run, temp_home
from howdah.engines.yarn.upload import JobUploader
from howdah.hadoop import conf as hadoop_conf
from howdah.sandbox import Sandbox
from howdah.spec import JobSpec, Role, uris
from howdah.staging.stage import stage

FILES = int(os.environ.get("HOWDAH_BENCH_FILES", "10000"))
SIZE = 2000
ROUNDS, LIMIT_S = 9, 0.3


def measure(report: Report) -> None:
    """Measure submitting again; the first time, when everything is new and is sent, does not count."""
    with temp_home() as home, Sandbox(home / "hadoop", nodes=0) as hadoop:
        os.environ["HADOOP_CONF_DIR"] = str(hadoop.conf_dir)
        for count in (1, FILES):
            _write(home / f"with-{count}", count)
        subjects = {f"{count} files": lambda count=count: _again(home / f"with-{count}") for count in (1, FILES)}
        if not all(first()[1] for first in subjects.values()):
            raise SystemExit("what is new was not sent: nothing is measured here")
        taken = alternate(subjects, ROUNDS, warm_ups=0)
        for name, found in taken.items():
            report.figure(f"{name}: job -> all in its place", [seconds for seconds, _ in found])
        many = taken[f"{FILES} files"]
        report.target("bytes sent again", sum(size for _, size in many), 0)
        middle = sorted(seconds for seconds, _ in many)[ROUNDS // 2]
        report.target(f"{FILES} unchanged files, submitted again", middle, LIMIT_S, " s")


def _write(directory: Path, count: int) -> None:
    for number in range(count):
        path = directory / f"{number % 100:02d}" / f"{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(SIZE // 2).hex().encode())


def _again(directory: Path) -> tuple[float, int]:
    """Return the seconds taken, and the bytes sent."""
    seconds, sent = json.loads(run([sys.executable, "-m", "bench.resubmit", str(directory)]).output)
    return seconds, sent


def main(directory: Path) -> None:
    """Stage a job as the command does between reading the job file and asking for containers."""
    sizes: dict[str, int] = {}
    conf_dir = os.environ["HADOOP_CONF_DIR"]
    conf = hadoop_conf.load(conf_dir)
    home = uris.join(hadoop_conf.default_filesystem(conf), "user", "bench", ".howdah")
    job = JobSpec({"worker": Role("true")}, files=(directory.name,))
    begun = time.monotonic()
    staged = stage(job, directory.parent, home, conf_dir=conf_dir)
    JobUploader(home, conf_dir, lambda what, done, _: sizes.update({what: done})).upload(staged, conf)
    print(json.dumps([time.monotonic() - begun, sum(sizes.values())]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
