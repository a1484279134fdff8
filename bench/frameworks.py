"""Compares steps a second of each framework's example under howdah and started by hand.

`python -m bench.frameworks [--rounds N] [--steps N] [NAME ...]` for other sizes, or for some of them alone.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from bench.bare_processes import by_hand
from bench.report import Report, alternate, ratios
from bench.temp_home import HOWDAH, run, temp_home
from howdah.config.job_file import to_yaml
from howdah.spec import Environment, Input, JobSpec, Resources, Role
from howdah.staging.virtual_environments import ensure_environment

ROUNDS, RANKS, LEAST = 9, 2, 0.99
HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
DIGITS = EXAMPLES / "data" / "digits"


@dataclass(frozen=True)
class Example:
    """An example whose worker 0 prints a line for each step: `word N:`. `steps` take some ten seconds."""

    name: str
    word: str
    steps: int
    requirements: str = "requirements.lock"

    @property
    def directory(self) -> Path:
        return EXAMPLES / f"digits-{self.name}"

    @property
    def lock(self) -> Path:
        return self.directory / self.requirements

    def rate(self, output: str, steps: int) -> float:
        """Return steps a second, without the first tenth, so that the start does not count."""
        times = {int(step): float(time) for time, step in re.findall(rf"(\d+\.\d+) {self.word} (\d+):", output)}
        skipped = max(1, steps // 10)
        if steps not in times:
            raise SystemExit(f"no {self.word} {steps} in:\n{output}")
        return (steps - skipped) / (times[steps] - times[skipped])

    def job(self, steps: int) -> JobSpec:
        command = ("python", "timer.py", "train.py", f"--{self.word}s", str(steps))
        return JobSpec(
            {"worker": Role(command, replicas=RANKS, resources=Resources(1536))},
            name=f"bench-{self.name}",
            framework=self.name,
            files=(str(self.directory / "train.py"), str(HERE / "timer.py")),
            environment=Environment(requirements=str(self.lock)),
            inputs=(Input(str(DIGITS / "train"), "data"), Input(str(DIGITS / "test"), "test", share="all")),
        )


KNOWN = {
    "xgboost": Example("xgboost", "round", 1000),
    "lightgbm": Example("lightgbm", "round", 1500, "../digits-xgboost/requirements.lock"),
    "pytorch": Example("pytorch", "epoch", 120),
}


def measure(report: Report, names: tuple[str, ...] = tuple(KNOWN), rounds: int = ROUNDS, steps: int = 0) -> None:
    """Compare one framework after the other, started both ways in turns."""
    with temp_home() as home:
        for example in (KNOWN[name] for name in names):
            _compare(report, example, home / example.name, rounds, steps or example.steps)


def _compare(report: Report, example: Example, directory: Path, rounds: int, steps: int) -> None:
    directory.mkdir()
    job, file = example.job(steps), directory / "job.yaml"
    file.write_text(to_yaml(job))
    python = ensure_environment(example.lock, print) / "bin" / "python"
    data = {name: sorted((DIGITS / part).iterdir()) for name, part in (("data", "train"), ("test", "test"))}
    files = [Path(path) for path in job.files]
    subjects = {
        "howdah": lambda: example.rate(run([HOWDAH, "run", "--on", "local", str(file)]).output, steps),
        "by hand": lambda: example.rate(by_hand(job, python, directory, files, data), steps),
    }
    rates = alternate(subjects, rounds)
    report.figure(f"{example.name} under howdah", rates["howdah"], "/s")
    report.figure(f"{example.name} started by hand", rates["by hand"], "/s")
    ratio = report.figure(f"{example.name}, ratio", ratios(rates["howdah"], rates["by hand"]), "")
    report.target(f"{example.name} under howdah, of by hand", ratio, LEAST, at_least=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(KNOWN))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each is started")
    parser.add_argument("--steps", type=int, default=0, help="steps of each training")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in KNOWN]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(KNOWN)}")
    report = Report()
    measure(report, tuple(options.names) or tuple(KNOWN), options.rounds, options.steps)
    raise SystemExit(1 if report.missed else 0)


if __name__ == "__main__":
    main()
