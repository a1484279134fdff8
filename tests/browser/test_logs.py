"""Tests reading, copying and searching a job's logs on the page."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright")
from browser import Tab, missing
from local_jobs import LocalJobs, RunningCommand, eventually
from playwright.sync_api import Browser, Locator, expect

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(300)]

LINES = 200_000
PROGRAM = f"for number in range({LINES}): print(f'line {{number}} of a long log', flush=number == {LINES - 1})"
BOX = "[role=log]"
TOP_LINE = """box => {
    const top = box.getBoundingClientRect().top
    const rows = [...box.querySelectorAll('.rows > div')].map(row => [row.textContent, row.getBoundingClientRect()])
    const found = rows.find(([_, place]) => place.bottom > top + 1 && place.top <= top + 1)
    return found && [found[0], Math.round(found[1].top - top)]
}"""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalJobs]:
    made = LocalJobs(tmp_path_factory.mktemp("logs"))
    yield made
    made.end_all()


@pytest.fixture(scope="module")
def long(jobs: LocalJobs) -> RunningCommand:
    """A job that goes on after a log of 5 MB."""
    run = jobs.start("run", jobs.job_file(f'{sys.executable} -c "{PROGRAM}"; sleep 600'), "--logs", "none")
    return run


@pytest.fixture
def tab(long: RunningCommand, browser: Browser) -> Iterator[Tab]:
    """The end of the long log."""
    opened = Tab(browser, long.link)
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.go(f"jobs/{long.job}/logs?task=worker:0&stream=stdout")
    opened.page.locator(BOX).get_by_text(line(LINES - 1)).wait_for()
    yield opened
    assert opened.wrong == []
    opened.page.context.close()


def line(number: int) -> str:
    return f"line {number} of a long log"


def lines(first: int, last: int) -> str:
    """What is copied of the lines `first` to `last`, whole."""
    return "\n".join(map(line, range(first, last + 1)))


def box(tab: Tab) -> Locator:
    return tab.page.locator(BOX)


def clipboard(tab: Tab) -> str:
    return str(tab.page.evaluate("navigator.clipboard.readText()"))


def copied(tab: Tab) -> str:
    """What the keyboard copies."""
    tab.page.evaluate("navigator.clipboard.writeText('nothing')")
    tab.page.keyboard.press("ControlOrMeta+c")
    return str(eventually(lambda: text if (text := clipboard(tab)) != "nothing" else "", "a copy in the clipboard"))


def number_of(text: str) -> int:
    return int(re.findall(r"line (\d+) ", text)[0])


def top_line(tab: Tab) -> tuple[int, int]:
    """The number of the first line in view, and how far below the box's edge it begins, in pixels."""
    text, place = eventually(lambda: box(tab).evaluate(TOP_LINE), "lines where one has scrolled to")
    return number_of(text), place


def test_lines_that_are_selected_by_mouse_are_copied_as_lines(tab: Tab) -> None:
    last = box(tab).get_by_text(line(LINES - 2)).bounding_box()
    first = box(tab).get_by_text(line(LINES - 6)).bounding_box()
    assert first is not None
    assert last is not None
    tab.page.mouse.move(first["x"], first["y"] + 9)
    tab.page.mouse.down()
    tab.page.mouse.move(last["x"] + 400, last["y"] + 9, steps=5)
    tab.page.mouse.up()
    assert copied(tab).rstrip("\n") == lines(LINES - 6, LINES - 2)


def test_a_selection_goes_on_beyond_the_lines_that_are_in_view(tab: Tab) -> None:
    box(tab).evaluate("box => { box.scrollTop = 1800 }")
    first = top_line(tab)[0] + 3
    box(tab).get_by_text(line(first)).click(position={"x": 2, "y": 9})
    box(tab).evaluate("box => { box.scrollTop += 9000 }")
    expect(box(tab).get_by_text(line(first + 500))).to_be_visible()
    last = top_line(tab)[0] + 5
    place = box(tab).get_by_text(line(last)).bounding_box()
    assert place is not None
    tab.page.keyboard.down("Shift")
    tab.page.mouse.click(place["x"] + 500, place["y"] + 9)
    tab.page.keyboard.up("Shift")
    assert last > first + 400
    assert copied(tab).rstrip("\n") == lines(first, last)


@pytest.mark.parametrize("how", ["keyboard", "button"])
def test_all_that_is_loaded_is_copied(tab: Tab, how: str) -> None:
    loaded = int(re.findall(r"(\d+) lines, ", tab.page.locator("main").inner_text())[0])
    assert loaded > 1000
    if how == "keyboard":
        box(tab).focus()
        tab.page.keyboard.press("ControlOrMeta+a")
        text = copied(tab)
    else:
        tab.page.get_by_role("button", name="Copy", exact=True).click()
        tab.sees("Copied")
        text = clipboard(tab)
    found = text.rstrip("\n").split("\n")
    assert len(found) == loaded
    assert found[1:] == lines(LINES - loaded + 1, LINES - 1).split("\n")


def test_what_is_loaded_before_leaves_the_line_that_one_reads_in_its_place(tab: Tab) -> None:
    box(tab).evaluate("box => { box.scrollTop = 907 }")
    expect(box(tab).get_by_text(line(LINES - 1))).to_have_count(0)
    before = top_line(tab)
    for _ in range(2):
        loaded = box(tab).evaluate("box => box.scrollHeight")
        tab.page.get_by_role("button", name="Earlier").click()
        eventually(lambda known=loaded: box(tab).evaluate("box => box.scrollHeight") > known, "earlier lines")
        assert top_line(tab) == before


def test_the_beginning_and_the_end_are_one_click_away(tab: Tab) -> None:
    tab.page.get_by_role("button", name="To the beginning").click()
    box(tab).get_by_text(line(0)).wait_for()
    assert top_line(tab)[0] == 0
    height = box(tab).evaluate("box => box.scrollHeight")
    tab.page.get_by_role("button", name="Later").click()
    eventually(lambda: box(tab).evaluate("box => box.scrollHeight") > height, "later lines")
    assert top_line(tab)[0] == 0
    assert tab.page.get_by_role("button", name="Earlier").count() == 0
    tab.page.reload()
    box(tab).get_by_text(line(0)).wait_for()
    tab.page.get_by_role("button", name="To the end").click()
    box(tab).get_by_text(line(LINES - 1)).wait_for()


def test_a_long_log_is_read_back_to_its_beginning(tab: Tab) -> None:
    earlier = tab.page.get_by_role("button", name="Earlier")
    for _ in range(100):
        if not earlier.count():
            break
        box(tab).evaluate("box => { box.scrollTop = 18 }")
        known = top_line(tab)[0]
        earlier.click()
        eventually(lambda: box(tab).evaluate("box => box.scrollTop") > 18, "earlier lines")
        assert top_line(tab)[0] == known
    box(tab).evaluate("box => { box.scrollTop = 0 }")
    eventually(lambda: top_line(tab)[0] == 0, "the first line")
    tab.page.get_by_role("button", name="To the end").click()
    box(tab).get_by_text(line(LINES - 1)).wait_for()


def test_a_search_is_repeated(jobs: LocalJobs, browser: Browser) -> None:
    run = jobs.start("run", jobs.job_file(jobs.until_told("echo the needle; sleep 600")))
    tab = Tab(browser, run.link)
    tab.go(f"jobs/{run.job}/logs?task=worker:0")
    field = tab.page.get_by_label("Search all tasks' logs")
    field.fill("needle")
    field.press("Enter")
    status = tab.page.get_by_label("Search results").get_by_role("status")
    expect(status).to_contain_text("0 matches")
    expect(status).to_contain_text(re.compile(r"searched at \d\d:\d\d:\d\d"))
    jobs.tell()
    box(tab).get_by_text("the needle").wait_for()
    field.press("Enter")
    expect(status).to_contain_text("1 matches")
    again = tab.page.get_by_role("button", name="Search again")
    tab.page.evaluate("document.querySelector('section[aria-label=\"Search results\"] [role=table]').dataset.old = 1")
    again.click()
    expect(tab.page.locator("[data-old]")).to_have_count(0)
    expect(status).to_contain_text("1 matches")
    expect(again).to_be_focused()
    assert tab.looked_over("search") == []
    assert tab.wrong == []
    jobs("cancel", run.job)


PLAIN_SCRIPT = "<script>document.title='executed'</script>"
STYLED = (
    r"printf 'first\n\033[31mred\033[0m and \033[1;4;38;2;10;20;30mbold\033[0m\033[2J\n'; "
    f'echo "{PLAIN_SCRIPT}"; printf "%0300d\\n" 7; echo last; '
)


@pytest.fixture(scope="module")
def styled(jobs: LocalJobs) -> RunningCommand:
    """A job that has printed five lines: colours, a script, a long line."""
    return jobs.start("run", jobs.job_file(STYLED + "sleep 600", replicas=2), "--logs", "none")


def opened_log(run: RunningCommand, browser: Browser, place: str, theme: str = "light") -> Tab:
    opened = Tab(browser, run.link, theme)
    opened.go(f"jobs/{run.job}/logs?{place}")
    box(opened).get_by_text("last", exact=True).first.wait_for()
    return opened


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_numbers_and_times_of_lines(styled: RunningCommand, browser: Browser, theme: str) -> None:
    tab = opened_log(styled, browser, "task=worker:0&times=1", theme)
    bold = box(tab).get_by_text("bold", exact=True)
    expect(bold).to_have_css("font-weight", "700")
    expect(bold).to_have_css("text-decoration-line", "underline")
    assert bold.evaluate("part => part.parentElement.textContent") == "red and bold"
    expect(box(tab).get_by_text(PLAIN_SCRIPT)).to_be_visible()
    assert box(tab).locator("a.place").all_inner_texts() == ["1", "2", "3", "4", "5"]
    expect(box(tab).locator(".gutter").first).to_contain_text(re.compile(r"\d\d:\d\d:\d\d"))
    assert tab.looked_over("log-lines") == []
    assert tab.page.title() != "executed"
    assert tab.wrong == []
    tab.page.context.close()


def test_lines_are_wrapped_and_copied_whole(styled: RunningCommand, browser: Browser) -> None:
    tab = opened_log(styled, browser, "task=worker:0")
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    fits = "box => box.scrollWidth <= box.clientWidth"
    assert not box(tab).evaluate(fits)
    tab.page.get_by_role("switch", name="Wrap lines").click()
    eventually(lambda: box(tab).evaluate(fits), "lines that fit")
    assert "wrap=1" in tab.page.url
    box(tab).focus()
    tab.page.keyboard.press("ControlOrMeta+a")
    assert copied(tab).rstrip("\n").split("\n") == ["first", "red and bold", PLAIN_SCRIPT, "7".zfill(300), "last"]
    tab.page.get_by_role("switch", name="Line numbers").click()
    expect(box(tab).locator("a.place")).to_have_count(0)
    tab.page.reload()
    box(tab).get_by_text("last", exact=True).wait_for()
    assert box(tab).evaluate(fits)
    assert tab.page.get_by_role("switch", name="Line numbers").get_attribute("aria-checked") == "false"
    tab.page.context.close()


def test_a_line_has_a_link(tab: Tab, long: RunningCommand, browser: Browser) -> None:
    box(tab).evaluate("box => { box.scrollTop = 3600 }")
    number, place = top_line(tab)
    row = box(tab).locator(".rows > div").filter(has_text=line(number + 3))
    link = row.locator("a.place")
    assert link.inner_text() == str(number + 4)  # the program counts from 0
    link.click()
    expect(row).to_have_class(re.compile("found"))
    assert top_line(tab) == (number, place)
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    following = box(tab).locator(".found")
    expect(following).to_contain_text(line(number + 4))
    other = Tab(browser, long.link)
    other.go(tab.page.url.partition("#/")[2])
    expect(box(other).locator(".found")).to_contain_text(line(number + 4))
    assert other.wrong == []
    other.page.context.close()


def downloaded(tab: Tab, link: str) -> Path:
    with tab.page.expect_download() as started:
        tab.page.get_by_role("link", name=link, exact=True).click()
    return Path(started.value.path())


def test_all_tasks_are_merged_and_downloaded(styled: RunningCommand, browser: Browser) -> None:
    tab = opened_log(styled, browser, "task=*&times=1")
    expect(box(tab).get_by_text("last", exact=True)).to_have_count(2)
    assert set(box(tab).locator("a.place").all_inner_texts()) == {"worker:0", "worker:1"}
    tab.sees("10 lines of 2 tasks")
    assert tab.looked_over("log-merged") == []
    with zipfile.ZipFile(downloaded(tab, "Download all")) as archive:
        assert sorted(archive.namelist()) == ["worker-0/1/stdout.txt", "worker-1/1/stdout.txt"]
        assert archive.read("worker-1/1/stdout.txt").startswith(b"first\n\x1b[31mred")
    box(tab).locator(".rows > div").filter(has_text="last").filter(has_text="worker:1").locator("a.place").click()
    expect(box(tab).locator(".found")).to_contain_text("last")
    assert "task=worker%3A1" in tab.page.url
    assert tab.wrong == []
    tab.page.context.close()


def test_a_level_keeps_a_traceback_whole_and_its_matches_are_downloaded(jobs: LocalJobs, browser: Browser) -> None:
    program = "print('step', flush=True)\ntry:\n    {}['x']\nfinally:\n    print('after', flush=True)\n"
    (jobs.directory / "broken.py").write_text(program)
    command = f"{sys.executable} {jobs.directory}/broken.py; sleep 600"
    run = jobs.start("run", jobs.job_file(command), "--logs", "none")
    tab = Tab(browser, run.link)
    tab.go(f"jobs/{run.job}/logs?task=worker:0&level=error&among=here")
    shown = box(tab).locator(".rows > div .text")
    expect(shown).to_contain_text(["Traceback (most", "File ", "{}['x']", "KeyError: 'x'"])
    assert "step" not in shown.all_inner_texts()
    found = tab.page.get_by_label("Search results")
    tab.page.get_by_role("button", name="Search again").click()
    expect(found.get_by_role("status")).to_contain_text(f"{shown.count()} matches")
    lines = downloaded(tab, "Download matches").read_text().splitlines()
    assert [line.split("\t")[5] for line in lines[1:]] == shown.all_inner_texts()
    tab.page.get_by_role("combobox", name="Level").click()
    levels = tab.page.locator(".ant-select-item-option-content")
    count = shown.count()
    expect(levels).to_have_text(["All levels", f"Warnings, errors{count}", f"Errors{count}"])
    assert tab.wrong == []
    tab.page.context.close()
    jobs("cancel", run.job)
