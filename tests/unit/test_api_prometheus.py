"""Tests that Prometheus reads the metrics of a job, whatever its name contains."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from sampled_job import running_job

from howdah.api import prometheus
from howdah.spec import TaskId
from howdah.spec.events import Measured
from howdah.spec.fold import fold
from howdah.spec.gpu import Gpu

WORKER = TaskId("worker", 0)


@given(st.text())
def test_any_name_is_a_label(name: str) -> None:
    view = running_job(name, memory_mib=1.5, gpus=(Gpu(name, use=0.5),))
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
    text = prometheus.format_metrics(running_job(), 200.0)
    states = next(f for f in text_string_to_metric_families(text) if f.name == "howdah_job_state")
    assert {sample.labels["state"]: sample.value for sample in states.samples}["RUNNING"] == 1.0
    assert sum(sample.value for sample in states.samples) == 1.0
