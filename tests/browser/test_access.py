"""Tests who can open the page: in a new tab, by a bookmark, by a link that was sent, or without any."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("playwright")
from browser import Tab, missing, open_page
from local_jobs import LocalJobs
from playwright.sync_api import Browser, Page, expect

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalJobs]:
    made = LocalJobs(tmp_path_factory.mktemp("access"))
    yield made
    made.end_all()


@pytest.fixture(scope="module")
def history(jobs: LocalJobs) -> str:
    """The link of a history server with an ended job."""
    assert jobs.start("run", jobs.job_file("echo begun", name="first")).done() == 0
    link = jobs.start("history", "--port", "0").link
    return link


@pytest.fixture(scope="module")
def running(jobs: LocalJobs) -> str:
    """The link of a running job's page."""
    return jobs.start("run", jobs.job_file(jobs.until_told("exit 0"), name="second")).link


def heading(page: Page, name: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)


def test_a_job_of_the_list_opens_in_a_new_tab(history: str, browser: Browser) -> None:
    tab = Tab(browser, history)
    link = tab.page.get_by_role("link", name="first")
    link.wait_for()
    with tab.page.context.expect_page() as opened:
        link.click(modifiers=["ControlOrMeta"])
    heading(opened.value, "first")
    opened.value.reload()
    heading(opened.value, "first")
    assert tab.wrong == []


def test_a_bookmark_opens_a_running_jobs_page(running: str, browser: Browser) -> None:
    tab = Tab(browser, running)
    tab.page.get_by_role("tab", name="Tasks").click()
    address = tab.page.url
    assert "token" not in address
    another = tab.page.context.new_page()
    another.goto(address)
    another.get_by_role("row").get_by_text("worker:0").wait_for()
    heading(another, "second")


@pytest.mark.parametrize("which", ["history", "running"])
def test_a_copied_link_opens_the_same_place_for_another_user(
    which: str, browser: Browser, request: pytest.FixtureRequest
) -> None:
    tab = Tab(browser, request.getfixturevalue(which))
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    if which == "history":
        tab.page.get_by_role("link", name="first").click()
    tab.page.get_by_role("tab", name="Logs").click()
    tab.page.get_by_label("Search all tasks' logs").fill("begun")
    tab.page.keyboard.press("Enter")
    tab.page.get_by_role("table", name="Search results").get_by_role("button", name="worker:0").first.click()
    tab.page.get_by_role("button", name="Copy link").click()
    tab.sees("Copied")
    link = str(tab.page.evaluate("navigator.clipboard.readText()"))
    other = Tab(browser, link)
    other.page.locator(".log .found").get_by_text("begun").wait_for()
    assert "token" not in other.page.url
    assert other.page.get_by_role("button", name="Cancel job…").is_enabled() is False if which == "running" else True
    assert (tab.wrong, other.wrong) == ([], [])


@pytest.mark.parametrize(("which", "command"), [("history", "howdah history"), ("running", "howdah page ID")])
def test_without_a_link_the_right_command_is_told_and_a_link_is_taken(
    which: str, command: str, browser: Browser, request: pytest.FixtureRequest
) -> None:
    link = request.getfixturevalue(which)
    address, _, token = link.partition("#token=")
    page = open_page(browser, address)
    heading(page, "You need an access link")
    expect(page.locator("main code")).to_have_text(command)
    field = page.get_by_label("Link or token")
    field.fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("This link does not open this page.")
    field.fill(link if which == "history" else token)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="You need an access link")).to_have_count(0)
    page.reload()
    page.get_by_role("button", name="Copy link").wait_for()


def test_the_command_names_the_job_of_the_address(running: str, browser: Browser) -> None:
    page = open_page(browser, running.partition("#")[0] + "#/jobs/local-1/tasks", locale="zh-CN")
    expect(page.locator("main code")).to_have_text("howdah page local-1")
    heading(page, "需要访问链接")
