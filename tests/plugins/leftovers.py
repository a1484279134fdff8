"""Finds what a test leaves behind: processes that it started, and objects that it did not close.

Each process that a test starts inherits MARK, which names the run and the test; what a fixture of a module or a class
starts names the file, and what a fixture of the whole session starts names the session. When a file's tests are over,
every process that still has a mark of the file is named and killed, and the test fails that left it; at the end of the
session also what names the session's temporary directory, as the daemons of a sandbox do. A socket, file or process
that was not closed is collected, and so warned of, in the test that made it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import psutil
import pytest

MARK = "HOWDAH_TEST_MARK"
SESSION = "the session"
MAX_MARK_BYTES = 400
"""Some tests measure how large the environment of a process may be."""
ENDING_LIMIT_S = 10.0
"""A process that was told to end may take so long: to write its last lines, or to be collected by its parent."""
POLL_S = 0.05
DIRECTORY = pytest.StashKey[str]()
"""Where pytest's temporary directories are."""


@dataclass
class Marks:
    """Hands out the marks of one run, and knows the test of each."""

    run: str = field(default_factory=lambda: f"{os.getpid()}.{time.time_ns()}")
    tests: dict[str, str] = field(default_factory=dict)

    def set(self, name: str) -> None:
        """Let what is started from now on be of `name`: a test, a file, or the session."""
        mark = f"{self.run} {name}".encode("ascii", "backslashreplace")[:MAX_MARK_BYTES].decode().replace("\0", "?")
        self.tests[mark] = name
        os.environ[MARK] = mark

    def find_processes(self, directory: str = "") -> dict[psutil.Process, str]:
        """Return the living processes that a test or a file of this run has started, with its name. With `directory`,
        those of the session, too, and all that name the directory in their arguments or variables."""
        found = {}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                name = self._find_owner(process, directory)
                if name and process.pid != os.getpid() and _lives(process):
                    found[process] = name
        return found

    def _find_owner(self, process: psutil.Process, directory: str) -> str:
        variables = process.environ()
        name = self.tests.get(variables.get(MARK, ""), "")
        if not directory:
            return "" if name == SESSION else name
        if not name and any(directory in text for text in (*process.cmdline(), *variables.values())):
            return SESSION
        return name


def _lives(process: psutil.Process) -> bool:
    return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE


class LeftoverFinder:
    """The hooks of one process of tests."""

    def __init__(self) -> None:
        self.marks = Marks()
        self.marks.set(SESSION)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.marks.set(item.nodeid)
        try:
            return (yield)
        finally:
            _forget_exceptions()
            with _unraisable_to([]):  # what a failed test kept alive is no fault of the next test
                gc.collect()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Iterator[None]:
        before = os.environ.get(MARK, "")
        if fixturedef.scope != "function":
            self.marks.set(SESSION if fixturedef.scope in ("session", "package") else _file_of(request.node.nodeid))
        try:
            return (yield)
        finally:
            os.environ[MARK] = before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        """Look at what is left when all fixtures have ended that end after this test."""
        try:
            return (yield)
        finally:
            ends_file = nextitem is None or nextitem.path != item.path
            faults = _collect_garbage(item, ends_file)
            if ends_file:
                left = self._end_leftovers(item.config.stash[DIRECTORY] if nextitem is None else "")
                for name in left:
                    item.user_properties.append(("left_by", name if "::" in name else item.nodeid))
                faults += [line for lines in left.values() for line in lines]
            if faults:
                pytest.fail("\n".join(faults), pytrace=False)

    def _end_leftovers(self, directory: str) -> dict[str, list[str]]:
        """Return a line on each process that is still there, by who left it, and kill them all."""
        deadline = time.monotonic() + ENDING_LIMIT_S
        while (found := self.marks.find_processes(directory)) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        left: dict[str, list[str]] = {}
        for process, name in found.items():
            with contextlib.suppress(psutil.Error):
                age_s = time.time() - process.create_time()
                line = f"{name} left process {process.pid}, {age_s:.0f} s old: {' '.join(process.cmdline())[:300]}"
                process.kill()
                left.setdefault(name, []).append(line)
        return left


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _collect_garbage(item: pytest.Item, ends_file: bool) -> list[str]:
    """Return what could not be raised while the test's objects were collected: warnings of what it did not close."""
    faults: list[str] = []
    _forget_exceptions()
    getattr(item, "funcargs", {}).clear()
    if ends_file:
        gc.unfreeze()  # the objects of the file's fixtures
    with _unraisable_to(faults):
        gc.collect()
    gc.freeze()  # the next test's collection looks at that test's objects alone: 0.1 ms, not 20
    return faults


def _forget_exceptions() -> None:
    """Drop what the interpreter keeps of the last exception: it holds the objects of a failed test."""
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)


@contextlib.contextmanager
def _unraisable_to(lines: list[str]) -> Iterator[None]:
    """Add a line for each exception that cannot be raised, because it comes from a destructor."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda found: lines.append(f"{found.object!r}: {found.exc_value!r}")
    try:
        yield
    finally:
        sys.unraisablehook = before


@pytest.fixture(scope="session", autouse=True)
def _keep_directory(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> None:
    pytestconfig.stash[DIRECTORY] = str(tmp_path_factory.getbasetemp())


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("numprocesses", None):  # the process that only hands tests to others runs none
        config.pluginmanager.register(LeftoverFinder(), "leftover-finder")
