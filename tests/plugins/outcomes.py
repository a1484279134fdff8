"""Writes the outcome of each test to a file, for tools/run_tests.py: `pytest --outcomes FILE`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


class OutcomeWriter:
    """Collects the tests' reports in the process that was started, where they all arrive."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._tests: set[str] = set()
        self._failed: dict[str, None] = {}
        self._skipped = 0
        self._uncollected: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._uncollected.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tests.add(report.nodeid)
        self._skipped += report.skipped
        if report.failed:
            left_by = [str(test) for name, test in report.user_properties if name == "left_by"]
            self._failed.update(dict.fromkeys(left_by if report.when == "teardown" and left_by else [report.nodeid]))

    def pytest_sessionfinish(self) -> None:
        outcomes = {
            "tests": len(self._tests),
            "skipped": self._skipped,
            "failed": list(self._failed),
            "uncollected": self._uncollected,
        }
        self._file.write_text(json.dumps(outcomes), encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes", type=Path, help="A file that gets the numbers and names of tests, as JSON.")


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--outcomes")
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(OutcomeWriter(file), "outcome-writer")
