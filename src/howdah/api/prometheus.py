"""The present metrics of a job and its tasks in Prometheus' text format (version 0.0.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from howdah.spec.eta import eta
from howdah.spec.gpu import Gpu
from howdah.spec.task import JOB_STATES
from howdah.spec.usage import Usage
from howdah.spec.view import JobView, TaskView

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MIB = 1 << 20
Value = Callable[[Usage], float | None]
_TASKS: tuple[tuple[str, str, str, Value], ...] = (
    ("task_memory_bytes", "gauge", "Resident memory of the task's processes.", lambda u: u.memory_mib * _MIB),
    ("task_memory_peak_bytes", "gauge", "Largest memory of this run of its program.", lambda u: u.peak_mib * _MIB),
    ("task_cpu_cores", "gauge", "CPU cores in use.", lambda u: u.cpu),
    ("task_cpu_seconds_total", "counter", "CPU time of this run of its program.", lambda u: u.cpu_s),
    ("task_read_bytes_total", "counter", "Bytes read from storage.", lambda u: u.read_mib * _MIB),
    ("task_written_bytes_total", "counter", "Bytes written to storage.", lambda u: u.written_mib * _MIB),
    ("task_log_bytes_total", "counter", "Bytes that the program printed.", lambda u: u.log_bytes),
    ("task_progress_ratio", "gauge", "Progress that the program reports.", lambda u: u.progress),
    ("task_gpu_mean_ratio", "gauge", "Mean use of its GPUs since its program began.", lambda u: u.gpu_mean),
)
_NETWORK: tuple[tuple[str, str, str, Value], ...] = (
    ("received_bytes_total", "counter", "Received, of the task or its whole node.", lambda u: u.received_mib * _MIB),
    ("sent_bytes_total", "counter", "Sent, of the task or its whole node.", lambda u: u.sent_mib * _MIB),
)
_GPUS: tuple[tuple[str, str, str, Callable[[Gpu], float | None]], ...] = (
    ("gpu_use_ratio", "gauge", "Share of time in which a kernel ran.", lambda g: g.use),
    ("gpu_memory_bytes", "gauge", "Memory in use.", lambda g: None if g.memory_mib is None else g.memory_mib * _MIB),
    ("gpu_celsius", "gauge", "Temperature.", lambda g: g.celsius),
    ("gpu_watts", "gauge", "Power drawn.", lambda g: g.watts),
    ("gpu_ecc_errors_total", "counter", "Uncorrected memory errors.", lambda g: g.ecc),
    ("gpu_xids_total", "counter", "Critical errors of the driver since the program began.", lambda g: g.xids),
)


def format_metrics(view: JobView, now: float) -> str:
    """Return the metrics as text."""
    return "".join(_metric_lines(view, now))


def _metric_lines(view: JobView, now: float) -> Iterator[str]:
    job = {"job_id": view.id, "job_name": view.job.name if view.job else "", "user": view.user}
    left = eta(view, now)
    yield from _family("job_progress_ratio", "gauge", "Progress of the whole job.", [(job, view.progress)])
    yield from _family("job_eta_seconds", "gauge", "Estimated seconds until the job is done.", [(job, left)])
    states = [({**job, "state": state.value}, float(view.state is state)) for state in JOB_STATES]
    yield from _family("job_state", "gauge", "1 for the state of the job.", states)
    tasks = [({**job, **_task(task)}, task) for task in view.tasks.values()]
    states = [({**labels, "state": task.state.value}, 1.0) for labels, task in tasks]
    yield from _family("task_state", "gauge", "1 for the state of the task.", states)
    for name, kind, about, value in _TASKS:
        yield from _family(name, kind, about, [(labels, value(task.usage)) for labels, task in tasks])
    attempts = [(labels, task.attempt) for labels, task in tasks]
    yield from _family("task_attempt", "gauge", "Number of the present attempt.", attempts)
    networked = [({**labels, "of": task.usage.network}, task) for labels, task in tasks if task.usage.network]
    for name, kind, about, value in _NETWORK:
        yield from _family(name, kind, about, [(labels, value(task.usage)) for labels, task in networked])
    gpus = [({**labels, "gpu": gpu.id, "gpu_name": gpu.name}, gpu) for labels, task in tasks for gpu in task.usage.gpus]
    for name, kind, about, of_gpu in _GPUS:
        yield from _family(name, kind, about, [(labels, of_gpu(gpu)) for labels, gpu in gpus])
    metrics = [
        ({**labels, "name": name}, points[-1].value) for labels, task in tasks for name, points in task.metrics.items()
    ]
    yield from _family("task_metric", "gauge", "Latest value reported by howdah.program.metric.", metrics)


def _task(task: TaskView) -> dict[str, str]:
    return {"task": str(task.id), "role": task.id.role, "node": task.node or task.host}


def _family(name: str, kind: str, about: str, values: Sequence[tuple[dict[str, str], float | None]]) -> Iterator[str]:
    known = [(labels, value) for labels, value in values if value is not None]
    if known:
        yield f"# HELP howdah_{name} {about}\n# TYPE howdah_{name} {kind}\n"
        for labels, value in known:
            pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
            yield f"howdah_{name}{{{pairs}}} {float(value)!r}\n"


def _escaped(text: str) -> str:
    """Escape backslash, quote and line end; a lone surrogate, which UTF-8 cannot hold, becomes a question mark."""
    safe = text.encode("utf-8", "replace").decode()
    return safe.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
