"""Measures pods started a second on simulated nodes (kwok) of a real control plane, beside a bare Indexed Job.

Both start the same pods, in turns on one cluster: with the limits to calls of Kubernetes' own controllers and scheduler
as they are, and with higher ones. The clock goes from the ask to the last pod that runs, which kwok's log tells without
a call; howdah's allocator must have granted all of them, too. kwok is built once from its Go module.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.report import Report, alternate
from bench.temp_home import temp_home
from howdah.client.engine_registry import settings_for
from howdah.config.settings import variable_of
from howdah.engines import NO_PREFERENCES, MasterContext
from howdah.engines.kubernetes import manifests
from howdah.engines.kubernetes.allocator import KubernetesAllocator
from howdah.engines.options import engine_options
from howdah.engines.pull_launch import LaunchOffers
from howdah.sandbox import KubernetesSandbox
from howdah.sandbox.kubernetes import namespaces
from howdah.sandbox.kubernetes.daemons import KubernetesDaemons
from howdah.sandbox.kubernetes.record import KubernetesRecord
from howdah.sandbox.kubernetes.roles import CONTROL, NAMESPACE
from howdah.spec import JobSpec, Outcome, Resources, Role, StagedJob, State
from howdah.spec.events import Allocated
from howdah.storage.content_cache import local_directory

NODES, PODS, OF_BARE = 100, 1000, 1.0
ROUNDS, ROUNDS_OF_OWN_LIMITS = 3, 1
"""With Kubernetes' own limits the Indexed Job is as fast as the limit lets it be, and a round takes minutes."""
LIMIT_S, BUILD_LIMIT_S = 300.0, 3600.0
NEVER_S = 86400
"""A node counts as lost after so long: the simulated ones renew no leases, which would cost calls in both runs."""
CALLS_A_SECOND = 1000
"""The higher limit. Kubernetes' own are 20 for the controllers and 50 for the scheduler."""
KWOK, SIMULATED = "0.8.0", "kwok.x-k8s.io/node"
_SOURCE = Path(__file__).with_name("kwok")
_RUNS = re.compile(rb"Patch pod.*?\b%b/([a-z0-9.-]+)" % NAMESPACE.encode())


def measure(report: Report) -> None:
    """Measure both with either limit."""
    if os.geteuid() != 0:
        print("  a Kubernetes sandbox needs root: nothing measured")
        return
    with temp_home() as home:
        kwok = build_kwok(local_directory())
        if kwok is None:
            return
        with KubernetesSandbox(home / "kubernetes", nodes=1, expiry_s=NEVER_S) as sandbox, _nodes(sandbox, kwok):
            _configure(sandbox)
            _compare(report, "Kubernetes' own limits", sandbox, home, ROUNDS_OF_OWN_LIMITS)
            _raise_limits(sandbox)
            _compare(report, f"{CALLS_A_SECOND} calls a second", sandbox, home, ROUNDS)


def _compare(report: Report, limits: str, sandbox: KubernetesSandbox, home: Path, rounds: int) -> None:
    print(f"  {PODS} pods on {NODES} nodes, started a second; {limits}:")
    subjects = {"Indexed Job": lambda: _indexed_job(sandbox), "howdah": lambda: _howdah(sandbox, home)}
    rates = alternate(subjects, rounds, warm_ups=0)
    for name, values in rates.items():
        report.figure(f"  {name}", values, "/s")
    pairs = zip(rates["howdah"], rates["Indexed Job"], strict=True)
    ratio = report.figure("  howdah / Indexed Job", [ours / theirs for ours, theirs in pairs], "")
    report.target(f"pods started a second, of an Indexed Job's, {limits}", ratio, OF_BARE, at_least=True)


def build_kwok(cache: Path) -> Path | None:
    """Return kwok's program, built from its Go module at the first call; None, with the reason printed, if it cannot
    be built."""
    program, go = cache / "bench" / f"kwok-{KWOK}", shutil.which("go")
    if program.exists():
        return program
    if go is None:
        print("  kwok is built by Go 1.26 or newer, which is not here: nothing measured")
        return None
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as work:
        source = shutil.copytree(_SOURCE, Path(work, "source"))
        own = {"GOPATH": f"{work}/path", "GOCACHE": f"{work}/cache", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
        flags = {"GOFLAGS": "-modcacherw -buildvcs=false -mod=readonly", "GOWORK": "off"}
        fresh = Path(work, program.name)
        command = [go, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(fresh), "sigs.k8s.io/kwok/cmd/kwok"]
        print(f"  building kwok {KWOK} from its Go module, once: some minutes", flush=True)
        environment = {**os.environ, **own, **flags}
        done = subprocess.run(
            command, cwd=source, env=environment, timeout=BUILD_LIMIT_S, stderr=subprocess.PIPE, text=True
        )
        if done.returncode:
            print(f"  kwok cannot be built, nothing measured: {done.stderr[-500:]}")
            return None
        fresh.replace(program)
    return program


@contextlib.contextmanager
def _nodes(sandbox: KubernetesSandbox, kwok: Path) -> Iterator[None]:
    """Add simulated nodes, whose pods run as soon as they are there."""
    api = sandbox.api()
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}

    def add(number: int) -> None:
        metadata = {"name": f"simulated-{number}", "annotations": {SIMULATED: "fake"}, "labels": {SIMULATED: "fake"}}
        taint = {"key": SIMULATED, "value": "fake", "effect": "NoSchedule"}
        status = {"capacity": amounts, "allocatable": amounts}
        api.create("/api/v1/nodes", {"metadata": metadata, "spec": {"taints": [taint]}, "status": status})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(NODES)))
    command = [str(kwok), f"--kubeconfig={sandbox.admin_kubeconfig}", f"--config={_SOURCE}/stages.yaml"]
    command += ["--manage-all-nodes=false", f"--manage-nodes-with-annotation-selector={SIMULATED}=fake"]
    with _log(sandbox).open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _wait(lambda: len(api.ready_nodes()) == NODES + 1, f"{NODES} simulated nodes")
            yield
        finally:
            process.terminate()


def _configure(sandbox: KubernetesSandbox) -> None:
    """Let the engine find the sandbox, and choose its simulated nodes."""
    chosen = {"kubernetes.node_selector": f"{SIMULATED}=fake", "kubernetes.tolerations": SIMULATED}
    os.environ.update({variable_of(name): value for name, value in {**sandbox.settings(), **chosen}.items()})


def _raise_limits(sandbox: KubernetesSandbox) -> None:
    """Start controllers and scheduler again, so that they may call as often as those of a large cluster."""
    record = KubernetesRecord.load(sandbox.run_dir)
    assert record is not None
    daemons = KubernetesDaemons(sandbox.run_dir, record, sandbox.cache)
    roles = [daemons.role(name) for name in ("controllers", "scheduler")]
    daemons.stop([role.name for role in roles], signal.SIGKILL)
    for role in roles:
        limits = [f"--kube-api-qps={CALLS_A_SECOND}", f"--kube-api-burst={CALLS_A_SECOND}"]
        command, environment = [*daemons.configuration.command(role), *limits], {"PATH": namespaces.search_path()}
        namespaces.spawn(daemons.processes[CONTROL].pid, command, environment, daemons.log(role.name))
    daemons.wait_listening(roles)


def _howdah(sandbox: KubernetesSandbox, home: Path) -> float:
    """Let the allocator of a master, which is this process, ask for all pods at once; return pods a second."""
    job_id, staged = f"kubernetes-bench-{time.time_ns()}", _staged(home)
    directory, path = home / job_id, f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    directory.mkdir()
    sandbox.api().create(path, manifests.bootstrap_map(job_id, []))
    launches = LaunchOffers(b"0" * 32, (), ())
    context = MasterContext(job_id, staged, directory.as_uri(), "127.0.0.1", 1, launches)

    async def master() -> float:
        allocator = await KubernetesAllocator.open(context)
        all_run = asyncio.create_task(asyncio.to_thread(_seconds, sandbox, job_id))
        granted, started = 0, time.monotonic()
        allocator.request("worker", PODS)
        while granted < PODS:
            granted += sum(isinstance(event, Allocated) for event in await allocator.poll())
        seconds = max(time.monotonic() - started, await all_run)
        await allocator.unregister(Outcome(State.SUCCEEDED))
        return seconds

    seconds = asyncio.run(asyncio.wait_for(master(), LIMIT_S))
    _remove(sandbox, f"{manifests.JOB}%3D{job_id}")
    return PODS / seconds


def _staged(home: Path) -> StagedJob:
    job = JobSpec({"worker": Role("true", PODS, Resources(256))})
    return StagedJob(job, home.as_uri(), user="bench", settings=settings_for({"engine": "kubernetes"}).values)


def _indexed_job(sandbox: KubernetesSandbox) -> float:
    """Let an Indexed Job create pods like those of howdah; return pods a second."""
    api, staged = sandbox.api(), _staged(sandbox.run_dir)
    name, path = f"bare-{time.time_ns()}", f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
    options = engine_options(staged.job, staged.settings, manifests.ENGINE)
    pod = manifests.task_pod(name, staged, options, "worker", name, NO_PREFERENCES, name, {})
    template = {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}
    spec = {"completions": PODS, "parallelism": PODS, "completionMode": "Indexed", "template": template}
    with ThreadPoolExecutor(1) as pool:
        all_run = pool.submit(_seconds, sandbox, name)
        api.create(path, {"metadata": {"name": name}, "spec": spec})
        seconds = all_run.result()
    api.delete(f"{path}/{name}?propagationPolicy=Background")
    _remove(sandbox, f"{manifests.JOB}%3D{name}")
    return PODS / seconds


def _seconds(sandbox: KubernetesSandbox, job: str) -> float:
    """Return after how many seconds all pods of a job have been said to run."""
    started, names = time.monotonic(), set[bytes]()
    with _log(sandbox).open("rb") as log:
        log.seek(0, os.SEEK_END)
        rest = b""

        def all_run() -> bool:
            nonlocal rest
            *lines, rest = (rest + log.read()).split(b"\n")
            found = filter(None, map(_RUNS.search, lines))
            names.update(each[1] for each in found if each[1].startswith(job.encode()))
            return len(names) == PODS

        _wait(all_run, f"{PODS} pods of {job}", lambda: f"only {len(names)}")
    return time.monotonic() - started


def _log(sandbox: KubernetesSandbox) -> Path:
    return sandbox.run_dir / "log" / "kwok.log"


def _remove(sandbox: KubernetesSandbox, selector: str) -> None:
    """Delete pods, and wait until they are gone."""
    api, path = sandbox.api(), f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={selector}"

    def are_gone() -> bool:
        with contextlib.suppress(OSError):  # on busy cores a call takes longer than it may, and goes on
            api.text(f"{path}&gracePeriodSeconds=0", "DELETE")
            return not api.get(f"{path}&limit=1")["items"]
        return False

    _wait(are_gone, "the removal of the pods")


def _wait(condition: Callable[[], bool], what: str, found: Callable[[], str] = lambda: "not") -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: {found()} within {LIMIT_S:.0f} s")
        time.sleep(0.1)
