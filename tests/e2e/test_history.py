"""Tests the history server on a real cluster: with running and ended jobs, as a job, and after a restart."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine, eventually

from howdah.sandbox import Sandbox

LOOK_S = 300.0
"""A server looks again after ten times as long as it took to look, a minute at most."""
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def howdah(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("HADOOP_CONF_DIR", raising=False)
        made = CommandLine(sandbox, tmp_path_factory.mktemp("history"))
        yield made
        made.end_all()


class Page:
    """What one history server answers; `text` is what its command printed."""

    def __init__(self, text: str) -> None:
        link = next(word for word in text.split() if word.startswith("http://") and "#token=" in word)
        self.base, _, self.token = link.partition("/#token=")

    def get(self, path: str, **query: str) -> Any:
        wanted = urllib.parse.urlencode({**query, "token": self.token})
        with urllib.request.urlopen(f"{self.base}/api/v1/{path}?{wanted}", timeout=60) as answer:
            return json.load(answer)

    def row(self, job: str) -> dict[str, Any]:
        return next((row for row in self.get("jobs", limit="500")["jobs"] if row["id"] == job), {})

    def until(self, job: str, state: str) -> dict[str, Any]:
        def as_wanted() -> dict[str, Any]:
            row = self.row(job)
            return row if row.get("state") == state else {}

        found: dict[str, Any] = eventually(as_wanted, f"{job} {state} in the list", LOOK_S)
        return found


def test_jobs_are_found_again_whatever_was_restarted(howdah: CommandLine, sandbox: Sandbox, tmp_path: Path) -> None:
    good = howdah.run("echo hello from $HOWDAH_TASK", replicas=2, name="good-one", tags=["weekly"])
    bad = howdah.run("echo so be it >&2; exit 3", name="bad-one")
    long = howdah.run("sleep 600", name="long-one")
    serving = howdah.start("history", "--port", "0")
    here = Page(serving.says("#token="))
    assert here.until(good.job, "SUCCEEDED")["duration_s"] > 0
    assert here.until(bad.job, "FAILED")["cause"] == "exit"
    living = eventually(lambda: here.row(long.job).get("url"), "the address of a living job's page", LOOK_S)
    assert here.row(long.job)["user"] == here.row(good.job)["user"]
    assert f"/proxy/{long.job}" in living
    assert [row["id"] for row in here.get("jobs", text="weekly good")["jobs"]] == [good.job]
    assert here.get("jobs", name="one", queue="root.default")["total"] + here.get("jobs", name="one")["total"] >= 3

    on_yarn = howdah("history", "--on", "yarn")
    assert on_yarn.code == 0, on_yarn.text
    there = Page(on_yarn.text)
    again = howdah("history", "--on", "yarn")
    assert Page(again.text).base == there.base
    assert "runs already" in again.text
    assert there.until(bad.job, "FAILED")["diagnostics"] == here.row(bad.job)["diagnostics"]
    remembered = howdah("list", "--history", "--state", "failed", "--json")
    assert bad.job in [json.loads(line)["id"] for line in remembered.out.splitlines()], remembered.text
    assert long.job not in remembered.text

    sandbox.stop("rm")
    try:
        told = eventually(lambda: here.get("jobs")["problems"], "word of the ResourceManager", LOOK_S)
        assert any("yarn: " in problem for problem in told)
        assert here.row(good.job)["state"] == "SUCCEEDED"
        assert here.row(long.job)["state"] == "RUNNING"
    finally:
        sandbox.start("rm")
        sandbox.wait_nodes(3)

    for page in (here, there):
        job = page.get(f"jobs/{bad.job}")
        assert (job["state"], job["failure"]["lines"]) == ("FAILED", ["so be it"])
        (task,) = page.get(f"jobs/{bad.job}/tasks")["tasks"]
        assert task["exit"] == "exit code 3: it printed last: so be it"
        log = page.get(f"jobs/{bad.job}/logs/worker:0", stream="stderr")
        assert (log["text"], log["complete"]) == ("so be it\n", True)
        found = page.get(f"jobs/{good.job}/search", text="hello from worker:1")
        assert [hit["task"] for hit in found["hits"]] == ["worker:1"]
        assert page.get("trace", of=task["container"])["job"] == bad.job
        assert page.get(f"jobs/{good.job}/curves/runs")["runs"] == []
        assert {one["name"] for one in page.get(f"jobs/{good.job}/series")["names"]} >= {"cpu", "memory_mib"}
    differ = here.get("compare", jobs=f"{good.job},{bad.job}")["spec"]
    names = ["good-one", "bad-one"]
    assert {"path": "name", "a": names[0], "b": names[1], "values": names} in differ
    traced = howdah("trace", task["container"]).out.decode()
    assert traced.splitlines()[0].split() == [bad.job, "worker:0"]
    assert "of user " in traced
    assert ", queue root.default" in traced

    others = {"HADOOP_USER_NAME": "stranger", "HOWDAH_HOME": str(tmp_path), "HADOOP_CONF_DIR": str(sandbox.conf_dir)}
    refused = howdah("trace", task["container"], **others)
    assert (refused.code, "no job of" in refused.text) == (66, True), refused.text

    howdah("cancel", long.job)
    assert here.until(long.job, "CANCELLED")["url"] == ""
    assert howdah("cancel", again.job).code == 0
    serving.process.terminate()
    assert serving.process.wait(90) == 0
