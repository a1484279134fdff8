"""Finds things that a test leaves: processes that it started, and objects that it did not close.

Each process that a test starts inherits MARK, which names the run and the test. A process that a fixture of a module or
a class starts has the name of the file, one of a session fixture the name of the session. When a file's tests are over,
every process that still has a mark of the file is named and killed, and the test that left it fails. The same holds for
a process with a temporary directory of the file in its arguments or variables, such as daemons that choose their
variables themselves. A socket, file or process that was not closed is collected in the test that made it, and so the
warning appears there.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

MARK = "STARTED_BY_TEST"
"""Not one of howdah's own variables: some tests take all of those out of the environment."""
SESSION = "the session"
MAX_MARK_BYTES = 400
"""Some tests measure how large the environment of a process may be."""
ENDING_LIMIT_S = 10.0
"""Limit in seconds within which a stopped process has ended: it may write its last lines, or wait until its parent
collects it. `--ending-limit` sets another limit, for runs whose processes are known not to end."""
POLL_S = 0.05


@dataclass
class Marks:
    """Hands out the marks of one run, and knows the test of each."""

    run: str = field(default_factory=lambda: f"{os.getpid()}.{time.time_ns()}")
    tests: dict[str, str] = field(default_factory=dict)

    def set(self, name: str) -> None:
        """Count processes that are started from now on as those of `name`: a test, a file, or the session."""
        mark = f"{self.run} {name}".encode("ascii", "backslashreplace")[:MAX_MARK_BYTES].decode().replace("\0", "?")
        self.tests[mark] = name
        os.environ[MARK] = mark

    def find_owner(self, variables: dict[str, str]) -> str:
        """Return the test, file or session that started a process with these variables; "" if it is not of this run."""
        return self.tests.get(variables.get(MARK, ""), "")


@dataclass
class Directories:
    """Tells the temporary directories of tests and files from those of the session's fixtures."""

    base: Path
    of_session: set[str] = field(default_factory=set)

    def list_names(self) -> set[str]:
        return {entry.name for entry in self.base.iterdir()}

    def find_name(self, texts: Iterable[str], with_session: bool) -> str:
        """Return the owner of a directory in the texts, "" if none; the session's own directories do not count unless
        they are wanted."""
        names = re.findall(re.escape(f"{self.base}/") + r"([\w.-]+)", "\n".join(texts))
        return next((f"who used {name}" for name in names if with_session or name not in self.of_session), "")


def _lives(process: psutil.Process) -> bool:
    return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE


DIRECTORIES = pytest.StashKey[Directories]()


class LeftoverFinder:
    """The hooks of one process of tests."""

    def __init__(self, ending_limit_s: float) -> None:
        self.marks, self._ending_limit_s = Marks(), ending_limit_s
        self.marks.set(SESSION)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Exclude imported objects, and the tests themselves, from the garbage collections after each test."""
        gc.collect()
        gc.freeze()

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
        if fixturedef.scope == "function":
            return (yield)
        before, of_session = os.environ.get(MARK, ""), fixturedef.scope in ("session", "package")
        self.marks.set(SESSION if of_session else _file_of(request.node.nodeid))
        directories = request.config.stash.get(DIRECTORIES, None)
        known = directories.list_names() if directories else set()
        try:
            return (yield)
        finally:
            os.environ[MARK] = before
            if directories and of_session:
                directories.of_session |= directories.list_names() - known

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        """Look for leftovers when all fixtures of this test have ended."""
        try:
            return (yield)
        finally:
            ends_file = nextitem is None or nextitem.path != item.path
            faults = _collect_garbage(item, ends_file, ends_session=nextitem is None)
            if ends_file:
                left = self._end_leftovers(item.config.stash.get(DIRECTORIES, None), ends_session=nextitem is None)
                for name in left:
                    item.user_properties.append(("left_by", name if "::" in name else item.nodeid))
                faults += [line for lines in left.values() for line in lines]
            if faults:
                pytest.fail("\n".join(faults), pytrace=False)

    def _end_leftovers(self, directories: Directories | None, ends_session: bool) -> dict[str, list[str]]:
        """Return a line on each process that is still there, with the test that left it, and kill them all."""
        deadline = time.monotonic() + self._ending_limit_s
        while (found := self._find_leftovers(directories, ends_session)) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        left: dict[str, list[str]] = {}
        for process, owner in found.items():
            with contextlib.suppress(psutil.Error):
                age_s = time.time() - process.create_time()
                line = f"{owner} left process {process.pid}, {age_s:.0f} s old: {' '.join(process.cmdline())[:300]}"
                process.kill()
                left.setdefault(owner, []).append(line)
        return left

    def _find_leftovers(self, directories: Directories | None, ends_session: bool) -> dict[psutil.Process, str]:
        found = {}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                variables = process.environ()
                owner = self.marks.find_owner(variables)
                if not owner and directories:
                    owner = directories.find_name([*process.cmdline(), *variables.values()], ends_session)
                if owner and (owner != SESSION or ends_session) and process.pid != os.getpid() and _lives(process):
                    found[process] = owner
        return found


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _collect_garbage(item: pytest.Item, ends_file: bool, ends_session: bool) -> list[str]:
    """Return warnings about objects that the test did not close, raised while they are collected."""
    faults: list[str] = []
    _forget_exceptions()
    getattr(item, "funcargs", {}).clear()
    if ends_session:
        gc.unfreeze()  # the objects of the session's fixtures, and what outlived its file
    with _unraisable_to(faults):
        gc.collect()
    if ends_file:
        gc.freeze()  # the next file's collections look at that file's objects alone: 0.1 ms, not 400
    return faults


def _forget_exceptions() -> None:
    """Drop the interpreter's reference to the last exception, which holds the objects of a failed test."""
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
def _keep_directories(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> None:
    pytestconfig.stash[DIRECTORIES] = Directories(tmp_path_factory.getbasetemp())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--ending-limit", type=float, default=ENDING_LIMIT_S, help="Seconds in which leftover processes may end."
    )


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("numprocesses", None):  # the process that only hands tests to others runs none
        config.pluginmanager.register(LeftoverFinder(config.getoption("--ending-limit")), "leftover-finder")
