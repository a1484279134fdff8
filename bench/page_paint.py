"""Measures how long a headless Chromium takes to paint a job of 1,000 tasks and a curve of a million points."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.report import Report, wait_for_quiet

CHROMIUM = "/usr/bin/chromium"
SERVER = Path(__file__).parents[1] / "frontend" / "dev" / "serve.py"
TASKS, POINTS, ROUNDS = 1_000, 1_000_000, 5
FIRST_PAINT_S, LINE_S = 1.0, 0.3
# From the navigation to the frame after the first task is in the document, in ms.
_PAINTED = """() => new Promise(done => {
  const look = () => document.querySelector('a[href*="worker%3A0"]')
    ? requestAnimationFrame(() => setTimeout(() => done(performance.now()))) : setTimeout(look, 5);
  look();
})"""
# From the points in memory to the line on the canvas, in ms.
_LINE = """() => new Promise(done => {
  const look = () => {
    const [drawn] = performance.getEntriesByName('howdah-chart');
    drawn ? done(drawn.duration) : setTimeout(look, 50);
  };
  look();
})"""


def measure(report: Report) -> None:
    """Measure rounds with a new browser context each, so that no cache helps."""
    try:
        from playwright.sync_api import Browser, sync_playwright
    except ImportError:
        print("  skipped: no playwright")
        return
    if not Path(CHROMIUM).exists():
        print(f"  skipped: no {CHROMIUM}")
        return

    def painted(browser: Browser, link: str) -> float:
        wait_for_quiet(10)
        context = browser.new_context(viewport={"width": 1280, "height": 720})
        page = context.new_page()
        page.goto(link, wait_until="commit")
        took = float(page.evaluate(_PAINTED))
        context.close()
        return took / 1e3

    def line(browser: Browser, link: str) -> float:
        wait_for_quiet(10)
        context = browser.new_context(viewport={"width": 1280, "height": 720})
        page = context.new_page()
        page.goto(link)
        took = float(page.evaluate(_LINE))
        context.close()
        return took / 1e3

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with _served("--tasks", str(TASKS)) as (address, job):
            times = [painted(browser, f"{address}#/jobs/{job}/tasks") for _ in range(ROUNDS)]
        first = report.figure(f"{TASKS} tasks, from nothing to painted", times)
        with _served("--points", str(POINTS)) as (address, job):
            times = [line(browser, f"{address}#/jobs/{job}/curves?tag=%5Eloss%24") for _ in range(ROUNDS)]
        drawn = report.figure(f"a line of {POINTS} points, from data to drawn", times)
        browser.close()
    report.target("first paint of a large job", first, FIRST_PAINT_S, " s")
    report.target("a line of a million points", drawn, LINE_S, " s")


@contextmanager
def _served(*options: str) -> Iterator[tuple[str, str]]:
    command = [sys.executable, str(SERVER), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield process.stdout.readline().strip(), "application_1795222800000_0042"
    finally:
        process.terminate()
        process.wait()
