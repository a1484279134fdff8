"""Tests `howdah notebook`: JupyterLab in a real browser, its time limit, and a home that outlives it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, chromium
from submitted_job import LIMIT_S, until

HOWDAH = str(Path(sys.executable).with_name("howdah"))
LIMIT_MS = LIMIT_S * 1000
CELLS = ["print('sum', 20 + 22)", "import matplotlib.pyplot as plot\nplot.plot([1, 3, 2]);"]

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Give a home of howdah's own; environments stay in the user's cache."""
    state = tmp_path_factory.mktemp("state")
    cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    own = {"XDG_STATE_HOME": str(state), "HOME": str(state), "XDG_CACHE_HOME": cache}
    return {name: value for name, value in os.environ.items() if name != "HOWDAH_HOME"} | own


class Notebook:
    """A notebook that a command has started, and leads to until it is killed."""

    def __init__(self, process: subprocess.Popen[str], log: Path, environment: dict[str, str]) -> None:
        self.process, self.environment = process, environment
        assert process.stdout
        self.link = process.stdout.readline().strip()
        assert self.link.startswith("http://127.0.0.1:"), log.read_text()
        self.address, _, self.token = self.link.partition("/lab?token=")
        self.job = re.findall(r"submitted (\S+) to", log.read_text())[0]

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Call JupyterLab's own API."""
        request = urllib.request.Request(f"{self.address}/{path}", method=method)
        request.add_header("Authorization", f"token {self.token}")
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(request, data, timeout=60) as answer:
            return json.load(answer)

    def howdah(self, *arguments: str) -> str:
        done = subprocess.run(
            [HOWDAH, *arguments], env=self.environment, capture_output=True, text=True, timeout=LIMIT_S
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def notebook(environment: dict[str, str], directory: Path, *options: str) -> Iterator[Notebook]:
    requirements = directory / "requirements.txt"
    requirements.write_text("jupyterlab\nmatplotlib\n")
    command = [HOWDAH, "notebook", "--requirements", str(requirements), "--for", "30min", *options]
    log = directory / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        found = None
        try:
            found = Notebook(process, log, environment)
            yield found
        finally:
            process.terminate()
            if found is not None:
                found.howdah("cancel", found.job)


@pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"no {CHROMIUM} on this machine")
def test_in_a_browser_and_again(environment: dict[str, str], tmp_path: Path) -> None:
    with notebook(environment, tmp_path, "--name", "mine", "--for", "9min") as running:
        metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        content = {"cells": list(map(_cell, CELLS)), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
        running.call("PUT", "api/contents/try.ipynb", {"type": "notebook", "content": content})
        with chromium() as browser:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(LIMIT_MS)
            page.goto(running.link.replace("/lab?", "/lab/tree/try.ipynb?"))
            page.locator(".jp-CodeCell .cm-content").first.click()
            page.get_by_text(re.compile(r"Python 3.*\| Idle")).wait_for()
            page.keyboard.press("Shift+Enter")
            page.get_by_text("sum 42").wait_for()
            page.keyboard.press("Shift+Enter")
            page.locator(".jp-OutputArea-output img").first.wait_for()
            page.get_by_text("Kernel", exact=True).first.click()
            page.get_by_text(re.compile("^Restart Kernel…?$")).first.click()
            page.locator(".jp-Dialog .jp-mod-accept").click()
            until(lambda: running.call("GET", "api/kernels")[0]["execution_state"] == "idle", "the restarted kernel")
            notices = page.get_by_text(re.compile("This job ends in [0-9] minutes"))
            notices.first.wait_for()
            until_time = running.howdah("extend", running.job, "--for", "9min")
            assert f"{running.job} goes on until " in until_time
            notices.nth(1).wait_for()
        stored = Path(environment["HOME"], "howdah-homes", "mine", "try.ipynb")
        until(stored.exists, "the stored notebook")
        running.call("PUT", "api/contents/last.txt", {"type": "file", "format": "text", "content": "at the end"})
    with notebook(environment, tmp_path, "--name", "mine") as running:
        names = {each["name"] for each in running.call("GET", "api/contents")["content"]}
        assert {"try.ipynb", "last.txt"} <= names


def test_any_program_with_a_port(environment: dict[str, str], tmp_path: Path) -> None:
    words = ("--port", "18233", "--", "python3", "-m", "http.server", "18233", "--bind", "127.0.0.1")
    command = [HOWDAH, "notebook", "--detach", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    job = done.stdout.strip()
    with subprocess.Popen([HOWDAH, "notebook", job], env=environment, stdout=subprocess.PIPE, text=True) as shown:
        assert shown.stdout
        link = shown.stdout.readline().strip()
        assert b"Directory listing" in urllib.request.urlopen(link, timeout=60).read()
        subprocess.run([HOWDAH, "cancel", job], env=environment, check=True, capture_output=True, timeout=LIMIT_S)
        assert shown.wait(LIMIT_S) == 0  # it leads nowhere any more


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--for", "5"), "--for: is '5', must be from 1min to 30d"),
        (("--for", "soon"), "--for: is 'soon', must be a duration"),
        (("--port", "8080"), "--port and a command after -- belong together"),
        (("--requirements", "nothing.txt"), "nothing.txt: No such file or directory"),
    ],
)
def test_wrong_options_are_told(arguments: tuple[str, ...], said: str, environment: dict[str, str]) -> None:
    command = [HOWDAH, "notebook", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 64
    assert said in done.stderr
    assert done.stderr.count("\n") <= 4


def _cell(source: str) -> dict[str, Any]:
    cell = {"cell_type": "code", "id": f"c{abs(hash(source))}", "source": source, "metadata": {}}
    return {**cell, "outputs": [], "execution_count": None}
