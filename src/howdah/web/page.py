"""The master's page: one document that asks `api/v1/job` and draws it, in English or Chinese.

Addresses are relative, because YARN's proxy serves it below a prefix; nothing is loaded from elsewhere; text from the
job is set as text, never as HTML.
"""

from __future__ import annotations

from typing import Any

from howdah.spec.codec import encode
from howdah.spec.view import JobView, TaskView

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def describe(view: JobView) -> dict[str, Any]:
    """The job as JSON for the page and `howdah status --json`: secrets are not in a spec, so nothing is hidden."""
    return {
        "id": view.id,
        "name": view.job.name if view.job else "",
        "engine": view.engine,
        "user": view.user,
        "host": view.host,
        "python": view.python,
        "state": view.state.value,
        "epoch": view.epoch,
        "progress": round(view.progress, 4),
        "started": view.started,
        "running": view.running,
        "finished": view.finished,
        "diagnostics": view.outcome.diagnostics if view.outcome else "",
        "last_lines": list(view.outcome.exit.lines) if view.outcome and view.outcome.exit else [],
        "outputs": list(view.outputs),
        "notes": list(view.notes),
        "tasks": [_task(task) for task in view.tasks.values()],
        "spec": encode(view.job) if view.job else {},
    }


def _task(task: TaskView) -> dict[str, Any]:
    return {
        "task": str(task.id),
        "state": task.state.value,
        "phase": task.phase,
        "attempt": task.attempt,
        "container": task.container,
        "node": task.node,
        "host": task.host,
        "pid": task.pid,
        "python": task.python,
        "program_python": task.program,
        "ports": dict(task.ports),
        "started": task.started,
        "finished": task.finished,
        "progress": task.progress,
        "memory_mib": task.memory_mib,
        "peak_mib": task.peak_mib,
        "cpu": task.cpu,
        "log_url": task.log_url if task.log_url.startswith(("http://", "https://")) else "",
        "exit": str(task.exit) if task.exit else "",
    }


HTML = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>howdah</title>
<style>
:root { color-scheme: light dark; }
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }
.FAILED { color: #c62828; } .SUCCEEDED { color: #2e7d32; } .RUNNING { color: #1565c0; }
pre { overflow-x: auto; padding: .6rem; background: #8881; }
</style></head><body>
<h1 id="title">howdah</h1><p id="summary" aria-live="polite"></p><pre id="failure" hidden></pre>
<table><thead><tr id="head"></tr></thead><tbody id="tasks"></tbody></table><ul id="notes"></ul>
<script>
"use strict";
const zh = navigator.language.startsWith("zh");
const words = zh
  ? { task: "任务", state: "状态", attempt: "次数", host: "主机", container: "容器", progress: "进度",
      memory: "内存 MiB（峰值）", cpu: "CPU 核", exit: "退出", lost: "无法连接主控程序" }
  : { task: "Task", state: "State", attempt: "Attempt", host: "Host", container: "Container", progress: "Progress",
      memory: "Memory MiB (peak)", cpu: "CPU cores", exit: "Exit", lost: "the master does not answer" };
const columns = ["task", "state", "attempt", "host", "container", "progress", "memory", "cpu", "exit"];
const element = (id) => document.getElementById(id);
const add = (parent, tag, text, className) => {
  const child = parent.appendChild(document.createElement(tag));
  child.textContent = text;
  if (className) child.className = className;
  return child;
};
document.documentElement.lang = zh ? "zh" : "en";
for (const column of columns) add(element("head"), "th", words[column]);
const percent = (value) => value === null ? "" : (100 * value).toFixed(0) + " %";
function draw(job) {
  document.title = job.name + " · " + job.state;
  element("title").textContent = job.name;
  element("summary").textContent =
    [job.id, job.state, job.user, job.engine, percent(job.progress), job.diagnostics].filter(Boolean).join(" · ");
  element("summary").className = job.state;
  element("failure").hidden = !job.last_lines.length;
  element("failure").textContent = job.last_lines.join("\\n");
  element("tasks").replaceChildren();
  for (const task of job.tasks) {
    const row = add(element("tasks"), "tr", "");
    add(row, "td", task.task);
    add(row, "td", task.state === "PENDING" ? task.phase : task.state, task.state);
    for (const text of [task.attempt, task.host || task.node]) add(row, "td", text);
    const cell = add(row, "td", task.log_url ? "" : task.container);
    if (task.log_url) { const link = add(cell, "a", task.container); link.href = task.log_url; }
    for (const text of [percent(task.progress), task.memory_mib.toFixed(0) + " (" + task.peak_mib.toFixed(0) + ")",
                        task.cpu.toFixed(2), task.exit]) add(row, "td", text);
  }
  element("notes").replaceChildren();
  for (const note of job.notes) add(element("notes"), "li", note);
}
async function refresh() {
  try {
    const answer = await fetch("api/v1/job" + location.search, { cache: "no-store" });
    if (!answer.ok) throw new Error(await answer.text());
    draw(await answer.json());
  } catch (error) {
    element("summary").textContent = words.lost + ": " + error.message;
  }
  setTimeout(refresh, 2000);
}
refresh();
</script></body></html>
""".encode()
