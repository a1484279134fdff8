"""Measures how soon a gang of two prints its first lines on Slurm and on Kubernetes, beside the bare tool and TorchX.

Each line carries its own time (`date +%s.%N`), so how logs are read takes no part in it.
"""

from __future__ import annotations

import os
import random
import re
import sys
import time
import urllib.error
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.report import Report, alternate, ratios
from bench.rivals import torchx
from bench.temp_home import HOWDAH, LIMIT_S, run, temp_home
from bench.two_lines import COMMAND, JOB
from howdah.client.clusters import engine_of
from howdah.client.recorded_events import recorded_events
from howdah.config.settings import variable_of
from howdah.sandbox import KubernetesSandbox, SlurmSandbox
from howdah.sandbox.kubernetes.api import AdminApi
from howdah.spec.events import Allocated, Event, Greeted, JobStarted, Started, WorldFormed

ROUNDS, WARM_UPS = 7, 2
TURN_S = 1.0
"""How often the sandbox's Slurm looks for batch jobs that can start."""
OF_TORCHX, BEYOND_BARE_S = 1.0, 1.0
PODS, JOBS = "/api/v1/namespaces/howdah/pods", "/apis/batch/v1/namespaces/howdah/jobs"
_EVENTS = (
    ("master runs", JobStarted),
    ("last container granted", Allocated),
    ("last executor greeted", Greeted),
    ("gang formed", WorldFormed),
    ("last program started", Started),
)


@dataclass(frozen=True)
class Run:
    """Seconds from the client's start to the later of the two first lines."""

    seconds: float
    steps: Mapping[str, float] = field(default_factory=dict)


def measure(report: Report) -> None:
    """Measure one engine after the other, each one's competitors in turns on one cluster."""
    with temp_home() as home:
        (home / "job.yaml").write_text(JOB)
        _measure_slurm(report, home)
        _measure_kubernetes(report, home)


def _measure_slurm(report: Report, home: Path) -> None:
    with SlurmSandbox(home / "slurm") as sandbox:
        os.environ.update(sandbox.env() | {"HOWDAH_PYTHON": os.path.realpath(sys.executable)})
        subjects = {"howdah": lambda: _ours("slurm", home), "sbatch": lambda: _sbatch(home), "srun": _srun}
        if rival := torchx():
            subjects["torchx"] = lambda: _torchx(rival, home)
        subjects = {name: partial(_out_of_step, subject) for name, subject in subjects.items()}
        _compare(report, "Slurm", ("srun", "sbatch"), alternate(subjects, ROUNDS, WARM_UPS))


def _measure_kubernetes(report: Report, home: Path) -> None:
    if os.geteuid() != 0:
        print("  a Kubernetes sandbox needs root: nothing measured there")
        return
    with KubernetesSandbox(home / "kubernetes") as sandbox:
        os.environ.update({variable_of(name): value for name, value in sandbox.settings().items()})
        api, image = sandbox.api(), sandbox.client()["image"]
        try:
            api.get("/apis/batch.volcano.sh/v1alpha1")
        except urllib.error.HTTPError as error:
            print(f"  torchx's scheduler `kubernetes` makes Jobs of Volcano, which is not here ({error}): left out")
        subjects = {"howdah": lambda: _ours("kubernetes", home), "Indexed Job": lambda: _indexed_job(api, image)}
        _compare(report, "Kubernetes", ("Indexed Job",), alternate(subjects, ROUNDS, WARM_UPS))


def _compare(report: Report, engine: str, bare: tuple[str, ...], runs: Mapping[str, list[Run]]) -> None:
    print(f"  howdah on {engine}, seconds since the client's start:")
    for name in runs["howdah"][-1].steps:
        report.figure(f"  {name}", [one.steps[name] for one in runs["howdah"] if name in one.steps])
    times = {name: [one.seconds for one in some] for name, some in runs.items()}
    for name, values in times.items():
        report.figure(f"{engine}, client start -> first line of both: {name}", values)
    for tool in bare:
        beyond = [ours - theirs for ours, theirs in zip(times["howdah"], times[tool], strict=True)]
        later = report.figure(f"{engine}: howdah after {tool}", beyond)
        report.target(f"{engine}: seconds after {tool}", later, BEYOND_BARE_S, " s")
        report.figure(f"{engine}: howdah / {tool}", ratios(times["howdah"], times[tool]), "")
    if "torchx" in times:
        ratio = report.figure(f"{engine}: howdah / torchx", ratios(times["howdah"], times["torchx"]), "")
        report.target(f"{engine}: of torchx's time", ratio, OF_TORCHX)


def _out_of_step(subject: Callable[[], Run]) -> Run:
    """Start in an idle cluster at any moment between two turns of its scheduler: the end of another's job brings the
    next turn forward, for whoever comes at once."""
    _wait(lambda: not run(["squeue", "--noheader"]).output, "an idle cluster")
    time.sleep(random.uniform(TURN_S, 2 * TURN_S))  # noqa: S311 - no secret
    return subject()


def _ours(engine: str, home: Path) -> Run:
    done = run([HOWDAH, "run", "--on", engine, str(home / "job.yaml")])
    id_ = done.find(rf"{engine}-[\w-]+")
    found = engine_of(id_)
    (described,) = found.describe(id_)
    events = list(recorded_events(described))
    logs = b"".join(data for heading, data in found.logs(id_, None) if heading.endswith("stdout"))
    return Run(_last(logs.decode(), done.output) - done.started, _steps(events, done.started))


def _steps(events: list[Event], started: float) -> dict[str, float]:
    moments = ((name, [event.time for event in events if isinstance(event, kind)]) for name, kind in _EVENTS)
    return {name: max(times) - started for name, times in moments if times}


def _srun() -> Run:
    done = run(["srun", "-n2", "-c1", "--mem-per-cpu=256", *COMMAND.split()])
    return Run(_last(done.output, done.output) - done.started)


def _sbatch(home: Path) -> Run:
    """Queue a script that runs both by `srun`: batch jobs start at the scheduler's next turn, others at once."""
    output = home / f"sbatch-{time.time_ns()}"
    sizes = ["-n2", "-c1", "--mem-per-cpu=256"]
    done = run(["sbatch", "--wait", f"--output={output}", *sizes, f"--wrap=srun -n2 {COMMAND}"])
    return Run(_last(output.read_text(), done.output) - done.started)


def _torchx(program: str, home: Path) -> Run:
    """Let TorchX submit both, and read what Slurm writes into the directory."""
    sizes = ["--num_replicas", "2", "--cpu", "1", "--memMB", "256"]
    done = run([program, "run", "-s", "slurm", "utils.sh", *sizes, *COMMAND.split()], cwd=home)
    number = done.find(r"slurm://\S+/\d+").rpartition("/")[2]

    def printed() -> str:
        texts = [file.read_text() for file in home.glob(f"slurm-{number}-*.out")]
        return "".join(texts) if len(texts) == 2 and all(texts) else ""

    return Run(_last(_wait(printed, f"the lines of torchx's job {number}"), done.output) - done.started)


def _indexed_job(api: AdminApi, image: str) -> Run:
    """Make the Job by one call of the API: no client's start counts against it."""
    name = f"bare-{time.time_ns()}"
    amounts = {"cpu": "1", "memory": "256Mi"}
    container = {
        "name": "main",
        "image": image,
        "command": COMMAND.split(),
        "resources": {"limits": amounts, "requests": amounts},
    }
    spec = {"completions": 2, "parallelism": 2, "completionMode": "Indexed"}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    started = time.time()
    api.create(JOBS, {"metadata": {"name": name}, "spec": {**spec, "template": template}})
    _wait(lambda: api.get(f"{JOBS}/{name}")["status"].get("succeeded") == 2, f"the end of the Job {name}")
    pods = api.get(f"{PODS}?labelSelector=job-name%3D{name}")["items"]
    text = "".join(api.text(f"{PODS}/{pod['metadata']['name']}/log") for pod in pods)
    api.delete(f"{JOBS}/{name}?propagationPolicy=Background")
    return Run(_last(text, text) - started)


def _last(text: str, output: str) -> float:
    lines = [float(found) for found in re.findall(r"^(\d+\.\d+)$", text, re.MULTILINE)]
    if len(lines) != 2:
        raise SystemExit(f"two lines were to come, not {lines}:\n{output}")
    return max(lines)


def _wait(condition: Callable[[], str | bool], what: str) -> str:
    deadline = time.monotonic() + LIMIT_S
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not within {LIMIT_S:.0f} s")
        time.sleep(0.1)
    return str(found)
