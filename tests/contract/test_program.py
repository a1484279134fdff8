"""Tests `howdah.program` in real programs with a real master; the test plays the executors."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conductor import SOURCE, run_mark
from test_executor import interpreter

from howdah.api import http_server
from howdah.client.master_client import MasterClient
from howdah.executor.identity import Identity as ExecutorIdentity
from howdah.executor.io.program_api_files import ProgramApiDir
from howdah.frameworks import world_variables
from howdah.master.app import JobMaster, MasterIdentity
from howdah.spec import Exit, JobSpec, Output, Role, StagedJob, TaskId
from howdah.spec.codec import encode
from howdah.spec.events import Measured
from howdah.testing import FakeAllocator
from howdah.wire import auth
from howdah.wire import program_protocol as wire
from howdah.wire.connection import MasterConnection, WireError
from howdah.wire.messages import Phase, SnapshotReport, Status

KEY = b"k" * 32
LIMIT_S = 120.0


class Job:
    """A master of `replicas` workers, whose programs run as far as it knows."""

    def __init__(self, directory: Path, replicas: int = 2, **fields: Any) -> None:
        self.directory, self.replicas = directory, replicas
        worker = Role("train", replicas=replicas, on_failure="restart", restarts=3, tracked=True)
        spec = JobSpec(roles={"worker": worker}, name="job", **fields)
        staged = StagedJob(spec, home=f"file://{directory}")
        self.identity = MasterIdentity("job-1", "fake", f"file://{directory}", "127.0.0.1", staged, KEY, {})
        self.sequence = 0
        self.said: dict[int, tuple[Phase, dict[str, Any]]] = {}
        self.speaking, self.over = threading.Lock(), threading.Event()
        self.programs: list[subprocess.Popen[str]] = []
        self.begin(FakeAllocator)
        self.pulse = threading.Thread(target=self._beat)
        self.pulse.start()

    def _beat(self) -> None:
        """Executors say again and again where they are."""
        while not self.over.wait(2.0):
            for index in list(self.said):
                with contextlib.suppress(WireError), self.speaking:
                    phase, fields = self.said[index]
                    self._say(index, phase, **fields)

    def begin(self, allocator: type[FakeAllocator]) -> None:
        self.ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._run(allocator)))
        self.thread.start()
        assert self.ready.wait(LIMIT_S)

    async def _run(self, allocator: type[FakeAllocator]) -> None:
        self.loop = asyncio.get_running_loop()
        self.master = JobMaster(self.identity, allocator)
        self.running = asyncio.ensure_future(self.master.run())
        while self.master.allocator is None or len(self.master.state.containers) < self.replicas:
            await asyncio.sleep(0.01)
        assert self.master.context is not None
        self.url = self.master.context.url
        self.ready.set()
        with contextlib.suppress(asyncio.CancelledError):
            self.outcome = await self.running
        if self.running.cancelled():
            await self.master.close()
            for one in gc.get_objects():  # as the kernel closes those of a process that is killed
                if isinstance(one, http_server._Connection) and one._transport._loop is self.loop:
                    one._transport.abort()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    def kill_master(self) -> None:
        """As far as anybody can tell."""
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.running.cancel)
        self.thread.join(LIMIT_S)

    def say(self, index: int, phase: Phase, **fields: Any) -> None:
        """The executor of `worker:<index>` posts its status."""
        with self.speaking:
            self._say(index, phase, **fields)

    def _say(self, index: int, phase: Phase, **fields: Any) -> None:
        self.sequence += 1
        self.said[index] = phase, fields
        task = self.master.state.tasks[TaskId("worker", index)]
        base = {"epoch": task.epoch, "ports": {"main": 4000 + index}}
        status = Status(
            task=str(task.id),
            attempt=task.attempt,
            epoch=base.pop("epoch"),
            sequence=self.sequence,
            phase=phase,
            host="127.0.0.1",
            pid=7,
            **base,
        )
        name = auth.executor_principal(str(task.id), task.attempt)
        with MasterConnection(self.url, name, auth.derive(KEY, name)) as connection:
            connection.call("POST", "/v1/executor", {**encode(status), **encode_all(fields)})

    def form(self) -> None:
        for index in range(self.replicas):
            self.say(index, Phase.JOINED)
        for index in range(self.replicas):
            self.say(index, Phase.RUNNING, program_pid=9)

    def no_copies(self) -> bool:
        """Whether none is made or wanted; the executors say of those that are made that they are done."""
        running = self.inside(lambda master: [run.number for run in master.state.snapshots.running.values()])
        for index in range(self.replicas):
            reports = tuple(SnapshotReport(number=number, done=True) for number in running)
            self.say(index, Phase.RUNNING, program_pid=9, saves=reports)
        return bool(
            self.inside(lambda master: not (master.state.snapshots.running or master.state.snapshots.requested))
        )

    def place(self, index: int) -> dict[str, str]:
        """The environment that the executor makes for the program."""
        task = self.master.state.tasks[TaskId("worker", index)]
        assert task.world is not None
        world = world_variables(task.world, task.id, job_id="job-1", job_name="job", attempt=task.attempt)
        host, _, port = self.url.removeprefix("http://").partition(":")
        work = self.directory / f"task-{index}-{task.attempt}" / "work"
        work.mkdir(parents=True, exist_ok=True)
        key = auth.derive(KEY, auth.executor_principal(str(task.id), task.attempt))
        who = ExecutorIdentity(str(task.id), task.attempt, (host, int(port)), key, work_directory=str(work))
        variables = {"PATH": os.environ["PATH"], **run_mark(), **world}
        return ProgramApiDir(who, str(work)).variables(variables, task.epoch)

    def start(self, index: int, source: str, python: str = sys.executable, **variables: str) -> subprocess.Popen[str]:
        """A program of `worker:<index>`."""
        code = f"from howdah import here\n{source}"
        program = subprocess.Popen(
            [python, "-c", code],
            env={**self.place(index), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        self.programs.append(program)
        return program

    def run(self, index: int, source: str, **options: Any) -> str:
        """What it prints."""
        return done(self.start(index, source, **options))

    def both(self, source: str) -> list[str]:
        return [done(program) for program in [self.start(index, source) for index in range(self.replicas)]]

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not holds():
            assert time.monotonic() < deadline, "it did not become so"
            time.sleep(0.02)

    def inside(self, act: Callable[[JobMaster], Any]) -> Any:
        """Do something in the master's own thread."""

        async def call() -> Any:
            return act(self.master)

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(LIMIT_S)

    def end(self) -> None:
        for program in self.programs:
            if program.poll() is None:
                program.kill()
            program.communicate()
        self.over.set()
        self.pulse.join(LIMIT_S)
        self.kill_master()
        assert not self.thread.is_alive()


def encode_all(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: encode(value) for name, value in fields.items()}


def done(program: subprocess.Popen[str]) -> str:
    out, err = program.communicate(timeout=LIMIT_S)
    assert program.returncode == 0, err
    return out.strip()


def problem(program: subprocess.Popen[str]) -> str:
    """The last line of its traceback."""
    _, err = program.communicate(timeout=LIMIT_S)
    assert program.returncode == 1, err
    return err.strip().splitlines()[-1]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path)
    job.form()
    yield job
    job.end()


def test_a_program_knows_its_place(job: Job) -> None:
    said = job.both(
        "import json; w = here.world()\n"
        "print(json.dumps([here.inside, here.task, here.role, here.index, here.rank, here.size, here.epoch,"
        " here.attempt, here.checkpoint_dir, [m.address for m in w.of('worker')], len(w), w == here.world(now=True),"
        " sorted(w.roles)]))"
    )
    addresses = ["127.0.0.1:4000", "127.0.0.1:4001"]
    rest = [1, 1, None, addresses, 2, True, ["worker"]]
    assert [json.loads(line) for line in said] == [
        [True, f"worker:{index}", "worker", index, index, 2, *rest] for index in range(2)
    ]


def test_values_come_back_as_they_were_put(job: Job) -> None:
    put = "here.put('text', 'ü\\ud800\\0'); here.put('bytes', bytes(range(256))); here.put('empty', '')"
    job.run(0, put)
    said = job.run(
        1,
        "assert here.get('text') == 'ü\\ud800\\0' and here.get('empty') == '' and here.get('no') is None\n"
        "assert here.get('bytes', wait=5) == bytes(range(256))\n"
        "assert here.keys() == ['bytes', 'empty', 'text'] and here.keys('te') == ['text']\n"
        "print(here.delete('text'), here.delete('text'), here.keys())",
    )
    assert said == "True False ['bytes', 'empty']"


def test_who_waits_is_woken(job: Job) -> None:
    waiting = job.start(1, "print('waits', flush=True); print(here.get('address', wait=600))")
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "waits\n"
    job.run(0, "here.put('address', 'h:1')")
    assert done(waiting) == "h:1"


def test_no_call_waits_for_ever(job: Job) -> None:
    assert problem(job.start(0, "here.get('never', wait=0.3)")) == (
        "howdah.program.task_identity.HereTimeout: get('never'): not within 0.3 s"
    )
    alone = problem(job.start(0, "here.barrier('start', timeout=0.3)"))
    assert alone.endswith("barrier('start'): not within 0.3 s; 1 of 2 have come; missing: worker:1")
    done(job.start(0, "try: here.barrier('start', timeout=0.2)\nexcept TimeoutError: pass"))
    job.both("here.barrier('start', timeout=600)")


def test_of_many_compare_and_set_calls_a_single_call_wins(job: Job) -> None:
    programs = [
        job.start(index % 2, "import os; print(here.swap('leader', None, str(os.getpid())))") for index in range(4)
    ]
    assert sorted(done(program) for program in programs) == ["False"] * 3 + ["True"]
    said = job.run(
        0,
        "old = here.get('leader'); print(here.swap('leader', old.encode(), 'x'), here.swap('leader', old, b'y'), "
        "here.get('leader'), here.swap('leader', b'y', None), here.get('leader'), here.swap('leader', None, None))",
    )
    assert said == "False True b'y' True None True"


def test_a_watcher_sees_what_there_is_and_what_becomes_of_it(job: Job) -> None:
    job.run(0, "here.put('w/1', 'a'); here.put('x', 'not for it')")
    watcher = job.start(
        1,
        "for change in here.watch('w/', timeout=600):\n"
        "    print(change.key, change.value, flush=True)\n"
        "    if change.key == 'w/end': break",
    )
    assert watcher.stdout is not None
    assert watcher.stdout.readline() == "w/1 a\n"
    job.run(0, "here.put('w/1', 'b')")
    assert watcher.stdout.readline() == "w/1 b\n"
    job.run(0, "here.delete('w/1')")
    assert watcher.stdout.readline() == "w/1 None\n"
    job.run(0, "here.put('w/big', b'x' * (1 << 20)); here.put('w/end', '')")
    assert "w/end" in done(watcher)
    assert job.run(0, "print(len(list(here.watch('w/', timeout=0))))") == "2"


def test_a_barrier_meets_round_by_round(job: Job) -> None:
    both = job.both(
        "import time\nfor turn in range(5):\n"
        "    if here.index == turn % 2: time.sleep(0.05)\n"
        "    here.put(f'turn/{here.index}', str(turn)); here.barrier('turn')\n"
        "    other = here.get(f'turn/{1 - here.index}')\n"
        "    assert other == str(turn), other\n"
        "    here.barrier('read', roles='worker')\n"
        "print('all')"
    )
    assert both == ["all", "all"]
    three = [job.start(index % 2, "here.barrier('three', count=3)") for index in range(3)]
    assert [done(program) for program in three] == ["", "", ""]


def test_forked_processes_and_threads_speak_for_themselves(job: Job) -> None:
    said = job.run(
        0,
        "import os, threading\nhere.put('k', 'v')\n"
        "if os.fork() == 0:\n    here.barrier('fork', count=3); os._exit(0)\n"
        "threads = [threading.Thread(target=here.put, args=(f't/{n}', 'v')) for n in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "if os.fork() == 0:\n    here.barrier('fork', count=3); os._exit(0)\n"
        "here.barrier('fork', count=3)\nprint(here.keys('t/'))",
    )
    assert said == "['t/0', 't/1', 't/2', 't/3']"


def test_what_is_wrong_is_said_in_one_line(job: Job) -> None:
    for call, said in (
        ("here.put('k', 3)", "TypeError: put('k'): a value is text or bytes, not int; json.dumps() makes a text"),
        (
            "here.put('k', b'x' * 2000000)",
            "ValueError: put('k'): 2000000 bytes; a value has at most 1048576: put the path",
        ),
        ("here.put('k' * 600, '')", "ValueError: put: a name is a text of 1 to 512 bytes, not 'kkkk"),
        ("here.put('k', '', life='long')", "ValueError: life='long': must be one of job, epoch, program"),
        ("here.put('k', '', ttl=-1)", "ValueError: ttl=-1: must be more than 0 seconds"),
        ("here.barrier('b', count=0)", "HereError: here.barrier: count=0: must be a number of processes"),
        ("here.barrier('b', roles='ps')", "HereError: here.barrier: roles=['ps']: the roles of this world are worker"),
        ("here.progress(2)", "ValueError: progress(2): must be a number from 0 to 1"),
        ("here.save()", "HereError: here.save: the job has no directory to copy for any output"),
        ("here.nothing", "AttributeError: module 'howdah.program' has no attribute 'nothing'"),
    ):
        found = problem(job.start(0, call))
        assert said in found, found


def test_outside_a_job_there_is_nothing_here() -> None:
    code = "from howdah import here\nprint(here.inside)\nhere.put('k', 'v')"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE)}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd="/")
    assert ran.stdout == "False\n"
    assert ran.stderr.splitlines()[-1] == (
        "howdah.program.task_identity.HereError: this is not a task of a howdah job (HOWDAH_HERE is not set): "
        "start it with `howdah run`, or ask `here.inside` first"
    )


def test_a_report_that_finds_no_room_ends_no_program() -> None:
    names = ("JOB_ID", "JOB_NAME", "TASK", "ROLE", *(numbers := ("INDEX", "RANK", "WORLD_SIZE", "EPOCH", "ATTEMPT")))
    environment = {f"HOWDAH_{name}": "1" if name in numbers else "x" for name in names}
    environment |= {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "HOWDAH_HERE": "/dev/full"}
    code = "from howdah import here\nhere.progress(0.5); here.heartbeat(); here.progress(1.0)\nprint('trained')"
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd="/")
    assert ran.stdout == "trained\n"
    assert ran.stderr.count("[howdah.program: reports of progress are lost: ") == 1


@pytest.mark.parametrize("version", ["3.9", "3.13"])
def test_the_program_api_needs_the_standard_library_only(job: Job, version: str) -> None:
    found = interpreter(version)
    if found is None:
        pytest.skip(f"no CPython {version} here")
    source = (
        "import sys; assert sys.flags.no_site; here.put('k', b'v'); here.metric('m', 1.0); here.progress(0.5)\n"
        "here.barrier('alone', count=1)\n"
        "print(here.get('k'), here.world().of('worker')[1].port, len(list(here.watch('', 0))))"
    )
    program = job.start(0, "", python="/bin/true")
    done(program)
    command = [found, "-S", "-W", "error", "-c", f"from howdah import here\n{source}"]
    ran = subprocess.run(command, env=job.place(0), capture_output=True, text=True, cwd="/", timeout=LIMIT_S)
    assert (ran.stdout, ran.stderr) == ("b'v' 4001 1\n", "")


def test_only_its_own_part_can_be_imported_and_an_installed_howdah_goes_first(job: Job, tmp_path: Path) -> None:
    said = job.run(
        0,
        "import importlib\n"
        "for name in ('howdah.client', 'howdah.executor', 'howdah.spec', 'google.protobuf', 'hdfs_native'):\n"
        "    try: importlib.import_module(name); print(name)\n    except ImportError: pass\nprint(here.__file__)",
        python=interpreter("3.13") or sys.executable,
    )
    if interpreter("3.13"):
        assert said == str(tmp_path / "task-0-1" / "howdah-here" / "python" / "howdah" / "program" / "__init__.py")
    own = tmp_path / "own" / "howdah"
    own.mkdir(parents=True)
    (own / "__init__.py").write_text("")
    (own / "client.py").write_text("who = 'mine'")
    place = job.place(0)
    code = f"import sys; sys.path.append({str(own.parent)!r}); "
    code += "import howdah.client, howdah.program; print(howdah.client.who)"
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({place['PYTHONPATH']!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "mine\n"


CALLS = ("put", "get", "delete", "swap", "watch", "barrier", "withdraw", "metrics", "saved", "keys")


def answer(connection: MasterConnection, call: str, body: Any) -> int:
    """The HTTP status."""
    try:
        connection.call("POST", f"{wire.PATH}{call}", body)
    except WireError as error:
        return error.status
    finally:
        connection.close()
    return 200


class TestFences:
    def test_keys_go_with_who_keeps_them(self, job: Job) -> None:
        job.run(0, "here.put('job', '', life='job'); here.put('epoch', ''); here.put('mine', '', life='program')")
        job.say(0, Phase.ENDED, program_pid=9, exit=Exit("exit", 1))  # it is started again
        assert job.run(1, "print(here.keys())") == "['job']"

    def test_keys_of_a_program_that_ended_well_stay_but_for_its_own(self, job: Job) -> None:
        job.run(0, "here.put('epoch', ''); here.put('mine', '', life='program')")
        job.say(0, Phase.ENDED, program_pid=9, exit=Exit("exit", 0))
        assert job.run(1, "print(here.keys())") == "['epoch']"

    def test_a_lease_runs_out(self, job: Job) -> None:
        job.run(0, "here.put('lease', '', ttl=0.2)")
        assert job.run(1, "import time\nwhile here.keys(): time.sleep(0.02)\nprint('none')") == "none"

    def test_a_program_of_an_older_epoch_is_refused(self, job: Job) -> None:
        place = job.place(0)
        old = job.start(0, "here.put('k', 'old'); input(); here.put('k', 'new')")
        assert place[wire.VARIABLE]
        job.say(0, Phase.ENDED, program_pid=9, exit=Exit("exit", 1))
        assert job.master.state.tasks[TaskId("worker", 0)].epoch == 2
        old.kill()
        old.communicate()
        name = wire.program_principal("worker:0", 1, 1)
        key = wire.program_key(auth.derive(KEY, auth.executor_principal("worker:0", 1)), name)
        with MasterConnection(job.url, name, key) as connection, pytest.raises(WireError) as refused:
            connection.call("POST", f"{wire.PATH}keys", {"prefix": ""})
        assert refused.value.status == 410
        assert "worker:0 of formation 1 (attempt 1) is over: now there is formation 2 (attempt 1)" in str(refused.value)

    def test_no_task_speaks_for_another(self, job: Job) -> None:
        mine, its = wire.program_principal("worker:0", 1, 1), wire.program_principal("worker:1", 1, 1)
        key = wire.program_key(auth.derive(KEY, auth.executor_principal("worker:0", 1)), mine)
        for name, path, method in (
            (its, f"{wire.PATH}keys", "POST"),
            (mine, "/v1/cancel", "POST"),
            (mine, "/v1/executor", "POST"),
            (mine, f"{wire.PATH}keys", "GET"),
            (mine, f"{wire.PATH}nonsense", "POST"),
        ):
            with MasterConnection(job.url, name, key) as connection, pytest.raises(WireError) as refused:
                connection.call(method, path, {"prefix": ""})
            assert refused.value.status == (0 if name == its else 404)  # nothing that is signed comes back

    @pytest.mark.parametrize("body", [{}, [], {"key": 3}, {"key": "k", "value": 3, "binary": False, "life": "job"}])
    def test_malformed_messages_do_no_harm(self, job: Job, body: Any) -> None:
        name = wire.program_principal("worker:0", 1, 1)
        key = wire.program_key(auth.derive(KEY, auth.executor_principal("worker:0", 1)), name)
        answers = {answer(MasterConnection(job.url, name, key), call, body) for call in CALLS}
        assert answers <= {200, 400}
        assert job.run(0, "print(here.index)") == "0"

    def test_who_has_ended_will_not_come_to_the_barrier(self, job: Job) -> None:
        waiting = job.start(0, "print('waits', flush=True)\nhere.barrier('end')")
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "waits\n"
        job.until(lambda: job.inside(lambda master: bool(master.api.program_api.barriers._open)))
        job.say(1, Phase.ENDED, program_pid=9, exit=Exit("exit", 0))
        assert problem(waiting).endswith("here.barrier: barrier 'end': worker:1 will not come: exit code 0")
        late = problem(job.start(0, "here.barrier('late')"))
        assert late.endswith("here.barrier: barrier 'late': worker:1 will not come: exit code 0")

    def test_one_that_is_started_again_catches_up_with_its_peers(self, job: Job) -> None:
        rounds = "for turn in range({}): here.barrier('turn')\nprint('done')"
        assert job.both(rounds.format(3)) == ["done", "done"]
        job.say(0, Phase.ENDED, program_pid=9, exit=Exit("exit", 1))
        job.say(0, Phase.JOINED)
        job.until(lambda: job.master.state.tasks[TaskId("worker", 0)].formed)
        job.say(0, Phase.RUNNING, program_pid=9)
        assert job.run(0, rounds.format(3)) == "done", "rounds that its peers have behind them"
        assert problem(job.start(0, "for turn in range(4): here.barrier('turn', timeout=0.3)")).endswith("worker:1")


def test_curves_are_events_and_people_see_them(job: Job, tmp_path: Path) -> None:
    job.run(0, "for step in range(100): here.metric('loss', 1 / (step + 1), step)\nhere.metric('nan', float('nan'))")
    job.say(0, Phase.ENDED, program_pid=9, exit=Exit("exit", 0))
    curves = job.inside(lambda master: dict(master.log.view.tasks[TaskId("worker", 0)].metrics))
    assert [point.step for point in curves["loss"]] == list(range(100))
    assert curves["loss"][-1].value == 0.01
    assert curves["nan"][0].value is None
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert sum("Measured" in line for line in lines) == 101
    with MasterClient(job.url, KEY) as link:
        news = link.events(0, 0)
    assert not any(isinstance(event, Measured) for event in news.events)
    assert {event.name for event in news.usage if isinstance(event, Measured)} == {"loss", "nan"}


class SecondAttempt(FakeAllocator):
    """Of a master that takes over; all its containers live."""

    attempt = 2

    async def adopt(self, containers: Any) -> dict[str, Exit]:
        return {}


def test_the_next_master_knows_what_the_last_one_promised(job: Job, tmp_path: Path) -> None:
    job.run(0, "here.put('k', 'v'); here.put('gone', ''); here.delete('gone'); here.put('t', '', ttl=3600)")
    job.both("here.barrier('start')")
    waiting = job.start(
        1, "here.barrier('start'); print('waits', flush=True); here.barrier('mid', timeout=600); print('met')"
    )
    watcher = job.start(
        1, "for change in here.watch(timeout=600):\n    print(change, flush=True)\n    if change.key == 'new': break"
    )
    assert waiting.stdout is not None
    assert watcher.stdout is not None
    assert waiting.stdout.readline() == "waits\n"
    seen = sorted(watcher.stdout.readline() for _ in range(2))
    job.kill_master()
    old = job.url
    job.begin(SecondAttempt)
    assert job.url != old
    for index in range(2):
        job.say(index, Phase.RUNNING, program_pid=9)
        job.place(index)  # the executor has found it, and writes down where it is
    assert job.run(
        0, "here.barrier('start'); here.barrier('mid'); print(here.keys(), here.get('k')); here.put('new', '')"
    ) == ("['k', 't'] v")
    assert done(waiting) == "met"
    assert done(watcher) == "Change(key='new', value='')", seen
    assert (tmp_path / "here.jsonl").exists()
    assert (tmp_path / "here.jsonl").stat().st_mode & 0o777 == 0o600
    for index in range(2):
        job.say(index, Phase.ENDED, program_pid=9, exit=Exit("exit", 0))
    job.thread.join(LIMIT_S)
    assert not (tmp_path / "here.jsonl").exists()


def test_a_copy_of_the_outputs_is_asked_for(tmp_path: Path) -> None:
    output = Output(f"file://{tmp_path}/model", "out")
    job = Job(tmp_path, outputs=(output,))
    try:
        job.form()
        both = [job.start(index, "print(here.save(), flush=True); here.save(wait=0.5)") for index in range(2)]
        assert problem(both[0]).endswith("save(): not within 0.5 s; 0 of 1 snapshots are there")
        problem(both[1])
        job.until(job.no_copies)
        started = job.inside(lambda master: list(master.log.view.snapshots))
        assert {one.by for one in started} <= {"worker:0", "worker:1"}
        assert started[0].tasks == 2
        waiting = job.start(0, "print(here.save(wait=True))")
        job.until(lambda: job.inside(lambda master: len(master.state.snapshots.running)) == 1)  # nobody else wants one
        job.say(1, Phase.ENDED, program_pid=9, exit=Exit("exit", 1))  # a part is missing
        text = problem(waiting)
        assert "save(): file://" in text
        assert "worker:1" in text
        job.until(lambda: len(job.master._tasks) == 5)  # what it had begun is removed
    finally:
        job.end()


def test_many_meet_cheaply(tmp_path: Path) -> None:
    """A hundred tasks in a few processes; the master's own time is what counts."""
    job = Job(tmp_path, replicas=100)
    try:
        job.form()
        keys = {
            index: wire.program_key(
                auth.derive(KEY, auth.executor_principal(f"worker:{index}", 1)),
                wire.program_principal(f"worker:{index}", 1, 1),
            ).hex()
            for index in range(100)
        }
        source = (
            "import threading\nfrom howdah.wire import program_protocol as wire\n"
            "from howdah.wire.connection import MasterConnection\n"
            f"keys, url = {keys!r}, {job.url!r}\n"
            "def key(index): return bytes.fromhex(keys[index])\n"
            "def one(index):\n"
            "    with MasterConnection(url, wire.program_principal(f'worker:{index}', 1, 1), key(index)) as link:\n"
            "        for turn in range(3):\n"
            "            message = {'name': 'b', 'round': turn + 1, 'who': str(index), 'wait': 10}\n"
            "            while not link.call('POST', wire.PATH + 'barrier', message, 120)['done']: pass\n"
            "threads = [threading.Thread(target=one, args=(n,)) for n in range(100)]\n"
            "[t.start() for t in threads]; [t.join() for t in threads]\nprint('met')"
        )
        assert job.run(0, source) == "met"
        assert job.inside(lambda master: master.api.program_api.barriers.completed) == {("b", 1): 3}
    finally:
        job.end()
