"""Tests that the page of a failed job begins with what a person needs: the exception, his own frames, the remedy."""

from __future__ import annotations

import re
import sys

import pytest

pytest.importorskip("playwright")
from browser import Tab, missing
from local_jobs import LocalJobs
from playwright.sync_api import Browser, expect

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(300)]

HANGING = """
import time
import howdah.here as here

def wait_for_peer():
    while True:
        time.sleep(1)

here.progress(0.1)
wait_for_peer()
"""
PROGRAM = """
import json

print("step 1\\n" * 30, flush=True)

def read(text):
    return json.loads(text)

read("{never closed")
"""


def test_the_exception_comes_first_and_the_decisive_lines_are_in_view(jobs: LocalJobs, browser: Browser) -> None:
    (jobs.directory / "train.py").write_text(PROGRAM)
    run = jobs.start("run", jobs.job_file("python3 train.py", files=["train.py"], name="broken"))
    assert run.done() == 1, run.text
    tab = Tab(browser, jobs("page", run.job).split()[-1])
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.go(f"jobs/{run.job}")
    card = tab.page.locator(".card.failure")
    exception = "json.decoder.JSONDecodeError: Expecting property name"
    expect(card.get_by_role("heading")).to_contain_text(exception)
    expect(card.get_by_role("link", name="worker:0")).to_be_visible()
    marked = card.locator("pre mark").all_inner_texts()
    assert [line.strip() for line in marked if "File" not in line] == [
        'read("{never closed")',
        "return json.loads(text)",
    ]
    assert all("train.py" in line for line in marked if "File" in line)
    expect(card.locator("pre span").last).to_be_in_viewport()
    assert card.inner_text().count("exit code 1") == 1, "once is enough"
    of_the_start = re.compile(r"/logs\?task=worker%3A0&stream=both&attempt=1$")
    expect(card.get_by_role("link", name="Open the logs of this task")).to_have_attribute("href", of_the_start)

    card.get_by_role("button", name="Copy for a ticket").click()
    tab.sees("Copied")
    ticket = str(tab.page.evaluate("navigator.clipboard.readText()"))
    assert ticket.startswith(f"**broken** ({run.job}) FAILED\nlocal · ")
    assert exception in ticket.partition("```")[0]
    assert "train.py" in ticket.partition("```")[2]
    assert tab.wrong == []


def test_the_stacks_of_a_job_that_hung_are_a_click_away(jobs: LocalJobs, browser: Browser) -> None:
    (jobs.directory / "train.py").write_text(HANGING)
    role = {
        "command": f"{sys.executable} train.py",
        "replicas": 2,
        "resources": {"memory": "128MiB"},
        "on_stall": "fail",
    }
    timeouts = {"stop": "1s", "stall": "5s"}
    run = jobs.start("run", jobs.job_file("", files=["train.py"], roles={"worker": role}, timeouts=timeouts))
    assert run.done() == 1, run.text
    tab = Tab(browser, jobs("page", run.job).split()[-1])
    tab.go(f"jobs/{run.job}")
    card = tab.page.locator(".card.failure")
    assert card.inner_text().count("no sign of progress") == 1, "once is enough"
    card.get_by_role("button", name="Show stack traces").click()
    dialog = tab.page.get_by_role("dialog", name="Stack traces that were kept last")
    # Of the suspect compiled code may be shown, too; then each task has a card of its own.
    expect(dialog.get_by_role("heading", name=re.compile("^worker:0"))).to_be_visible()
    expect(dialog.locator("pre").last).to_contain_text("wait_for_peer (train.py")
    assert tab.looked_over("kept-stacks") == tab.wrong == []
