"""Tests all screens in both languages and themes, on a phone and a desktop: nothing is cut off, axe finds no fault."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

pytest.importorskip("playwright")
pytest.importorskip("tensorboardX")
from browser import Tab, missing
from event_program import command
from layout import cut_texts, scrolling_sideways, unreachable
from local_jobs import LocalJobs, RunningCommand
from playwright.sync_api import Browser, expect

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(600)]

DESK_WIDTH = 1280
WIDTHS = (360, 480, 768, 1024, 1280, 1366, 1440, 1536, 1680, 1920, 2560)
PHONE, DESK = {"width": 360, "height": 780}, {"width": 1440, "height": 900}
LANGUAGES = ("en-GB", "zh-CN")
CHART, TALL = "main .uplot", 2400
# What is there, in any language, once a screen is: of a running job, and of the history.
LIVE = {
    "overview": "main table.small",
    "tasks": "main .virtual-table [role=row] a",
    "tasks/worker:0": CHART,
    "timeline": "main .timeline-bar",
    "metrics": CHART,
    "curves": CHART,
    "curves/histograms": CHART,
    "curves/images": "main .image-list img",
    "curves/audio": "main audio",
    "curves/pr": CHART,
    "curves/text": "main .markdown",
    "curves/hparams": "main :is(table, .virtual-table)",
    "curves/checkpoints": "main .virtual-table [role=row] a",
    "logs": "main [role=tabpanel] :is(input, button)",
    "logs?task=worker:0": "main .log",
    "spec": "main pre",
    "events": "main [role=table] [role=row]",
}
HISTORY = {
    "jobs": "main .virtual-table [role=row] a",
    "users": "main [role=table] [role=row]",
    "compare?a={stopped}&b={unmade}": "main table.small a",
    "jobs/{unmade}": "main .card.failure",
    "jobs/{stopped}/timeline": "main .timeline-bar",
}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalJobs]:
    made = LocalJobs(tmp_path_factory.mktemp("layout"))
    made.environment["HOWDAH_LOCAL_VCORES"] = "16"  # of tasks that do nothing
    yield made
    made.end_all()


@pytest.fixture(scope="module")
def running(jobs: LocalJobs) -> RunningCommand:
    """A job that runs, and has written something of every kind."""
    board = jobs.directory / "board"
    program = command(f"{board}/$HOWDAH_TASK", jobs.until_told("exit 0"))
    run = jobs.start("run", jobs.job_file(program, name="a job of some length", board=f"file://{board}", replicas=2))
    run.prints("begun", "its event files")
    return run


@pytest.fixture(scope="module")
def stopped(jobs: LocalJobs) -> str:
    """A job whose chief was done before its workers."""
    resources = {"memory": "128MiB"}
    chief = {"command": "echo done", "replicas": 1, "resources": resources}
    other = {"command": "while :; do sleep 0.1; done", "replicas": 2, "resources": resources}
    roles = {"chief": chief, "parameter-server": other, "evaluator": other}
    run = jobs.start("run", jobs.job_file("", roles=roles, success="chief", name="stopped"))
    assert run.done() == 0, run.text
    return run.job


@pytest.fixture(scope="module")
def unmade(jobs: LocalJobs) -> str:
    """A job that has not made its output."""
    output = {"from": "model", "path": f"file://{jobs.directory}/unmade"}
    run = jobs.start("run", jobs.job_file("echo done", outputs=[output], name="unmade"))
    assert run.done() != 0
    return run.job


@pytest.fixture(scope="module")
def history(jobs: LocalJobs, stopped: str, unmade: str) -> str:
    """The link of a history server that knows those that have ended."""
    return jobs.start("history", "--port", "0").link


def faults(tab: Tab, screens: dict[str, str], size: dict[str, int]) -> list[str]:
    """What is wrong with any of these screens."""
    tab.page.set_viewport_size(size)  # type: ignore[arg-type]
    found = []
    for place, there in screens.items():
        tab.go(place)
        if there == CHART:  # is drawn only near what is in view
            tab.page.set_viewport_size({"width": size["width"], "height": TALL})
        tab.page.locator(there).first.wait_for()
        tab.page.set_viewport_size(size)  # type: ignore[arg-type]
        name = re.sub(r"\W+", "-", place)
        found += [f"{place}: sideways: {each}" for each in scrolling_sideways(tab.page)]
        found += [f"{place}: out of reach: {each}" for each in unreachable(tab.page)]
        found += tab.looked_over(f"{size['width']}-{name}")
    return found + tab.wrong


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["telephone", "desk"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_running_job(running: RunningCommand, browser: Browser, language: str, size: dict[str, int]) -> None:
    tab = Tab(browser, running.link, language=language)
    job = f"jobs/{running.job}/"
    assert faults(tab, {job + place: there for place, there in LIVE.items()}, size) == []


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["telephone", "desk"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_screen_of_the_history_fits(
    history: str, stopped: str, unmade: str, browser: Browser, language: str, size: dict[str, int]
) -> None:
    tab = Tab(browser, history, language=language)
    screens = {place.format(stopped=stopped, unmade=unmade): there for place, there in HISTORY.items()}
    assert faults(tab, screens, size) == []


def test_a_running_job_in_the_dark(running: RunningCommand, browser: Browser) -> None:
    """Colours are what differs, and neither language nor width changes them."""
    tab = Tab(browser, running.link, "dark")
    job = f"jobs/{running.job}/"
    assert faults(tab, {job + place: there for place, there in LIVE.items()}, DESK) == []


def test_every_screen_of_the_history_in_the_dark(history: str, stopped: str, unmade: str, browser: Browser) -> None:
    tab = Tab(browser, history, "dark")
    screens = {place.format(stopped=stopped, unmade=unmade): there for place, there in HISTORY.items()}
    assert faults(tab, screens, DESK) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_cut_at_any_width(history: str, stopped: str, unmade: str, browser: Browser, language: str) -> None:
    tab = Tab(browser, history, language=language)
    tab.page.clock.set_fixed_time(time.time() + 3 * 86400)  # times of another day are longest
    screens = {
        f"jobs/{stopped}": "main table.small",
        f"jobs/{unmade}": "main .card.failure",
        f"jobs/{stopped}/tasks/evaluator:0": "main table.small",
        "jobs": "main .virtual-table [role=row] a",
        f"compare?jobs={stopped},{unmade}": "main table.compare-table a",
    }
    found = []
    for place, there in screens.items():
        tab.go(place)
        tab.page.locator(there).first.wait_for()
        for width in WIDTHS:
            tab.page.set_viewport_size({"width": width, "height": 800})
            cut = cut_texts(tab.page, may_scroll=width < DESK_WIDTH) + scrolling_sideways(tab.page)
            found += [f"{place} at {width}: {each}" for each in cut]
    assert found == []


@pytest.mark.parametrize("place", ["events", "logs?text=done&task=chief:0"])
def test_what_a_row_says_is_in_view_on_a_phone(history: str, stopped: str, browser: Browser, place: str) -> None:
    tab = Tab(browser, history)
    tab.page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    tab.go(f"jobs/{stopped}/{place}")
    texts = tab.page.locator("main .virtual-table .rows [role=cell]:last-child")
    texts.first.wait_for()
    box = texts.first.bounding_box()
    assert box is not None
    assert box["x"] < PHONE["width"] / 2


def test_tabs_are_gone_through_by_keys(running: RunningCommand, browser: Browser) -> None:
    tab = Tab(browser, running.link)
    tab.reach("tab", "Overview")
    tab.page.keyboard.press("ArrowRight")
    expect(tab.page.get_by_role("tab", name="Tasks")).to_be_focused()
    expect(tab.page.get_by_role("tab", name="Tasks")).to_have_attribute("aria-selected", "true")
    assert tab.page.url.endswith(f"{running.job}/tasks")
    tab.page.keyboard.press("End")
    expect(tab.page.get_by_role("tabpanel", name="Events")).to_be_visible()
    tab.page.keyboard.press("ArrowRight")
    expect(tab.page.get_by_role("tab", selected=True)).to_have_text("Overview")
    assert tab.wrong == []


def test_what_the_chief_left_behind_was_stopped_not_cancelled(history: str, stopped: str, browser: Browser) -> None:
    tab = Tab(browser, history)
    tab.go(f"jobs/{stopped}")
    roles = tab.page.locator("section.card", has=tab.page.get_by_role("heading", name="Roles"))
    expect(roles.get_by_role("row", name="evaluator")).to_contain_text(re.compile(r"evaluator\s*2\s*2 STOPPED"))
    expect(tab.page.locator(".job-header .state")).to_contain_text("SUCCEEDED")
    tab.go(f"jobs/{stopped}/tasks")
    expect(tab.page.locator(".virtual-table .state.STOPPED")).to_have_count(4)
    tab.page.locator("main").get_by_text("CANCELLED").wait_for(state="hidden")
    assert tab.page.locator(".virtual-table .state.CANCELLED").count() == 0
    chinese = Tab(browser, history, language="zh-CN")
    chinese.go(f"jobs/{stopped}/tasks")
    expect(chinese.page.locator(".virtual-table .state.STOPPED").first).to_contain_text("已停止")
    assert (tab.wrong, chinese.wrong) == ([], [])


def test_a_missing_output_is_why_the_job_failed(history: str, unmade: str, browser: Browser) -> None:
    for language, text in (("en-GB", "no task made 'model'"), ("zh-CN", "没有任务创建 'model'")):
        tab = Tab(browser, history, language=language)
        tab.go(f"jobs/{unmade}")
        expect(tab.page.locator(".job-header .state.FAILED")).to_be_visible()
        expect(tab.page.locator(".card.failure")).to_contain_text(text)
        assert tab.wrong == []


def test_the_box_at_the_top_finds_jobs_by_name_and_id(
    history: str, stopped: str, unmade: str, browser: Browser
) -> None:
    tab = Tab(browser, history)
    box = tab.page.get_by_role("combobox", name="Find a job by name, id")
    for words, place in (("unmade", f"jobs/{unmade}"), (stopped[-4:], f"jobs/{stopped}"), ("local", "jobs?text=local")):
        tab.go("users")
        box.fill(words)
        box.press("Enter")
        expect(tab.page).to_have_url(re.compile(re.escape(f"#/{place}")))
    box.fill("nobody-has-this")
    box.press("Enter")
    expect(tab.page.get_by_text("no job here had nobody-has-this").first).to_be_visible()
