"""Invented answers of a server about a job, by default a running one, for looking at the page without a job.

The answers have the shapes of the API's document: tests/unit/test_page_dev_answers.py compares both.
"""

from __future__ import annotations

import math
import random
import time
import urllib.parse
from typing import Any

import fake_curves
import fake_logs
from fake_runs import HTML_ATTACK, STARTED, compare, jobs, row, users  # noqa: F401 - `row` is found by its name

from howdah.api.hints import MEMORY

# ruff: noqa: ARG001 - some answers are the same for all parameters

ID = "application_1795222800000_0042"
PHASES = ("asked", "allocated", "launched", "localising", "joined", "running")
FAILED_RANK = 2
FAILED_STARTS = [
    ("FAILED", "exit code 1", 31.0, 180.0),
    ("FAILED", "killed by SIGKILL (9)", 184.0, 260.0),
    ("FAILED", f"its container could not be started: {HTML_ATTACK}", 263.0, 400.0),
]
"""State, exit, begin and end of each start of the task that fails."""
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")


def parse_query(text: str) -> dict[str, str]:
    """Return the parameters of an address; commas join the values of a repeated parameter, as in a real server."""
    return {name: ",".join(values) for name, values in urllib.parse.parse_qs(text).items()}


def action_answer(action: str) -> dict[str, Any] | None:
    """Return what a master answers to an action, or None for an unknown action."""
    answers: dict[str, dict[str, Any]] = {
        **{name: {} for name in ("check", "cancel", "tensorboard/stop")},
        "save": {"saves": [[0, 2]]},
        "stacks": {
            "stacks": _stacks(),
            "uri": "",
            "problem": "",
        },
        "annotate": {"note": "", "tags": None, "archived": True, "changed": STARTED, "by": "ann"},
        "tensorboard": {"state": "starting", "url": "", "detail": ""},
    }
    return answers.get(action)


def answer(
    path: str, params: dict[str, str], kind: str = "history", count: int = 12, points: int = 0, state: str = "RUNNING"
) -> Any:
    """Return what a server of this kind answers to a call below `api/v1/`, or None for an unknown call.

    The job has `count` tasks and is in this state. Every scalar series has `points` points, unless that is 0.
    """
    if path in ("server", "session"):
        return server(kind) if path == "server" else {"path": "", "token": ""}
    if path == "jobs":
        return jobs(params)
    if path in ("users", "compare", "trace"):
        return {"users": users, "compare": compare, "trace": trace}[path](params)
    call, _, more = path.removeprefix("jobs/").partition("/")[2].partition("/")
    if call in ("", "tasks"):
        return {"": job, "tasks": tasks}[call](count, state)
    if call == "timeline":
        return timeline(count)
    if call == "stacks":
        return {"stacks": _stacks(), "uri": f"hdfs://nn/user/ann/.howdah/jobs/{ID}/stacks/1.txt", "complete": True}
    if (call, more) == ("curves", "scalars") and points:
        return {"version": 1, "unchanged": True} if "since" in params else fake_curves.many_points(points)
    named_whole = call in ("curves", "checkpoints") or more == "merged"
    name = f"{call}_{more}".rstrip("_") if named_whole else call
    found = getattr(fake_logs, name, None) or getattr(fake_curves, name, None) or globals().get(name)
    return found(params) if found else None


def server(kind: str) -> dict[str, Any]:
    only = ID if kind == "master" else None
    here = {"history": "", "link_command": "howdah page ID" if only else "howdah history"}
    return {
        "kind": kind,
        "version": "0",
        "job": only,
        "now": time.time(),
        "may_act": True,
        "engine": "yarn",
        "currency": "" if only else "EUR",
        **here,
    }


def _stacks() -> dict[str, str]:
    return {f"worker:{index}": _stack(index) for index in range(4)}


def _stack(index: int) -> str:
    place = "read (data.py:12)" if index == 2 else f"all_reduce (group.py:40) {HTML_ATTACK}"
    return f'Process {40 + index}: python train.py\nThread {40 + index} (idle): "MainThread"\n    {place}\n'


def _names(count: int) -> list[str]:
    return ["chief:0", *(f"worker:{index}" for index in range(count - 1))]


def job(count: int, state: str) -> dict[str, Any]:
    failed = {
        "task": "worker:1",
        "try_number": 1,
        "attempt": 1,
        "log_end": None,
        "node": "node7.example",
        "exit": "exit code 1",
        "exception": f"ValueError: {HTML_ATTACK}",
        "advice": "Mend the program; a task that fails in this way fails again.",
        "lines": ["Traceback (most recent call last):", '  File "train.py", line 7', f"ValueError: {HTML_ATTACK}"],
        "user_lines": [1],
    }
    save = {
        "number": 1,
        "output": 0,
        "uri": "hdfs://nn/user/ann/digits/saved/000001",
        "tasks": 8,
        "by": "ann",
        "state": "SUCCEEDED",
        "done": 8,
        "files": 12,
        "bytes": 48 << 20,
        "total": 48 << 20,
        "started": STARTED + 300,
        "finished": STARTED + 330,
        "reason": "",
        "skipped": [],
        "removed": False,
    }
    wait = {
        "since": STARTED,
        "missing": {"worker": 2},
        "reasons": [f"queue {HTML_ATTACK} is stopped: it grants nothing"],
    }
    return {
        "version": int(time.time()),
        "id": ID,
        "name": f"digits {HTML_ATTACK}",
        "user": "ann",
        "queue": "research.vision",
        "engine": "yarn",
        "framework": "tensorflow",
        "state": state,
        "epoch": 2,
        "host": "node3.example",
        "python": "3.11.9 /usr/bin/python3",
        "progress": {"PENDING": 0.0, "SUCCEEDED": 1.0}.get(state, 0.42),
        "eta_s": 1260 if state == "RUNNING" else None,
        "asked": STARTED - 120,
        "started": STARTED,
        "running": 0 if state == "PENDING" else STARTED + 31,
        "finished": STARTED + 880 if state in ENDED else 0,
        "gpu_hours": 0 if state == "PENDING" else count * 0.21,
        "diagnostics": "worker:1 on node7.example: exit code 1 (retry 3 of 3)" if state == "FAILED" else "",
        "failure": failed if state == "FAILED" else None,
        "waiting": wait if state == "PENDING" else None,
        "stacks": ["hdfs://nn/user/ann/.howdah/stacks/20261122-160340-407.txt"],
        "resumed": "hdfs://nn/user/ann/digits/checkpoints/ckpt-1200",
        "outputs": ["hdfs://nn/user/ann/digits/model"] if state == "SUCCEEDED" else [],
        "links": [{"name": "dashboard", "url": "http://example.org/", "kind": "user"}],
        "tracker_runs": [
            {"task": "chief:0", "tracker": "W&B", "run": "x7k2", "url": "https://wandb.ai/vision/digits/runs/x7k2"},
            {"task": "worker:0", "tracker": HTML_ATTACK, "run": "", "url": "javascript:alert(1)"},
        ],
        "tracker_run_count": 2,
        "notes": [{"time": STARTED + 200, "text": f"worker:1 restarted: {HTML_ATTACK}"}],
        "tensorboard_ended": None,
        "saves": [save, {**save, "number": 2, "state": "RUNNING", "done": 3, "finished": 0}],
        "can": {"save": True, "stacks": True, "tensorboard": True},
        "submitted": {
            "yaml": "name: digits\nvars: {steps: 10}\nroles:\n  worker:\n    command: python train.py ${steps}\n",
            "file": "job.yaml",
            "overrides": {"steps": "1000", "--name": "digits-again"},
        },
        "spec": {
            "name": "digits",
            "roles": {"worker": {"command": ["python", "train.py", HTML_ATTACK], "replicas": count}},
        },
        "resolved": _resolved(count),
        "captured": {
            "git_commit": "3e12c95",
            "git_dirty": True,
            "packages": {f"package-{n}": f"1.{n}" for n in range(80)},
            "command": ["howdah", "run", "job.yaml"],
            "client": "howdah 0.1.0",
            "user": "ann",
            "submitted_at": STARTED - 20,
            "variables": {"EPOCHS": "10", "NCCL_DEBUG": "WARN", "WANDB_API_KEY": "***"},
        },
        "roles": [_role("chief", 1, state), _role("worker", count - 1, state)],
        "hints": [_hint("worker", {"role": "worker", "asked": "8.0", "used": "1.2"})],
        "labels": {"team": "vision"},
        "tags": ["nightly"],
    }


def _resolved(count: int) -> dict[str, Any]:
    chief = "python train.py --epochs $EPOCHS --learning-rate 3e-4 --batch-size 256 --mixed-precision bf16 --data input"
    return {
        "name": "digits",
        "env": {"EPOCHS": "10"},
        "roles": {
            "chief": {"command": chief, "replicas": 1},
            "worker": {
                "command": ["python", "train.py", HTML_ATTACK],
                "replicas": count - 1,
                "env": {"OMP_NUM_THREADS": "4"},
            },
        },
        "inputs": [
            {"path": "hdfs://nn/data/digits/2026-11/train", "to": "input"},
            {"path": "https://example.org/data/classes.json", "to": "classes.json", "roles": ["chief"]},
        ],
        "outputs": [{"path": "hdfs://nn/user/ann/digits/model", "from": "model"}],
        "checkpoint": {"path": "hdfs://nn/user/ann/digits/checkpoints"},
        "board": {"path": "hdfs://nn/user/ann/digits/board"},
    }


def _hint(role: str, values: dict[str, Any]) -> dict[str, Any]:
    return {"task": "", "role": role, "text": MEMORY.format(**values), "template": MEMORY, "values": values}


def _role(name: str, count: int, state: str) -> dict[str, Any]:
    resources = {"memory_mib": 8192, "vcores": 4, "gpus": 1}
    states = dict.fromkeys(("running", "succeeded", "failed", "pending", "cancelled", "stopped"), 0)
    states[state.lower()] = count
    return {"name": name, "replicas": count, **states, "resources": resources}


def tasks(count: int, state: str) -> dict[str, Any]:
    rows = [_task(rank, name, state) for rank, name in enumerate(_names(count))]
    return {"version": int(time.time()), "tasks": rows}


def _task(rank: int, name: str, state: str) -> dict[str, Any]:
    container = f"container_1795222800000_0042_01_{rank + 2:06d}"
    exits = FAILED_STARTS if rank == FAILED_RANK else [("RUNNING", "", 31.0, 0.0)]
    attempts = [
        {
            "try_number": number,
            "attempt": 1,
            "container": container,
            "node": "node7",
            "started": STARTED + begin,
            "finished": end and STARTED + end,
            "exit": exit,
            "state": start_state,
            "log_url": "",
            "log_offset": 65536 * (number - 1),
        }
        for number, (start_state, exit, begin, end) in enumerate(exits, 1)
    ]
    return {
        "task": name,
        "role": name.partition(":")[0],
        "rank": rank,
        "state": "FAILED" if rank == FAILED_RANK and state == "RUNNING" else state,
        "phase": "asked" if state == "PENDING" else "running",
        "attempt": 1,
        "tries": len(attempts),
        "container": container,
        "node": f"node{rank // 4 % 40}.example",
        "host": f"node{rank // 4 % 40}.example",
        "pid": 4000 + rank,
        "python": "3.11.9 /usr/bin/python3",
        "program_python": "3.11.9 /usr/bin/python3",
        "gpus": ["0", "1"],
        "ports": {"main": 40000 + rank},
        "started": STARTED + 31 + rank % 5,
        "finished": STARTED + 400 if rank == FAILED_RANK else 0,
        "progress": (rank * 37 % 100) / 100,
        "memory_mib": 4200 + 7 * (rank * 37 % 300),
        "peak_mib": 6300,
        "cpu": 0.3 if rank == 5 else 3.2 - 0.1 * (rank % 7),
        "gpu": 0.06 if rank == 5 else 0.87 - 0.01 * (rank * 13 % 11),
        "gpu_memory_mib": 20000,
        "read_mib": 100,
        "written_mib": 3,
        "received_mib": 900,
        "sent_mib": 880,
        "data_bytes": 0,
        "data_total_bytes": 0,
        "metrics": {"examples/s": 812.0, "loss": 0.31} if rank == 0 else {},
        "exit": f"its container could not be started: {HTML_ATTACK}" if rank == FAILED_RANK else "",
        "log_url": "",
        "straggler": "steps a minute 20, its role's median 62" if rank == 5 else "",
        "notice": "",
        "attempts": attempts,
    }


def timeline(count: int) -> dict[str, Any]:
    rows = []
    for rank, name in enumerate(_names(count)):
        ends = [STARTED + share * (1 + rank % 7 / 7) for share in (4, 6, 9, 16, 17)]
        starts = [STARTED, *ends]
        spans = [
            {"phase": phase, "start": starts[at], "end": starts[at + 1] if at < 5 else 0}
            for at, phase in enumerate(PHASES)
        ]
        if rank == FAILED_RANK:
            rows += [_failed_row(name, number, spans) for number in range(1, len(FAILED_STARTS) + 1)]
        else:
            rows.append(_timeline_row(name, 1, spans, "", "RUNNING"))
    first, last = (_marked_failure(number) for number in (1, len(FAILED_STARTS)))
    failed = [("failed", "worker:1", STARTED + end, exit) for _, exit, _, end in FAILED_STARTS]
    again = [("restarted", "", STARTED + end, f"restarted: {HTML_ATTACK}") for *_, end in FAILED_STARTS[:-1]]
    marks = [
        {"time": when, "kind": kind, "task": task, "text": text}
        for kind, task, when, text in sorted(failed + again, key=lambda mark: mark[2])
    ]
    whole = {"version": 1, "from": STARTED, "to": time.time(), "job": [], "tasks": rows, "marks": marks}
    return {**whole, "first_failure": first, "last_failure": last}


def _failed_row(name: str, number: int, first: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of one start of the task that fails; `first` are the spans of its first start."""
    state, exit, begin, end = FAILED_STARTS[number - 1]
    before = STARTED + FAILED_STARTS[number - 2][3]
    spans = first[:-1] if number == 1 else [{"phase": "joined", "start": before, "end": STARTED + begin}]
    ready = [*spans[:-1], {**spans[-1], "end": STARTED + begin}]
    running = {"phase": "running", "start": STARTED + begin, "end": STARTED + end}
    return _timeline_row(name, number, [*ready, running], exit, state)


def _timeline_row(name: str, number: int, spans: list[dict[str, Any]], exit: str, state: str) -> dict[str, Any]:
    place = {"attempt": 1, "log_offset": 65536 * (number - 1)}
    return {"task": name, "try_number": number, **place, "spans": spans, "exit": exit, "state": state}


def _marked_failure(number: int) -> dict[str, Any]:
    _, exit, _, end = FAILED_STARTS[number - 1]
    return {"task": "worker:1", "try_number": number, "time": STARTED + end, "text": exit}


LEVELS = {"memory_mib": 6000.0, "received_mib_s": 90.0, "sent_mib_s": 0.0}


def series(params: dict[str, str]) -> dict[str, Any]:
    units = {"cpu": "cores", "memory_mib": "MiB", "gpu": "share", "received_mib_s": "MiB/s", "sent_mib_s": "MiB/s"}
    known = [{"name": name, "unit": unit, "kind": "sampled"} for name, unit in units.items()]
    known += [{"name": name, "unit": "", "kind": "told"} for name in ("examples/s", "loss", f"here/{HTML_ATTACK}")]
    begin, end = _moment(params.get("from") or str(STARTED)), _moment(params.get("to", ""))
    wanted = {"": (), "all": ("sampled", "told")}.get(params.get("kind", ""), (params.get("kind"),))
    found = []
    for name in (str(one["name"]) for one in known if one["kind"] in wanted):
        for task in params.get("task", "").split(","):
            noise = random.Random(f"{name}{task}")  # noqa: S311
            level = LEVELS.get(name, 1.0)
            phase, mean = noise.random() * 6, 0.4 + 0.4 * noise.random()
            waves = [mean + 0.15 * math.sin(phase + n / 25) + 0.05 * noise.random() for n in range(300)]
            values = [level * wave for wave in waves]
            points = [[STARTED + 3 * n, value * 0.9, value, value * 1.1] for n, value in enumerate(values)]
            points = [point for point in points if begin <= point[0] <= end]
            steps = [] if units.get(name) else list(range(len(points)))
            found.append({"task": task, "name": name, "unit": units.get(name, ""), "points": points, "steps": steps})
    return {"version": int(time.time() / 5), "names": known, "series": found}


def _moment(text: str) -> float:
    """Return the time that a parameter of `series` names; without one now."""
    return float(text or 0) + (0.0 if float(text or 0) > 0 else time.time())


def events(params: dict[str, str]) -> dict[str, Any]:
    since = int(params.get("since") or 0)
    facts = [{"time": STARTED + n, "kind": "Noted", "text": f"{n} {HTML_ATTACK}"} for n in range(since, 2500)]
    found = facts[:1000]
    return {"next": since + len(found), "events": found, "sentences": [fact["text"] for fact in found]}


def checkpoints(params: dict[str, str]) -> dict[str, Any]:
    whole = {"step": 1200, "format": "tensorflow", "bytes": 48 << 20, "files": 3, "valid": True, "reason": ""}
    uri = "hdfs://nn/user/ann/digits/checkpoints/ckpt-1200"
    return {"checkpoints": [{"uri": uri, "name": "ckpt-1200", "modified": STARTED, **whole}], "errors": []}


def checkpoints_tensors(params: dict[str, str]) -> dict[str, Any]:
    one = {"dtype": "float32", "shape": [784, 128], "count": 100352, "bytes": 401408}
    return {"uri": params.get("uri", ""), "tensors": [{"name": f"layer{n}/kernel", **one} for n in range(200)]}


def checkpoints_statistics(params: dict[str, str]) -> dict[str, Any]:
    histogram = [[n / 10, n / 10 + 0.1, 1000 - 10 * n * n] for n in range(-9, 9)]
    numbers = {"min": -0.91, "max": 0.9, "mean": 0.001, "std": 0.2, "zeros": 3, "nan": 0, "infinite": 0}
    size = {"dtype": "float32", "shape": [784, 128], "count": 100352, "sampled": 100352}
    return {"name": params.get("name", ""), **size, **numbers, "histogram": histogram}


def trace(params: dict[str, str]) -> dict[str, Any]:
    who = {"name": "digits", "state": "RUNNING", "user": "alice", "queue": "prod", "engine": "yarn"}
    task = {"task": "worker:1", "role": "worker", "index": 1, "rank": 1, "attempt": 1}
    where = {"host": "node2", "container": "container_1", "pid": 4711, "gpus": ["0"], "since": 1.0, "until": 0.0}
    return {"job": ID, **who, **task, **where, "url": "", "engine_facts": {}}
