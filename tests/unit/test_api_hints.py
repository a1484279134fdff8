"""Tests that hints tell of resources that a job asked for and did not use, and of GPUs that fail or are idle."""

from __future__ import annotations

from sampled_job import running_job

from howdah.api import hints
from howdah.spec.gpu import Gpu
from howdah.spec.view import JobView


def texts(view: JobView) -> list[str]:
    return [hint.text for hint in hints.hints(view)]


def test_what_was_asked_for_and_not_used_is_a_hint() -> None:
    view = running_job(memory_mib=1000.0, peak_mib=1228.8, cpu_s=120.0)
    assert texts(view) == [
        "worker: asked for 8.0 GiB of memory a task, used at most 1.2 GiB",
        "worker: asked for 8 cores a task, used 1.2 on average",
    ]


def test_what_was_used_is_none() -> None:
    assert texts(running_job(peak_mib=7000.0, cpu_s=700.0)) == []


def test_little_is_said_of_a_short_run() -> None:
    view = running_job(peak_mib=10.0, cpu_s=1.0)
    for task in view.tasks.values():
        task.used = 120.0
    assert texts(view) == []


def test_idle_and_ill_gpus_are_hints() -> None:
    gpu = Gpu("3", use=0.1, xids=2, xid=79, ecc=1)
    view = running_job(peak_mib=7000.0, cpu_s=700.0, gpus=(gpu,), gpu_mean=0.1, waits=0.5)
    found = texts(view)
    assert found[0] == "worker:0: GPU 3 reported 2 critical errors, the last with XID 79"
    assert "worker: its GPUs were idle 90% of the time" in found
    assert "worker: its processes waited for a disk in 50% of the samples" in found
    assert texts(running_job(peak_mib=7000.0, cpu_s=700.0, starved_s=42.0)) == [
        "worker: its programs waited 42% of the time for their input streams"
    ]
