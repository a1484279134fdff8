"""Tests that the page shows a task's stack traces where they were requested."""

from __future__ import annotations

import re
import sys

import pytest

pytest.importorskip("playwright")
from browser import Tab, missing
from local_jobs import LocalJobs
from playwright.sync_api import Browser, expect

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(300)]


def test_stack_traces_are_shown_without_secrets_and_copied(jobs: LocalJobs, browser: Browser) -> None:
    program = "import time; print('begun', flush=True); time.sleep(600)"
    run = jobs.start("run", jobs.job_file([sys.executable, "-c", program, "--api-key", "SECRET123", "--lr", "0.2"]))
    assert run.link
    tab = Tab(browser, jobs("page", run.job).strip())
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.go(f"jobs/{run.job}/tasks/worker:0")
    tab.page.get_by_role("log").get_by_text("begun").wait_for()
    tab.page.get_by_role("button", name="Show stack traces").click()
    dialog = tab.page.get_by_role("dialog", name="Stack traces of worker:0")
    shown = dialog.locator("pre")
    expect(shown).to_contain_text(re.compile(r"Process \d+: .*--api-key \*\*\* --lr 0.2"))
    assert tab.looked_over("stacks") == []
    dialog.get_by_role("button", name="Copy").click()
    tab.sees("Copied")
    text = str(tab.page.evaluate("navigator.clipboard.readText()"))
    assert text == shown.text_content()
    (kept,) = (jobs.directory / "home/state/jobs" / run.job).glob("stacks/*.txt")
    assert text.strip() in kept.read_text()
    assert str(kept) in dialog.inner_text()
    assert "SECRET123" not in tab.page.content() + kept.read_text()
    assert tab.wrong == []
    jobs("cancel", run.job)


def test_tasks_with_equal_stacks_are_one_card_and_the_odd_one_is_first(jobs: LocalJobs, browser: Browser) -> None:
    program = (
        "import os, threading, time\n"
        "def waits_alone(): time.sleep(600)\n"
        "if os.environ['HOWDAH_TASK'] == 'worker:1': threading.Thread(target=waits_alone, daemon=True).start()\n"
        "print('begun', flush=True)\n"
        "time.sleep(600)\n"
    )
    run = jobs.start("run", jobs.job_file([sys.executable, "-c", program], replicas=3))
    assert run.link
    tab = Tab(browser, jobs("page", run.job).strip())
    for task in ("worker:0", "worker:1", "worker:2"):
        tab.go(f"jobs/{run.job}/tasks/{task}")
        tab.page.get_by_role("log").get_by_text("begun").wait_for()
    tab.go(f"jobs/{run.job}/tasks")
    tab.page.get_by_role("button", name="Show all stack traces").click()
    cards = tab.page.get_by_role("dialog", name="Stack traces of all tasks").locator("section")
    expect(cards).to_have_count(2)
    expect(cards.nth(0)).to_contain_text("worker:1")
    expect(cards.nth(1)).to_contain_text("worker:0, worker:2 2 tasks")
    left, right = (cards.nth(number).bounding_box() for number in (0, 1))
    assert left
    assert right
    assert left["x"] + left["width"] <= right["x"]
    assert tab.looked_over("all stacks") == []
    assert tab.wrong == []
    jobs("cancel", run.job)
