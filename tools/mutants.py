"""Checks that the tests notice wrong decisions: `tools/mutants.py [--check | WORD…]`, from the root, by .venv's Python.

Each entry of tests/mutants/*.yaml is one deliberate mistake in one module. It is made in a copy of the package, never
in the working tree; then the tests that are named with it run, and, if these notice nothing, all of WIDER. A mistake
that no test notices survives: it is printed, and the exit status is 1. With WORDs only the entries that contain all of
them are tried; `--check` runs no tests and tells whether every entry still fits the source.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import yaml

ROOT = Path(__file__).resolve().parents[1]
LISTS = ROOT / "tests" / "mutants"
WIDER = ("tests/unit", "tests/contract/test_master_api.py", "tests/contract/test_program.py", "tests/simulation")
PROCESSES, LIMIT_S, WIDER_LIMIT_S = 2, 300, 1200
TESTS_PASSED, TESTS_FAILED = 0, 1
"""pytest's exit statuses; any other says that the tests could not be run."""
MOMENTS = itertools.count(1)
"""Each mistake's file has a time of its own: by that Python knows that what it has compiled is of another one."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One deliberate mistake."""

    wrong: str
    """What the program does then, in a sentence."""
    path: str
    """The module's file, below src."""
    old: str
    """What stands there, exactly once."""
    new: str
    """What is put in its place."""
    tests: tuple[str, ...]
    """pytest's arguments: the tests that should notice."""

    def mutate(self, source: str) -> str:
        """The module's text with the mistake in it.

        Raises:
            ValueError: the text to replace is not there once, or what comes out is no Python.
        """
        found = source.count(self.old)
        if found != 1:
            raise ValueError(f"its `old` stands {found} times in src/{self.path}, must stand there once: {self.old!r}")
        mutated = source.replace(self.old, self.new)
        compile(mutated, self.path, "exec")
        return mutated


def read_mutants() -> list[Mutant]:
    """The entries of all lists."""
    return [
        Mutant(
            wrong=entry["wrong"],
            path=f"{entry['module'].replace('.', '/')}.py",
            old=entry["old"],
            new=entry["new"],
            tests=tuple(entry.get("tests", found["tests"])),
        )
        for found in [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(LISTS.glob("*.yaml"))]
        for entry in found["mutants"]
    ]


def find_misfits(mutants: list[Mutant]) -> list[str]:
    """Entries that do not fit the source as it is now, with the reason; and tests that are not there."""
    misfits = []
    for mutant in mutants:
        try:
            mutant.mutate((ROOT / "src" / mutant.path).read_text(encoding="utf-8"))
        except (OSError, ValueError, SyntaxError) as error:
            misfits.append(f"{mutant.wrong}\n    {error}")
        missing = [test for test in mutant.tests if not (ROOT / test.partition("::")[0]).exists()]
        misfits += [f"{mutant.wrong}\n    there is no {test}" for test in missing]
    return misfits


def run_tests(copy: Path, tests: tuple[str, ...], limit_s: float) -> int:
    """pytest's exit status for these tests of the package in `copy`; a run over its limit has failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--timeout=120", *tests]
    compiled = {"PYTHONPYCACHEPREFIX": f"{copy}.compiled", "PYTHONDONTWRITEBYTECODE": ""}  # saves half of the time
    environment = {**os.environ, "PYTHONPATH": str(copy), **compiled}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return TESTS_FAILED
    if done.returncode not in (TESTS_PASSED, TESTS_FAILED):
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    return done.returncode


def try_mutant(mutant: Mutant, copies: SimpleQueue[Path]) -> str:
    """What became of it: `killed`, `killed late` (by WIDER alone), `SURVIVED`, or `BROKEN` (tests could not run)."""
    copy = copies.get()
    target, original = copy / mutant.path, ROOT / "src" / mutant.path
    began = time.monotonic()
    try:
        target.write_text(mutant.mutate(original.read_text(encoding="utf-8")), encoding="utf-8")
        os.utime(target, (moment := next(MOMENTS), moment))
        status = run_tests(copy, mutant.tests, LIMIT_S)
        verdict = {TESTS_PASSED: "SURVIVED", TESTS_FAILED: "killed"}.get(status, "BROKEN")
        if status == TESTS_PASSED and run_tests(copy, WIDER, WIDER_LIMIT_S) == TESTS_FAILED:
            verdict = "killed late"
    finally:
        shutil.copy2(original, target)
        copies.put(copy)
    print(f"{verdict:11} {time.monotonic() - began:4.0f} s  {mutant.path}: {mutant.wrong}", flush=True)
    return verdict


def main(words: list[str]) -> int:
    mutants = read_mutants()
    if misfits := find_misfits(mutants):
        print(f"tests/mutants does not fit the source (CONTRIBUTING.md):\n{chr(10).join(misfits)}")
        return 1
    if words == ["--check"]:
        return 0
    mutants = [mutant for mutant in mutants if all(word in f"{mutant.path} {mutant.wrong}" for word in words)]
    with tempfile.TemporaryDirectory(prefix="howdah-mutants-") as directory, ThreadPoolExecutor(PROCESSES) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(PROCESSES):
            shutil.copytree(ROOT / "src", Path(directory) / str(number), ignore=shutil.ignore_patterns("__pycache__"))
            copies.put(Path(directory) / str(number))
        tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
        if run_tests(Path(directory) / "0", tests, WIDER_LIMIT_S) != TESTS_PASSED:
            print("the tests that are to notice do not pass without a mistake, or there are none")
            return 1
        verdicts = list(pool.map(lambda mutant: try_mutant(mutant, copies), mutants))
    print(f"{sum(verdict.startswith('killed') for verdict in verdicts)} of {len(verdicts)} killed")
    return 0 if all(verdict.startswith("killed") for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
