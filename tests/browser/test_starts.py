"""Tests that each start of a program has a row, a bar, its exit and its part of the log, by mouse and by keyboard."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright")
from browser import Tab, missing
from local_jobs import LocalJobs
from playwright.sync_api import Browser, expect

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(300)]

PROGRAM = """
import pathlib, sys

counter = pathlib.Path(sys.argv[1])
number = int(counter.read_text()) + 1 if counter.exists() else 1
counter.write_text(str(number))
print(f"this is start {number}")
for line in range(3000):
    print(f"line {line} of start {number}")
sys.exit(0 if number == 3 else number)
"""
EXITS = ["exit code 1", "exit code 2", "exit code 0"]


def test_a_program_that_is_started_three_times(jobs: LocalJobs, browser: Browser) -> None:
    (jobs.directory / "train.py").write_text(PROGRAM)
    command = f"python3 train.py {jobs.directory}/counter"
    run = jobs.start("run", jobs.job_file(command, files=["train.py"], retries=2), "--logs", "none")
    assert run.done() == 0, run.text
    tab = Tab(browser, jobs("page", run.job).split()[-1])

    tab.go(f"jobs/{run.job}/tasks/worker:0")
    rows = tab.page.get_by_role("table").first.locator("tbody tr")
    expect(rows).to_have_count(3)
    shown = [rows.nth(2 - number).inner_text() for number in range(3)]
    assert [exit in text for exit, text in zip(EXITS, shown, strict=True)] == [True] * 3, shown
    rows.nth(1).get_by_role("link", name="Log of worker:0, attempt 2").click()
    expect(tab.page.get_by_text("this is start 2", exact=True)).to_be_in_viewport()

    tab.go(f"jobs/{run.job}/timeline")
    table = tab.page.get_by_role("table", name="Timeline of 1 tasks")
    expect(table.get_by_role("row")).to_have_count(4)
    for number, exit in enumerate(EXITS, 1):
        row = table.get_by_role("row").nth(number)
        expect(row.get_by_role("cell").first).to_have_text(f"worker:0 #{number}")
        expect(row).to_contain_text(f"first failure: {exit}" if number == 1 else exit)
        expect(row.locator(".timeline-bar .running")).to_have_count(1)
    assert "running" in str(table.locator(".timeline-bar").nth(1).get_attribute("aria-label"))
    assert tab.looked_over("starts") == []

    tab.page.get_by_text("Last 5 min", exact=True).click()
    assert tab.page.evaluate("location.hash").endswith("range=300")
    tab.reach("link", "Log of worker:0, attempt 3")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_text("this is start 3", exact=True)).to_be_in_viewport()
    tab.page.go_back()
    expect(tab.page.get_by_role("radio", name="Last 5 min")).to_be_checked()

    tab.go(f"jobs/{run.job}/tasks")
    tab.page.get_by_role("button", name="Exit").click()
    tab.page.get_by_role("link", name="worker:0").click()
    expect(tab.page.get_by_role("heading", name="Attempts")).to_be_visible()
    tab.page.go_back()
    expect(tab.page.get_by_role("columnheader", name="Exit")).to_have_attribute("aria-sort", "ascending")
    assert tab.wrong == []
