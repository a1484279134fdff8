"""Tests the history as a table of runs: columns, order, back button, comparison, files, and hits of the search box."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from urllib.parse import quote

import pytest

pytest.importorskip("playwright")
from browser import NASTY, Tab, missing
from local_jobs import LocalJobs
from playwright.sync_api import Browser, expect

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(600)]

RATES = {"0.1": "0.5", "0.01": "0.25", "1": "9"}
"""The loss that a run reports, by its learning rate."""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalJobs]:
    made = LocalJobs(tmp_path_factory.mktemp("runs"))
    yield made
    made.end_all()


@pytest.fixture(scope="module")
def runs(jobs: LocalJobs) -> dict[str, str]:
    """The ids of three runs, by their learning rate."""
    train = jobs.directory / "train.py"
    train.write_text("import sys\nfrom howdah import here\nhere.metric('train/loss', float(sys.argv[4]), 1)\n")
    found = {}
    for rate, loss in RATES.items():
        command = [sys.executable, str(train), "--lr", rate, "--", loss]
        run = jobs.start("run", jobs.job_file([*command], name=f"sweep {rate}", tags=["sweep", NASTY]))
        assert run.done() == 0, run.text
        found[rate] = run.job
    return found


@pytest.fixture
def tab(jobs: LocalJobs, runs: dict[str, str], browser: Browser) -> Tab:
    return Tab(browser, jobs.start("history", "--port", "0").link)


def test_runs_are_ranked_and_compared(tab: Tab, runs: dict[str, str]) -> None:
    loss, rate = "metric:train/loss:last", "param:lr"
    tab.go(f"jobs?columns={quote(f'id,tags,{loss},{rate}')}")
    table = tab.page.get_by_role("table", name="Jobs")
    expect(table.get_by_role("row")).to_have_count(4)
    expect(table).to_contain_text(runs["0.1"])
    expect(table).to_contain_text(NASTY)
    for order in (["0.01", "0.1", "1"], ["1", "0.1", "0.01"]):
        table.get_by_role("button", name="train/loss").click()
        expect(table.get_by_role("link")).to_have_text([f"sweep {each}" for each in reversed(order)])
        tab.page.wait_for_url(re.compile("sort="))
    tab.page.go_back()
    expect(table.get_by_role("link")).to_have_text(["sweep 1", "sweep 0.1", "sweep 0.01"])
    for name in ("sweep 1", "sweep 0.01"):
        table.get_by_role("checkbox", name=f"Select {name} to compare it").check()
    tab.page.get_by_role("button", name="Compare 2 jobs").click()
    compared = tab.page.locator(".compare-table")
    expect(compared.get_by_role("row", name="train/loss")).to_contain_text(re.compile("0.25.*9|9.*0.25"))
    expect(compared.get_by_role("rowheader", name="lr", exact=True)).to_be_visible()
    expect(compared.get_by_role("rowheader", name="Engine", exact=True)).to_have_count(0)
    tab.page.get_by_role("switch", name="Only differences").click()
    expect(compared.get_by_role("rowheader", name="Engine", exact=True)).to_be_visible()
    assert tab.looked_over("compare") == tab.wrong == []


def test_runs_are_drawn(tab: Tab, runs: dict[str, str]) -> None:
    tab.go(f"jobs?name=sweep&view=parallel&columns={quote('metric:train/loss:last,param:lr')}")
    expect(tab.page.get_by_role("img", name="train/loss, lr").locator("canvas")).to_be_visible()
    tab.sees("3 of 3 jobs have a value on each axis")
    tab.page.get_by_text("Scatter plot").click()
    chart = tab.page.get_by_role("img", name="lr, train/loss, train/loss")
    expect(chart.locator("canvas")).to_be_visible()
    assert tab.looked_over("scatter") == []
    tab.page.go_back()
    expect(tab.page.get_by_role("img", name="train/loss, lr")).to_be_visible()
    assert tab.wrong == []


def test_what_is_seen_comes_as_files(tab: Tab, runs: dict[str, str]) -> None:
    tab.go(f"jobs?columns={quote('id,metric:train/loss:min')}&sort=param:lr&name=sweep")
    tab.sees("1–3 of 3 jobs")
    with tab.page.expect_download() as download:
        tab.page.get_by_role("link", name="CSV").click()
    head, *values = [row.split(",") for row in download.value.path().read_text().splitlines()]
    assert head == ["name", "id", "metric:train/loss:min"]
    assert [value[1] for value in values] == [runs["0.01"], runs["0.1"], runs["1"]]
    with tab.page.context.expect_page() as opened:
        tab.page.get_by_role("link", name="JSON").click()
    shown = json.loads(opened.value.locator("pre").inner_text())
    assert [job["metrics"]["train/loss"]["min"] for job in shown["jobs"]] == [0.25, 0.5, 9.0]


def test_hits_are_below_the_search_box(tab: Tab, runs: dict[str, str]) -> None:
    box = tab.page.get_by_role("combobox", name="Find a job by name, id")
    box.fill("sweep 0.01")
    hits = tab.page.locator(".hit")
    expect(hits).to_have_count(1)
    expect(hits).to_contain_text(runs["0.01"])
    expect(hits).to_contain_text(NASTY)
    box.press("ArrowDown")
    box.press("Enter")
    expect(tab.page).to_have_url(re.compile(runs["0.01"]))
    assert tab.wrong == []


def test_a_note_and_tags_are_edited_and_a_job_archived(jobs: LocalJobs, runs: dict[str, str], browser: Browser) -> None:
    server = jobs.start("history", "--port", "0").link
    address = server.partition("//")[2].partition("/")[0]
    link = re.search(r"http://\S+", jobs("history", "--act", "--host", *address.replace(":", " --port ").split()))
    assert link
    tab, job = Tab(browser, link[0]), runs["1"]
    page = tab.page
    tab.go(f"jobs/{job}")
    page.get_by_role("button", name="Edit…").click()
    page.get_by_role("textbox", name="Note").fill(f"too high {NASTY}")
    page.get_by_role("combobox", name="Tags").fill("rejected")
    page.get_by_role("combobox", name="Tags").press("Enter")
    page.get_by_role("switch", name="Archived").click()
    assert tab.looked_over("note") == []
    page.get_by_role("button", name="Save").click()
    tab.sees("Archived: lists leave this job out when it has ended.")
    tab.sees(f"too high {NASTY}")
    kept = json.loads(jobs("note", job, "--json"))
    assert (kept["note"], kept["tags"][-1]) == (f"too high {NASTY}", "rejected")
    assert {"sweep", NASTY} < set(kept["tags"])
    table = page.get_by_role("table", name="Jobs")
    tab.go("jobs?tag=rejected")
    tab.sees("No matching jobs.")
    tab.go("jobs?tag=rejected&archived=only")
    expect(table.get_by_role("link")).to_have_text(["sweep 1"])
    jobs("archive", "--undo", job)
    tab.go("jobs?tag=sweep")
    expect(table.get_by_role("row")).to_have_count(4)
    assert tab.wrong == []
