"""Tests the TensorBoard of a job on a real cluster: it shows what the program writes, to those who have its link."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine, eventually
from planned_environment import planned_python

from howdah.client.tensorboard_install import REQUIREMENTS
from howdah.sandbox import Sandbox
from howdah.staging import virtual_environments

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("board_programs") / "curves_tf.py"

OPEN_S = 330.0
"""Until a TensorBoard has a container, what it needs, and listens."""
pytestmark = pytest.mark.timeout(1800)  # where the environments are made first


@pytest.fixture
def line(sandbox: Sandbox, tmp_path: Path) -> Iterator[CommandLine]:
    shutil.copy(PROGRAM, tmp_path)
    made = CommandLine(sandbox, tmp_path)
    yield made
    made.end_all()


@pytest.fixture(scope="module", autouse=True)
def its_environment(sandbox: Sandbox) -> None:
    """TensorBoard's, which is in the user's own cache, so that it is made once and not for each run of the tests."""
    here = virtual_environments.environment_path(REQUIREMENTS)
    with pytest.MonkeyPatch.context() as own:
        own.delenv("HOWDAH_HOME")
        archive = virtual_environments.pack(virtual_environments.ensure_environment(REQUIREMENTS, print), print)
    here.parent.mkdir(parents=True, exist_ok=True)
    for path in (archive, archive.with_name(here.name)):
        link = here.parent / path.name
        if not link.exists():  # another module may have needed it, too, and made it or linked it
            link.symlink_to(path)


def tensorflow() -> str:
    kept = {name: value for name, value in os.environ.items() if name not in ("HOWDAH_HOME", "HADOOP_CONF_DIR")}
    command = [Path(sys.executable).with_name("howdah"), "plan", "--on", "local", "--json"]
    job = ROOT / "examples" / "digits-tensorflow" / "job.yaml"
    done = subprocess.run([*command, job], env=kept, capture_output=True, text=True, timeout=500, check=True)
    return planned_python(done.stdout)


class Browser:
    """Keeps cookies, as people's do."""

    def __init__(self, link: str) -> None:
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        self.base = link.partition("?")[0]
        self.first = self.get(link)

    def get(self, url: str) -> str:
        with self._opener.open(url, timeout=120) as answer:
            return bytes(answer.read()).decode()

    def scalars(self, run: str, tag: str) -> Any:
        try:
            return json.loads(self.get(f"{self.base}data/plugin/scalars/scalars?run={run}&tag={tag}"))
        except OSError:  # not read yet
            return []


def _on_this_machine(line: CommandLine, *arguments: str) -> Browser:
    """A TensorBoard that runs here until the test ends."""
    started = line.start("tensorboard", *arguments)
    return Browser(eventually(lambda: re.findall(r"http://\S+(?=\n)", started.text), "its link", OPEN_S)[0])


def _by_the_pages_buttons(line: CommandLine, job: str) -> None:
    """Started in a real browser through the ResourceManager's proxy; its link there leads to the curve; and stopped."""
    if find_spec("playwright") is None:
        return
    from browser import Tab, chromium, missing

    if missing():
        return
    with chromium() as browser:
        tab = Tab(browser, json.loads(line("page", "--json", job).out)["url"])
        tab.page.get_by_role("button", name="Start TensorBoard").click()
        link = tab.page.get_by_role("link", name="TensorBoard", exact=True)
        link.wait_for(timeout=OPEN_S * 1000)
        with tab.page.context.expect_page() as opened:
            link.click()
        opened.value.set_default_timeout(120_000)  # all of TensorBoard's page
        card = opened.value.locator("scalar-card").filter(has_text="loss")
        card.locator("line-chart").wait_for()
        card.locator("tb-data-table-content-row").first.wait_for()  # a run, with its values
        tab.page.get_by_role("button", name="Stop TensorBoard").click()
        tab.page.get_by_role("button", name="Start TensorBoard").wait_for()
        assert tab.wrong == []


@pytest.fixture
def job(line: CommandLine) -> str:
    """The id of a job on YARN that writes a curve until it is cancelled."""
    file = line.job_file(
        f"{tensorflow()} curves_tf.py",
        memory="1GiB",
        name="curves",
        files=["curves_tf.py"],
        env={"TF_CPP_MIN_LOG_LEVEL": "2"},
        board={"local": "eventLog", "every": "1s"},
    )
    running = line.start("run", "--on", "yarn", file)
    running.says("worker:0 runs")
    return str(running.job)


def test_beside_a_job(line: CommandLine, job: str) -> None:
    opened = line.start("tensorboard", job).done(OPEN_S)
    assert opened.code == 0, opened.text
    link = opened.out.decode().strip()
    assert f"TensorBoard: {link}" in line("status", job).text
    browser = Browser(link)
    assert "TensorBoard" in browser.first
    first = eventually(lambda: browser.scalars(".", "loss"), "the curve")
    eventually(
        lambda: [point for point in browser.scalars(".", "loss") if point[1] > first[-1][1]], "the curve to go on"
    )
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{browser.base}data/runs", timeout=120)
    assert line("tensorboard", job, "--stop").code == 0
    eventually(lambda: "TensorBoard has ended: cancelled by" in line("status", job).text, "its end")


def test_by_the_pages_buttons_unused_and_after_the_job(line: CommandLine, job: str) -> None:
    _by_the_pages_buttons(line, job)
    again = line.start("tensorboard", job, "--idle", "0.3").done(OPEN_S)
    assert again.code == 0, again.text
    browser = Browser(again.out.decode().strip())
    seen = eventually(lambda: browser.scalars(".", "loss"), "the curve")
    eventually(lambda: "no request" in line("status", job).text, "it to end by itself")
    assert line("cancel", job).code == 0
    assert line.status(job)["state"] == "CANCELLED"

    later = _on_this_machine(line, job)
    kept = eventually(lambda: later.scalars(".", "loss"), "the curve of long ago")
    assert kept[-1][1] >= seen[-1][1]  # of a long curve it keeps a thousand points, and always the last
    assert "nothing to show yet" in _on_this_machine(line, "--name", "of no job").first
    everybody = line.start("tensorboard", "--on", "yarn").done(OPEN_S)
    assert everybody.code == 0, everybody.text
    later = Browser(everybody.out.decode().strip())
    assert eventually(lambda: later.scalars(f"curves_{job}", "loss"), "the curve among all jobs'")
    line("cancel", everybody.job)
