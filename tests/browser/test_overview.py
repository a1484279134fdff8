"""Tests that the overview shows what a job does while it runs, and what came of it, on a phone and on a desktop."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("playwright")
from browser import NASTY, Tab, missing
from layout import cut_texts, scrolling_sideways, unreachable
from local_jobs import LocalJobs, RunningCommand
from playwright.sync_api import Browser, expect

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(300)]

SIZES = ({"width": 360, "height": 780}, {"width": 1440, "height": 900})
# Charts take the width of the window when it is drawn again.
DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
BALLAST_MIB, ASKED = 200, "256MiB"
PROGRAM = f"""
import howdah.here as here
ballast = b"x" * ({BALLAST_MIB} << 20) if here.rank == 2 else b""
if here.rank == 0:
    for step in range(41):
        here.metric("seconds", 0.5, step)
        here.metric("loss", 1 / (step + 1), step)
    here.progress(0.42)
print("epoch 3 of 7 {NASTY.replace('"', "'")}", flush=True)
"""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalJobs]:
    made = LocalJobs(tmp_path_factory.mktemp("overview"))
    made.environment["HOWDAH_LOCAL_VCORES"] = "16"  # of tasks that do nothing
    yield made
    made.end_all()


@pytest.fixture(scope="module")
def running(jobs: LocalJobs) -> RunningCommand:
    """A job of four workers, of which one has much more memory than the others."""
    (jobs.directory / "train.py").write_text(f"{PROGRAM}\nimport os, time\n{wait_until_told(jobs)}")
    worker = {"command": f"{sys.executable} train.py --api-key SECRET123", "replicas": 4}
    run = jobs.start(
        "run",
        jobs.job_file(
            "",
            name="digits",
            files=["train.py"],
            roles={"worker": {**worker, "resources": {"memory": ASKED}}},
            env={"EPOCHS": "7", "DB_PASSWORD": "SECRET456"},
            tags=["nightly"],
            checkpoint={"path": f"file://{jobs.directory}/checkpoints"},
        ),
    )
    run.prints("epoch 3", "what the programs print")
    return run


def wait_until_told(jobs: LocalJobs) -> str:
    return f"while not os.path.exists({str(jobs.directory / 'told')!r}): time.sleep(0.1)\n"


def overlapping_figures(tab: Tab) -> list[str]:
    """Key figures that are wider than their place."""
    wider = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"
    found: list[str] = tab.page.locator(".key-figures > div").evaluate_all(wider)
    return found


def faults(tab: Tab, name: str) -> list[str]:
    """What is wrong with the screen in any of the sizes."""
    found = []
    for size in SIZES:
        tab.page.set_viewport_size(size)  # type: ignore[arg-type]
        tab.page.evaluate(DRAWN)
        found += cut_texts(tab.page) + scrolling_sideways(tab.page) + unreachable(tab.page) + overlapping_figures(tab)
        found += tab.looked_over(f"overview-{name}-{size['width']}")
    return found + tab.wrong


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_a_running_job_does_is_in_view(running: RunningCommand, browser: Browser, theme: str) -> None:
    tab = Tab(browser, running.link, theme)
    page = tab.page
    figures = page.get_by_role("region", name="Key figures")
    expect(figures).to_contain_text("4 RUNNING")
    expect(figures).to_contain_text(re.compile(r"waited [\d. s:]+, ran "))
    expect(figures).to_contain_text("Progress")
    previews = page.locator(".metric-preview")
    expect(previews.locator("h3")).to_have_text(["loss", "seconds"])
    expect(previews.first).to_contain_text("0.02439")
    expect(page.get_by_role("img", name="loss: 1").locator("canvas")).to_be_visible()
    expect(page.get_by_role("log", name="Log of worker:0")).to_contain_text("epoch 3 of 7 <img")
    main = page.locator("main")
    expect(main).to_contain_text("train.py --api-key ***")
    expect(main).to_contain_text("nightly")
    assert "SECRET" not in page.content()
    assert faults(tab, f"running-{theme}") == []


def test_the_odd_task_is_named_and_each_is_found_by_keys(running: RunningCommand, browser: Browser) -> None:
    tab = Tab(browser, running.link)
    memory = tab.page.locator(".task-strip").filter(has_text="Memory")
    expect(memory.get_by_role("link")).to_contain_text(re.compile(r"out of line: worker:2: 2\d\d MiB"))
    strip = memory.get_by_role("slider", name="Memory of all tasks")
    expect(strip).to_have_attribute("aria-valuenow", "3")
    strip.focus()
    tab.page.keyboard.press("ArrowRight")
    expect(strip).to_have_attribute("aria-valuetext", re.compile(r"worker:3: [\d.]+ MiB \(\d+ %\)"))
    expect(memory.get_by_role("link")).to_contain_text("worker:3")
    tab.page.keyboard.press("Enter")
    expect(tab.page).to_have_url(re.compile(rf"{running.job}/tasks/worker%3A3"))
    assert tab.wrong == []


def test_what_came_of_a_job_is_in_view(running: RunningCommand, jobs: LocalJobs, browser: Browser) -> None:
    jobs.tell()
    assert running.done() == 0, running.text
    tab = Tab(browser, jobs.start("history", "--port", "0").link)
    tab.go(f"jobs/{running.job}")
    figures = tab.page.get_by_role("region", name="Key figures")
    expect(figures).to_contain_text("Outcome")
    expect(figures).to_contain_text("4 SUCCEEDED")
    expect(tab.page.locator(".metric-preview h3")).to_have_text(["loss", "seconds"])
    expect(tab.page.get_by_role("log", name="Log of worker:0")).to_contain_text("epoch 3 of 7")
    assert tab.page.locator(".task-strip").count() == 0, "nothing is used any more"
    expect(tab.page.get_by_role("link", name="All checkpoints")).to_be_visible()
    expect(tab.page.get_by_role("link", name="nightly")).to_have_attribute("href", "#/jobs?tag=nightly")
    assert "SECRET" not in tab.page.content()
    assert faults(tab, "ended") == []
