"""Tests that both specs on a job's page can be copied as job files which `howdah plan` accepts."""

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
