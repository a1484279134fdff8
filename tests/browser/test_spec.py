"""Tests that what a job's page says of its spec can be used: both job files, and the command to run it again."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright")
from browser import Tab, missing
from local_jobs import LocalJobs
from playwright.sync_api import Browser

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(300)]

JOB = """
name: copied # password: hunter2
framework: pytorch
roles:
  worker:
    command: |
      export DB_PASS=hunter2
      mkdir -p model; echo begun --password hunter2
    replicas: 2
    resources: { memory: 128MiB, vcores: 1 }
  extra: { command: [echo, --token, hunter2], resources: { memory: 64MiB }, env: { API_KEY: hunter2, RATE: "0.1" } }
env: { DB_PASSWORD: hunter2 }
secrets: { A_TOKEN: env:HOME }
outputs:
  - { path: made, from: model, tasks: "worker:0", overwrite: true, save: { every: 90s } }
timeouts: { stop: 1500ms, run: 1h30min }
"""


def test_both_specs_are_planned_as_they_are_copied(jobs: LocalJobs, browser: Browser) -> None:
    file = jobs.directory / "job.yaml"
    file.write_text(JOB)
    run = jobs.start("run", str(file))
    assert run.done() == 0, run.text
    tab = Tab(browser, jobs("page", run.job).split()[-1])
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.go(f"jobs/{run.job}/spec")
    for shown in ("memory 128MiB", "timeouts.run", "save.every", "env.RATE"):
        tab.page.get_by_text(shown, exact=True).first.wait_for()
    for default in ("gpus 0", "timeouts.gang 1h", "strategy upload", "restarts 3"):
        assert tab.page.locator(".muted").get_by_text(default, exact=True).count()
    assert "hunter2" not in tab.page.content()
    assert tab.looked_over("spec") == []
    for kind, keys in (("submitted", ["from: model", "memory: 128MiB"]), ("resolved", ["from: model", "run: 90min"])):
        tab.go(f"jobs/{run.job}/spec?kind={kind}")
        tab.page.locator("pre", has_text=keys[1]).wait_for()
        tab.page.evaluate("navigator.clipboard.writeText('nothing')")
        tab.page.get_by_role("button", name="Copy", exact=True).click()
        tab.sees("Copied")
        text = str(tab.page.evaluate("navigator.clipboard.readText()"))
        assert all(key in text for key in keys)
        assert "hunter2" not in text
        copy = jobs.directory / f"{kind}.yaml"
        copy.write_text(text)
        planned = jobs("plan", str(copy))
        assert "env.DB_PASSWORD: *** stands for a value that was hidden" in planned
        assert "copied: pytorch on local" in planned
        tab.page.locator(".ant-message-notice").first.wait_for(state="detached")
    assert tab.wrong == []


def test_run_again_and_events(jobs: LocalJobs, browser: Browser) -> None:
    file = jobs.directory / "job.yaml"
    file.write_text("name: again\nvars: {words: some}\nroles: {worker: {command: 'echo ${words} words'}}\n")
    run = jobs.start("run", "--set", "words=other", str(file))
    assert run.done() == 0, run.text
    tab = Tab(browser, jobs("page", run.job).split()[-1], language="zh-CN")
    tab.page.get_by_role("button", name="再次运行…").click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_text(f"howdah submit --like {run.job}", exact=True).wait_for()
    dialog.get_by_text("echo ${words} words").wait_for()
    assert not tab.looked_over("run again")
    tab.page.keyboard.press("Escape")
    again = jobs.start("run", "--like", run.job, "--set", "retries=2")
    assert again.done() == 0, again.text
    assert "other words" in again.text
    history = Tab(browser, jobs.start("history", "--port", "0").link)
    history.go(f"jobs/{again.job}/spec")
    changed = history.page.get_by_role("group", name="Changed since the last run of this name")
    changed.get_by_role("row", name="retries – 2").wait_for()
    assert history.page.get_by_role("link", name=run.job).count()
    assert not changed.get_by_role("row", name="queue").count()
    assert not history.looked_over("changes")
    assert history.wrong == []
    tab.go(f"jobs/{run.job}/events?task=worker:0")
    tab.sees("worker:0 已在 127.0.0.1 就绪")
    tab.go(f"jobs/{run.job}/events?kind=JobFinished")
    tab.sees("作业已结束：SUCCEEDED")
    assert not tab.page.get_by_text("worker:0 已在 127.0.0.1 就绪").count()
    fields = tab.page.get_by_role("button", name="事件 作业结束 的字段", expanded=False)
    fields.focus()
    tab.page.keyboard.press("Enter")
    tab.page.get_by_role("row", name="state: SUCCEEDED").wait_for()
    assert tab.page.get_by_role("button", name="事件 作业结束 的字段", expanded=True).count() == 1
    assert not tab.looked_over("events")
    assert tab.wrong == []
