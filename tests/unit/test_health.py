"""What is told of a job beside its series: for Prometheus, as hints, when it is done."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from howdah.api import hints, prometheus
from howdah.api.handlers.logs import tasks_of
from howdah.spec import JobSpec, Resources, Role, State, TaskId
from howdah.spec.eta import eta
from howdah.spec.events import JobStarted, Measured, Started, Used, WorldFormed
from howdah.spec.fold import fold
from howdah.spec.gpu import Gpu
from howdah.spec.usage import Usage
from howdah.spec.view import JobView

WORKER = TaskId("worker", 0)


def running(name: str = "job", **used: object) -> JobView:
    """A job whose two workers began at second 100 and were sampled at second 200."""
    job = JobSpec({"worker": Role("true", 2, Resources(memory_mib=8192, vcores=8))}, name=name)
    view = fold([JobStarted(90.0, "local-1", "local", "me", job), WorldFormed(99.0, 1)])
    for index in range(2):
        task = TaskId("worker", index)
        fold([Started(100.0, task, 1, 1, 4711), Used(200.0, task, Usage(**used))], view)  # type: ignore[arg-type]
    return view


@given(st.text())
def test_any_name_is_a_label(name: str) -> None:
    view = running(name, memory_mib=1.5, gpus=(Gpu(name, use=0.5),))
    fold([Measured(150.0, WORKER, name, 0.25, 7)], view)
    text = prometheus.format_metrics(view, 200.0)
    families = {family.name: family.samples for family in text_string_to_metric_families(text)}
    samples = families["howdah_task_memory_bytes"]
    assert {sample.value for sample in samples} == {1.5 * (1 << 20)}
    expected = name.encode("utf-8", "replace").decode()
    assert samples[0].labels["job_name"] == expected
    assert families["howdah_task_metric"][0].labels["name"] == expected
    assert families["howdah_gpu_use_ratio"][0].value == 0.5


def test_states_are_one_of_all() -> None:
    text = prometheus.format_metrics(running(), 200.0)
    states = next(f for f in text_string_to_metric_families(text) if f.name == "howdah_job_state")
    assert {sample.labels["state"]: sample.value for sample in states.samples}["RUNNING"] == 1.0
    assert sum(sample.value for sample in states.samples) == 1.0


def texts(view: JobView) -> list[str]:
    return [hint.text for hint in hints.hints(view)]


def test_what_was_asked_for_and_not_used_is_a_hint() -> None:
    view = running(memory_mib=1000.0, peak_mib=1228.8, cpu_s=120.0)
    assert texts(view) == [
        "worker: asked for 8.0 GiB of memory a task, used at most 1.2 GiB",
        "worker: asked for 8 cores a task, used 1.2 on average",
    ]


def test_what_was_used_is_none() -> None:
    assert texts(running(peak_mib=7000.0, cpu_s=700.0)) == []


def test_little_is_said_of_a_short_run() -> None:
    view = running(peak_mib=10.0, cpu_s=1.0)
    for task in view.tasks.values():
        task.used = 120.0
    assert texts(view) == []


def test_idle_and_ill_gpus_are_hints() -> None:
    gpu = Gpu("3", use=0.1, xids=2, xid=79, ecc=1)
    view = running(peak_mib=7000.0, cpu_s=700.0, gpus=(gpu,), gpu_mean=0.1, waits=0.5)
    told = texts(view)
    assert told[0] == "worker:0: GPU 3 reported 2 critical errors, the last with XID 79"
    assert "worker: its GPUs were idle 90% of the time" in told
    assert "worker: its processes waited for a disk in 50% of the samples" in told
    assert texts(running(peak_mib=7000.0, cpu_s=700.0, starved_s=42.0)) == [
        "worker: its programs waited 42% of the time for their input streams"
    ]


def progress(view: JobView, *told: tuple[float, float]) -> JobView:
    return fold([Used(time, WORKER, Usage(progress=value)) for time, value in told], view)


def test_when_it_is_done_follows_from_how_fast_it_goes_since_it_began() -> None:
    view = progress(running(), (300.0, 0.5), (310.0, 0.6))
    assert eta(view, 310.0) == 40.0
    assert eta(view, 330.0) == 20.0
    assert eta(replace(view, state=State.SUCCEEDED), 310.0) is None


def test_nothing_is_said_of_what_has_just_begun_or_does_not_tell() -> None:
    assert eta(running(), 300.0) is None
    assert eta(progress(running(), (300.0, 0.5)), 310.0) is None
    assert eta(progress(running(), (300.0, 0.5), (301.0, 0.6)), 310.0) is None


def test_progress_is_the_mean_of_those_who_tell_else_the_share_that_is_done() -> None:
    view = progress(running(), (300.0, 0.5))
    assert view.progress == 0.5
    view = running()
    view.tasks[WORKER].state = State.SUCCEEDED
    assert view.progress == 0.5
    view.tasks[TaskId("worker", 1)].usage = Usage(progress=0.5)
    assert view.progress == 0.75


def test_tasks_are_named_one_by_one_by_role_and_by_ranks() -> None:
    job = JobSpec({"ps": Role("true", 1), "worker": Role("true", 12)})
    view = fold([JobStarted(0.0, "local-1", "local", "me", job)])
    assert list(map(str, tasks_of(view, "worker:3"))) == ["worker:3"]
    assert list(map(str, tasks_of(view, "worker:9-11,ps"))) == ["worker:9", "worker:10", "worker:11", "ps:0"]
    assert len(tasks_of(view, "")) == len(tasks_of(view, "*")) == 13


def test_who_sees_one_sample_only_knows_as_much() -> None:
    view = fold([Used(400.0, WORKER, Usage(progress=0.6, first_progress=0.5, first_at=300.0))], running())
    assert eta(view, 400.0) == 400.0
