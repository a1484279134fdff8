"""Tests the page of PyTorch and TensorFlow jobs in the browser: while they train, and later in the history."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from commandline import CommandLine, Running, eventually

pytest.importorskip("playwright")
from browser import Tab, chromium, missing
from playwright.sync_api import Browser
from test_checkpoint_formats import python_of

from howdah.sandbox import Sandbox

PROGRAMS = Path(__file__).with_name("board_programs")

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.timeout(1200),
]  # environments, at first


class Trained(NamedTuple):
    """A job, and the curves that it has told."""

    running: Running
    curves: tuple[str, ...]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def line(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    made = CommandLine(sandbox, tmp_path_factory.mktemp("frameworks"))
    yield made
    made.end_all()


@pytest.fixture(scope="module")
def jobs(line: CommandLine) -> dict[str, Trained]:
    """Both at once; they train until `done` is there."""
    for program in ("curves_torch.py", "curves_tf.py"):
        shutil.copy(PROGRAMS / program, line.directory)
    board = {"local": "board", "tasks": "worker:0", "every": "1s"}
    torch, tensorflow = (
        line.run(
            f"{python_of(f'digits-{framework}')} {program} {line.directory}/done",
            name=f"learns with {framework}",
            framework=framework,
            replicas=replicas,
            memory="1GiB",
            files=[program],
            board=board,
            env={"TF_CPP_MIN_LOG_LEVEL": "2", "OMP_NUM_THREADS": "1"},
        )
        for framework, program, replicas in (("pytorch", "curves_torch.py", 2), ("tensorflow", "curves_tf.py", 1))
    )
    return {"pytorch": Trained(torch, ("train/loss", "own/loss")), "tensorflow": Trained(tensorflow, ("loss",))}


def test_live_and_in_the_history_after_a_restart(
    line: CommandLine, sandbox: Sandbox, jobs: dict[str, Trained], browser: Browser
) -> None:
    for framework, trained in jobs.items():
        trained.running.says("step 3")
        tab = Tab(browser, line("page", "--look-only", trained.running.job).out.decode().strip())
        assert f"learns with {framework}" in tab.page.locator("h1").inner_text()
        _looked_at(tab, trained)
        _goes_on(tab, trained)
    (line.directory / "done").touch()
    assert [trained.running.done().code for trained in jobs.values()] == [0, 0]
    daemons = [daemon.name for daemon in sandbox.status()]
    for name in reversed(daemons):
        sandbox.stop(name)
    for name in daemons:
        sandbox.start(name)
    sandbox.wait_nodes(3)
    serving = line.start("history", "--port", "0")
    link = next(word for word in serving.says("#token=").split() if "#token=" in word)
    tab = Tab(browser, link)
    for framework, trained in jobs.items():
        tab.go("jobs")
        tab.page.get_by_role("link", name=f"learns with {framework}").click()
        tab.page.locator("h1").get_by_text(framework).wait_for()
        tab.page.locator(".job-header").get_by_text("SUCCEEDED").wait_for()
        _looked_at(tab, trained)
    assert tab.wrong == []


def _looked_at(tab: Tab, trained: Trained) -> None:
    """The same of a job that trains and of one that has."""
    job = trained.running.job
    tab.go(f"jobs/{job}/curves")
    for curve in trained.curves:
        card = tab.page.locator("section.card").filter(has=tab.page.get_by_role("heading", name=curve, exact=True))
        card.locator("canvas").first.wait_for()
        card.locator("td.value").first.wait_for()
    for place, text in (("tasks", "1 of 1 tasks" if len(trained.curves) == 1 else "2 of 2 tasks"), ("spec", "learns")):
        tab.go(f"jobs/{job}/{place}")
        tab.sees(text)
    tab.go(f"jobs/{job}/logs?task=worker:0&stream=stdout")
    tab.sees("step ", "[role=log]")
    tab.go(f"jobs/{job}/timeline")
    tab.page.locator(".timeline-bar").first.wait_for()
    assert tab.wrong == []


def _goes_on(tab: Tab, trained: Trained) -> None:
    """What is seen is what comes: of the log, and of a curve."""
    tab.go(f"jobs/{trained.running.job}/logs?task=worker:0&stream=stdout")
    log = tab.page.get_by_role("log")
    before = log.inner_text()
    eventually(lambda: log.inner_text() not in ("", before), "later lines")
    tab.go(f"jobs/{trained.running.job}/curves")
    value = tab.page.locator("td.value").first
    before = value.inner_text()
    eventually(lambda: value.inner_text() != before, "later points")
