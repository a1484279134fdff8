"""Runs the tests in stages, and ends with a table of them: `tools/run_tests.py test|all|STAGE…`, by .venv's Python.

`test` is what `make test` runs each day, `all` all there is. What fails is run once more at the end, each test alone:
if it passes then, the run passes, and the last lines name it. More than MAX_SECOND_LOOKS such tests are a failure. When
`test` or `all` has passed on a tree without uncommitted changes, .venv/tested gets the tree's hash.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTEST = (".venv/bin/pytest", "--failed-first", "--durations", "40", "--dist", "loadfile")
BESIDE = ("-n", "2")
MANY_BESIDE = ("-n", "3")
"""For tests that wait for their programs more than half of the time."""
MAX_SECOND_LOOKS = 3
TESTED = ROOT / ".venv" / "tested"
TESTS_PASSED, TESTS_FAILED = 0, 1
"""pytest's exit statuses after tests that could be run."""
SEVERAL = (
    "engine_examples",
    "functions_on_engines",
    "images_on_engines",
    "job_on_engines",
    "notebook*",
    "scenarios",
    "scenarios_local",
    "several_clusters",
)
"""Files of tests/e2e whose tests are of no single engine."""
ENGINES = {
    "ssh": ("*ssh*",),
    "slurm": ("*slurm*",),
    "spark": ("*spark*",),
    "kubernetes": ("*kubernetes*",),
    "engines": SEVERAL,
}


def e2e_files(patterns: Sequence[str]) -> tuple[str, ...]:
    """The files of tests/e2e whose names, without test_, fit one of the patterns."""
    found = {path for pattern in patterns for path in (ROOT / "tests" / "e2e").glob(f"test_{pattern}.py")}
    return tuple(sorted(str(path.relative_to(ROOT)) for path in found))


def tests_in(name: str) -> tuple[str, ...]:
    """The tests that a list names, one a line."""
    lines = (ROOT / "tests" / name).read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and line[0] != "#")


DAILY, SLOW = tests_in("daily.txt"), tests_in("slow.txt")
OF_ENGINES = {name: e2e_files(patterns) for name, patterns in ENGINES.items()}
OF_YARN = tuple(file for file in e2e_files(("*",)) if not any(file in files for files in OF_ENGINES.values()))
PARTS = ("tests/unit", "tests/golden", "tests/simulation")
PROCESSES = ("tests/contract", "tests/faults")
WITHOUT_SLOW = tuple(f"--deselect={test}" for test in SLOW)
STAGES = {
    "check": ("tools/check",),
    "parts": (*PYTEST, *BESIDE, *PARTS),
    "processes": (*PYTEST, *MANY_BESIDE, *PROCESSES),
    "quick-parts": (*PYTEST, *BESIDE, *WITHOUT_SLOW, *PARTS),
    # Programs take images of Docker as those of Podman, and `make test` installs no Docker.
    "quick-processes": (*PYTEST, *MANY_BESIDE, *WITHOUT_SLOW, "-k", "not docker", *PROCESSES),
    "daily": (*PYTEST, *MANY_BESIDE, "--no-loadscope-reorder", *DAILY),
    "yarn": (*PYTEST, *MANY_BESIDE, *OF_YARN),
    **{name: (*PYTEST, *MANY_BESIDE, *files) for name, files in OF_ENGINES.items()},
    "browser": (*PYTEST, *BESIDE, "tests/browser"),
}
"""By name, in the order in which they run: what fails most often, and is the quickest to run again, comes first."""
GROUPS = {
    "test": ("check", "quick-parts", "quick-processes", "daily"),
    "all": ("check", "parts", "processes", "yarn", *ENGINES, "browser"),
}


@dataclass
class Outcome:
    """What became of one stage. `broken` says why its tests could not be run."""

    stage: str
    seconds: float
    tests: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)
    broken: str = ""


def run_stage(name: str) -> Outcome:
    print(f"== {name}", flush=True)
    began = time.monotonic()
    if name == "check":
        status = subprocess.run(STAGES[name], cwd=ROOT, check=False).returncode
        broken = f"{name} failed, with exit status {status}" if status else ""
        return Outcome(name, time.monotonic() - began, broken=broken)
    return run_pytest(name, STAGES[name])


def run_pytest(name: str, command: Sequence[str]) -> Outcome:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="howdah-outcomes-") as directory:
        file = Path(directory) / "outcomes.json"
        status = subprocess.run([*command, "--outcomes", str(file)], cwd=ROOT, check=False).returncode
        seconds = time.monotonic() - began
        if not file.exists():
            return Outcome(name, seconds, broken=f"{name} ended without outcomes, with exit status {status}")
        found = json.loads(file.read_text(encoding="utf-8"))
    outcome = Outcome(name, seconds, found["tests"], found["skipped"], found["failed"])
    if found["uncollected"]:
        outcome.broken = f"{name} could not be read: {', '.join(found['uncollected'])}"
    elif status not in (TESTS_PASSED, TESTS_FAILED) or (status == TESTS_FAILED) != bool(outcome.failed):
        outcome.broken = f"{name} ended with pytest's exit status {status}, and {len(outcome.failed)} tests failed"
    return outcome


def look_again(failed: Sequence[str]) -> list[str]:
    """Run each test alone, and return those that fail again."""
    return [test for test in failed if _fails_alone(test)]


def _fails_alone(test: str) -> bool:
    print(f"== once more, alone: {test}", flush=True)
    outcome = run_pytest(test, (PYTEST[0], test))
    return bool(outcome.failed or outcome.broken)


def judge(outcomes: Sequence[Outcome], failed_again: Sequence[str] | None) -> list[str]:
    """Return why the run has failed, a line each; none if it has passed. `failed_again` are the tests that failed in
    their second run, None if there was none."""
    reasons = [outcome.broken for outcome in outcomes if outcome.broken]
    failed = [test for outcome in outcomes for test in outcome.failed]
    if failed_again is None:
        reasons += [f"failed: {test}" for test in failed]
    else:
        reasons += [f"failed twice: {test}" for test in failed_again]
    if len(failed) > MAX_SECOND_LOOKS:
        reasons.append(f"{len(failed)} tests failed; no more than {MAX_SECOND_LOOKS} are run again")
    return reasons


def table(outcomes: Sequence[Outcome]) -> str:
    """The stages with their tests and seconds."""
    rows = [("stage", "tests", "skipped", "seconds")]
    rows += [(one.stage, str(one.tests or ""), str(one.skipped or ""), f"{one.seconds:.0f}") for one in outcomes]
    total, seconds = sum(one.tests for one in outcomes), sum(one.seconds for one in outcomes)
    rows.append(("all", str(total), str(sum(one.skipped for one in outcomes) or ""), f"{seconds:.0f}"))
    return "\n".join(f"{name:<12}{tests:>8}{skipped:>10}{took:>10}" for name, tests, skipped, took in rows)


def committed_tree() -> str:
    """The hash of the tree, or "" if something is not committed."""
    if _git("status", "--porcelain"):
        return ""
    return _git("rev-parse", "HEAD^{tree}")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "no repository" if arguments[0] == "status" else ""


def note_tested(tree: str) -> None:
    """Write the hash of the tree that has passed, unless something was changed or not committed meanwhile."""
    if tree and tree == committed_tree():
        TESTED.write_text(f"{tree}\n", encoding="utf-8")
        print(f"tested: tree {tree[:12]}")
    else:
        print("tested: changes that are not committed, so .venv/tested stays as it was")


def main(names: Sequence[str]) -> int:
    chosen = [stage for name in names for stage in GROUPS.get(name, (name,))]
    unknown = [stage for stage in chosen if stage not in STAGES]
    if unknown or not chosen:
        print(f"no stage {', '.join(unknown)}; there are {', '.join([*GROUPS, *STAGES])}", file=sys.stderr)
        return 64
    tree = committed_tree()
    # At once when it is there and its sources have not changed. It says why it can't be built, and what needs it is
    # skipped then.
    subprocess.run(("tools/frontend", "dev"), cwd=ROOT, check=False)
    outcomes: list[Outcome] = []
    for stage in chosen:
        outcomes.append(run_stage(stage))
        if outcomes[-1].broken:
            break
    failed = [test for outcome in outcomes for test in outcome.failed]
    failed_again = None
    if failed and len(failed) <= MAX_SECOND_LOOKS and not outcomes[-1].broken:
        began = time.monotonic()
        failed_again = look_again(failed)
        outcomes.append(Outcome("once more", time.monotonic() - began))
    reasons = judge(outcomes, failed_again)
    print(f"\n{table(outcomes)}")
    print(*reasons, sep="\n")
    if failed and failed_again is not None:
        passed = [test for test in failed if test not in failed_again]
        print(f"passed only when run again: {len(passed)}", *passed, sep="\n")
    if not reasons and set(names) & set(GROUPS):
        note_tested(tree)
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
