"""Tests that an open page shows the end of its job, and where the job's page can be found afterwards."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

pytest.importorskip("playwright")
from browser import Tab, missing
from local_jobs import LocalJobs
from playwright.sync_api import Browser

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(300)]


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize(("exit_code", "state"), [(0, "SUCCEEDED"), (1, "FAILED")])
def test_an_open_page_shows_how_the_job_ended(jobs: LocalJobs, browser: Browser, exit_code: int, state: str) -> None:
    run = jobs.start("run", jobs.job_file(jobs.until_told(f"exit {exit_code}")))
    tab = Tab(browser, run.link)
    tab.page.locator(".job-header .state.RUNNING").wait_for()
    jobs.tell()
    assert run.done() == exit_code, "the command does not wait for the page"
    tab.page.locator(f".job-header .state.{state}").wait_for()
    assert state in tab.page.title()
    assert tab.page.get_by_role("button", name="Cancel job…").count() == 0
    tab.go(f"jobs/{run.job}/logs?task=worker:0")
    tab.page.get_by_role("log").get_by_text("begun").wait_for()
    tab.sees(f"howdah page {run.job}")
    assert tab.wrong == []


def test_a_page_whose_server_has_gone_says_so_and_where_it_lives_on(jobs: LocalJobs, browser: Browser) -> None:
    run = jobs.start("run", jobs.job_file(jobs.until_told("exit 3")))
    assert run.link
    tab = Tab(browser, jobs("page", run.job).strip())
    tab.page.get_by_role("button", name="Cancel job…").click(trial=True)
    master = jobs.master_of(run.job)
    for pid in (parent_of(master), master):  # else its supervisor starts another
        os.kill(pid, signal.SIGKILL)
    tab.sees("The job's server cannot be reached")
    assert "no answer" in tab.page.title()
    assert tab.page.locator(".job-header .state.RUNNING").count() == 0
    assert tab.page.get_by_role("button", name="Cancel job…").is_disabled()
    tab.page.get_by_role("tab", name="Logs").click()
    tab.sees("The server cannot be reached.")
    tab.sees(f"howdah page {run.job}")
    jobs.tell()  # a master that took over may have the job go on
    run.done()


def test_the_printed_link_of_an_ended_job_opens_its_page(jobs: LocalJobs, browser: Browser) -> None:
    run = jobs.start("run", jobs.job_file("echo begun; echo wrong >&2; exit 3"))
    assert run.done() == 1
    link = jobs("page", run.job).split()[-1]
    # Each link has an act token of its own.
    found_again = jobs("page", run.job).strip()
    assert found_again.partition("&act=")[0] == link.partition("&act=")[0], "the server that runs is found again"
    tab = Tab(browser, link)
    tab.page.locator(".job-header .state.FAILED").wait_for()
    tab.page.get_by_role("tab", name="Logs").click()
    tab.page.get_by_role("log").get_by_text("wrong").wait_for()
    assert "token" not in tab.page.url
    assert tab.wrong == []


def test_the_page_of_a_running_job_leads_to_the_history_that_will_have_it(jobs: LocalJobs, browser: Browser) -> None:
    history = jobs.start("history", "--port", "0")
    base = history.link.partition("#")[0]
    there = Tab(browser, history.link)  # from now on this browser may look there
    run = jobs.start("run", jobs.job_file(jobs.until_told("exit 0")))
    tab = Tab(browser, run.link, beside=there)
    tab.go(f"jobs/{run.job}/logs?task=worker:0&stream=stdout")
    jobs.tell()
    assert run.done() == 0
    after = tab.page.get_by_role("link", name="The job's page in the history")
    after.wait_for()
    after.click()
    tab.page.get_by_role("log").get_by_text("begun").wait_for()
    assert re.match(re.escape(base), tab.page.url)
