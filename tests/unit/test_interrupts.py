"""Tests that signals are noted wherever they come, and obeyed where the command waits: none is lost, and none breaks
off what another has begun."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click
import pytest
from stuck_files import StuckFiles, stuck_directory

from howdah.cli.follow import NEWS_S, _ask, follow
from howdah.cli.interrupts import ENDING, STOPPING, TOGETHER_S, Interrupts, RaisedInterrupts, SignalReceived
from howdah.cli.run import submit_or_exit
from howdah.cli.terminal import Plain
from howdah.cli.wait import wait_for_jobs
from howdah.client.follow import Update
from howdah.client.submit import PreparedJob
from howdah.engines import Engine, Progress, no_progress
from howdah.errors import JobNotFound
from howdah.spec import JobReport, Plan, StagedJob, State, TaskId
from howdah.storage.hdfs.call_timeout import CallTimeout, start_call

LIMIT_S = 20.0


@pytest.fixture(autouse=True)
def default_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (*ENDING, signal.SIGALRM)}
    assert before[signal.SIGINT] is signal.default_int_handler
    streams = [os.dup(number) for number in (0, 1, 2)]  # SIGHUP replaces those that are terminals
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)


class Clock:
    """A time that goes on with each signal, so that no two come together."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def send(self, *numbers: int) -> None:
        for number in numbers:
            self.now += 2 * TOGETHER_S
            os.kill(os.getpid(), number)


class Finalised:
    """Sends a signal in its finalizer, where Python drops what the handler raises."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """An event that does not come before the test's end."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("in_other_thread", [False, True])
def test_a_signal_in_a_finalizer(never: threading.Event, in_other_thread: bool) -> None:
    def work() -> None:
        if in_other_thread:
            Finalised(signal.SIGTERM)
        never.wait()

    with Interrupts(ENDING) as interrupts:
        call = start_call(work)
        if not in_other_thread:
            Finalised(signal.SIGTERM)
        with pytest.raises(SignalReceived):
            interrupts.wait(call)


def test_what_is_under_way_is_finished(clock: Clock, capfd: pytest.CaptureFixture[str]) -> None:
    done = threading.Event()
    with Interrupts(clock=clock) as interrupts:
        call = start_call(done.wait)
        clock.send(signal.SIGINT)
        with pytest.raises(CallTimeout):
            interrupts.finish(call, 0.0)
        with pytest.raises(KeyboardInterrupt):
            interrupts.call(interrupts.check)
        done.set()
        assert interrupts.finish(call)
        with pytest.raises(SignalReceived):
            interrupts.wait(call)
        assert interrupts.wait(call)
    assert capfd.readouterr().err.count("Ctrl-C twice more to leave at once") == 1


def test_who_sends_sigterm_is_told_of_no_key(
    clock: Clock, never: threading.Event, capfd: pytest.CaptureFixture[str]
) -> None:
    with Interrupts(ENDING, clock) as interrupts:
        clock.send(signal.SIGTERM)
        with pytest.raises(CallTimeout):
            interrupts.finish(start_call(never.wait), 0.0)
    said = capfd.readouterr().err
    assert said == "howdah: interrupted by SIGTERM: finishing what has begun; a second one leaves at once\n"


@pytest.mark.parametrize(
    ("signals", "leaves"),
    [
        ([signal.SIGINT] * 2, False),
        ([signal.SIGINT] * 3, True),
        ([signal.SIGTERM], False),
        ([signal.SIGTERM] * 2, True),
        ([signal.SIGINT, signal.SIGTERM], True),
        ([signal.SIGHUP] * 2, False),
        ([signal.SIGHUP] * 3, True),
    ],
)
def test_how_many_signals_leave_what_is_under_way(
    clock: Clock, never: threading.Event, signals: list[int], leaves: bool
) -> None:
    with Interrupts(ENDING, clock) as interrupts:
        clock.send(*signals)
        with pytest.raises(KeyboardInterrupt if leaves else CallTimeout):
            interrupts.finish(start_call(never.wait), 0.0)


@pytest.mark.parametrize(
    ("signals", "leaves"),
    [([signal.SIGTERM], True), ([signal.SIGINT, signal.SIGHUP], False), ([signal.SIGINT] * 3, True)],
)
def test_signals_are_heard_after_one_was_obeyed(
    clock: Clock, never: threading.Event, signals: list[int], leaves: bool
) -> None:
    with Interrupts(ENDING, clock) as interrupts:
        call = start_call(never.wait)
        clock.send(signal.SIGTERM)
        with pytest.raises(SignalReceived):
            interrupts.wait(call)
        clock.send(*signals)
        with pytest.raises(KeyboardInterrupt if leaves else CallTimeout):
            interrupts.finish(call, 0.0)
        interrupts.forget()
        clock.send(signal.SIGINT)
        with pytest.raises(SignalReceived):
            interrupts.wait(call)
        clock.send(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            interrupts.wait(call)


def test_two_signals_at_once_are_one(clock: Clock, never: threading.Event) -> None:
    with Interrupts(ENDING, clock) as interrupts:
        call = start_call(never.wait)
        clock.send(signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(CallTimeout):
            interrupts.finish(call, 0.0)
        with pytest.raises(SignalReceived):
            interrupts.wait(call)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(CallTimeout):
            interrupts.finish(call, 0.0)


def test_an_interrupt_that_comes_late_does_not_kill_the_command_that_another_has_ended(never: threading.Event) -> None:
    with Interrupts() as interrupts, contextlib.suppress(SignalReceived):
        os.kill(os.getpid(), signal.SIGINT)
        interrupts.wait(start_call(never.wait))
    os.kill(os.getpid(), signal.SIGINT)


def test_a_command_can_be_interrupted_after_another_one() -> None:
    with Interrupts():
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_signals_that_are_ignored_stay_so(never: threading.Event) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nohup
    with Interrupts(ENDING) as interrupts:
        os.kill(os.getpid(), signal.SIGHUP)
        with pytest.raises(CallTimeout):
            interrupts.finish(start_call(never.wait), 0.0)
        interrupts.check()


class Stuck(Engine):
    """An engine that does not answer when it is asked for a job, unless it `answers`, and when it is asked to cancel
    one, unless it `cancels`."""

    name = "stuck"

    def __init__(self, answers: bool = False, cancels: bool = False, directory: str = "") -> None:
        self.answers, self.cancels, self.directory = answers, cancels, directory
        self.asked, self.cancelled, self.over = threading.Event(), threading.Event(), threading.Event()

    @property
    def home(self) -> str:
        raise NotImplementedError

    def plan(self, job: StagedJob) -> Plan:
        raise NotImplementedError

    def submit(self, plan: Plan, secrets: Mapping[str, str], progress: Progress = no_progress) -> str:
        raise NotImplementedError

    def describe(self, job_id: str | None = None) -> list[JobReport]:
        self.asked.set()
        if not self.answers:
            self.over.wait(LIMIT_S)
        if self.over.is_set():  # a thread that outlives its test prints nothing into the next one
            raise JobNotFound(f"the test of {job_id} has ended")
        state = State.CANCELLED if self.cancels and self.cancelled.is_set() else State.RUNNING
        return [JobReport("job_1", "j", state, self.name, directory=self.directory)]

    def cancel(self, job_id: str) -> None:
        self.cancelled.set()
        if not self.cancels:
            self.over.wait(LIMIT_S)

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        raise NotImplementedError


class StuckScreen(Plain):
    """A screen whose reader does not read."""

    def __init__(self, over: threading.Event) -> None:
        super().__init__()
        self.shows, self._over = threading.Event(), over

    def show(self, update: Update) -> None:
        self.shows.set()
        self._over.wait(LIMIT_S)


@pytest.fixture
def stuck() -> Iterator[Callable[..., Stuck]]:
    made: list[Stuck] = []

    def make(**how: Any) -> Stuck:
        made.append(Stuck(**how))
        return made[-1]

    yield make
    for engine in made:
        engine.over.set()


def send_after(send: Callable[[int], object], number: int, *events: threading.Event) -> None:
    """Send a signal to this process after each of the events."""

    def run() -> None:
        for event in events:
            assert event.wait(LIMIT_S)
            send(number)

    threading.Thread(target=run, daemon=True).start()


def test_following_is_interrupted_while_the_engine_does_not_answer(stuck: Callable[..., Stuck], clock: Clock) -> None:
    engine = stuck()
    send_after(clock.send, signal.SIGINT, engine.asked)
    with Interrupts() as interrupts, pytest.raises(SystemExit) as left:
        follow(engine, "job_1", "", "detach", False, interrupts)
    assert left.value.code == 130


def test_following_is_interrupted_while_the_output_is_not_read(stuck: Callable[..., Stuck], clock: Clock) -> None:
    engine = stuck(answers=True)
    screen = StuckScreen(engine.over)
    send_after(clock.send, signal.SIGINT, screen.shows)
    with Interrupts() as interrupts, pytest.raises(SystemExit) as left:
        follow(engine, "job_1", "", "detach", False, interrupts, lambda: screen)
    assert left.value.code == 130


GOES_ON = "the job goes on; `howdah attach job_1` follows it, `howdah cancel job_1` ends it\n"


@pytest.mark.parametrize("on_interrupt", ["ask", "detach"])
def test_a_job_outlives_the_sigterm_of_a_machine_that_shuts_down(
    on_interrupt: str, stuck: Callable[..., Stuck], clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = stuck(answers=True)
    send_after(clock.send, signal.SIGTERM, engine.asked)
    with Interrupts(STOPPING) as interrupts, pytest.raises(SystemExit) as left:
        follow(engine, "job_1", "", on_interrupt, False, interrupts)
    assert (left.value.code, engine.cancelled.is_set()) == (143, False)
    assert GOES_ON in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_job_that_is_waited_for_goes_on(
    number: int, code: int, stuck: Callable[..., Stuck], clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = stuck()
    send_after(clock.send, number, engine.asked)
    with Interrupts(STOPPING) as interrupts, pytest.raises(SystemExit) as left:
        wait_for_jobs([(engine, "job_1")], False, interrupts)
    assert left.value.code == code
    assert GOES_ON in capsys.readouterr().err


@pytest.mark.parametrize(
    ("signals", "said"),
    [
        ([signal.SIGINT], "howdah: interrupted: the job is not submitted\n"),
        (
            [signal.SIGTERM] * 2,
            "howdah: left during the submission: `howdah list` shows whether the job is submitted\n",
        ),
    ],
)
def test_who_interrupts_a_submission_is_told_what_became_of_it(
    signals: list[int],
    said: str,
    clock: Clock,
    never: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def submit(prepared: PreparedJob, quiet: bool, check: Callable[[], None]) -> str:
        if len(signals) == 1:
            check()
        never.wait()
        return "job_1"

    monkeypatch.setattr("howdah.cli.run.upload_and_submit", submit)
    with Interrupts(STOPPING, clock) as interrupts:
        clock.send(*signals)
        with pytest.raises(SystemExit) as left:
            submit_or_exit(None, False, interrupts)  # type: ignore[arg-type]
    assert left.value.code == 128 + signals[-1]
    assert capsys.readouterr().err == said


def test_a_signal_that_came_before_the_waiting_is_obeyed(stuck: Callable[..., Stuck], clock: Clock) -> None:
    with Interrupts(STOPPING) as interrupts:
        interrupts.call(lambda: clock.send(signal.SIGINT))
        with pytest.raises(SystemExit) as left:
            wait_for_jobs([(stuck(), "job_1")], False, interrupts)
    assert left.value.code == 130


def test_a_second_signal_to_end_leaves_a_cancel_that_does_not_come_to_an_end(
    stuck: Callable[..., Stuck], clock: Clock
) -> None:
    engine = stuck(answers=True)
    send_after(clock.send, signal.SIGTERM, engine.asked, engine.cancelled)
    with Interrupts(ENDING, clock) as interrupts, pytest.raises(KeyboardInterrupt):
        follow(engine, "job_1", "", "cancel", False, interrupts)


def test_a_cancelled_job_whose_event_log_cannot_be_read(
    stuck: Callable[..., Stuck], clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    def pass_time() -> None:
        assert StuckFiles.asked.wait(LIMIT_S)
        clock.now += 2 * NEWS_S

    with stuck_directory() as directory, Interrupts(clock=clock) as interrupts:
        engine = stuck(answers=True, cancels=True, directory=directory)
        send_after(clock.send, signal.SIGINT, engine.asked)
        threading.Thread(target=pass_time, daemon=True).start()
        with pytest.raises(SystemExit) as ended:
            follow(engine, "job_1", "", "cancel", False, interrupts)
    assert ended.value.code == 2
    assert "job_1 CANCELLED" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "choice"), [("c", "cancel"), ("D", "detach"), ("what\nfollow", "follow"), ("", "follow")]
)
def test_the_question_at_ctrl_c_takes_letters(
    typed: str, choice: str, stuck: Callable[..., Stuck], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = iter(typed.split("\n"))
    with Interrupts() as interrupts:
        monkeypatch.setattr(interrupts, "read_line", lambda _: next(lines))
        assert _ask(interrupts, stuck(answers=True), "job_1") == choice


def test_the_question_at_ctrl_c_ends_with_the_job(
    stuck: Callable[..., Stuck], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = stuck(answers=True, cancels=True)
    engine.cancelled.set()
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, encoding="utf-8") as terminal, Interrupts() as interrupts:
        monkeypatch.setattr("sys.stdin", terminal)
        assert _ask(interrupts, engine, "job_1") == "follow"
    os.close(ours)
    assert capsys.readouterr().err.endswith("[follow]: \n")


def test_a_question_is_answered_or_interrupted(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, encoding="utf-8") as terminal, Interrupts(clock=clock) as interrupts:
        monkeypatch.setattr("sys.stdin", terminal)
        os.write(ours, b"cancel\n\n")
        assert [interrupts.read_line(), interrupts.read_line()] == ["cancel", ""]
        clock.send(signal.SIGINT)
        with pytest.raises(SignalReceived):
            interrupts.read_line()
        os.write(ours, b"\x04")  # Ctrl-D
        with pytest.raises(EOFError):
            interrupts.read_line()
    os.close(ours)


def wait_after_a_dropped_interrupt(never: threading.Event) -> None:
    with RaisedInterrupts(again_s=0.01):
        Finalised(signal.SIGINT)
        assert never.wait(LIMIT_S)


class TestOtherCommands:
    def test_an_interrupt_that_python_drops_is_raised_again(
        self, never: threading.Event, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "unraisablehook", lambda dropped: None)  # pytest's takes the next one for its own
        with pytest.raises(KeyboardInterrupt):
            wait_after_a_dropped_interrupt(never)

    def test_an_interrupt_that_is_being_obeyed_is_not_raised_again(self) -> None:
        with RaisedInterrupts(again_s=1000.0):
            cleaned_up = False
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                try:
                    raise OSError
                except OSError:
                    os.kill(os.getpid(), signal.SIGALRM)
                cleaned_up = True
            assert cleaned_up
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_an_interrupt_that_was_dropped_reaches_a_command_that_follows_a_job(self, never: threading.Event) -> None:
        with RaisedInterrupts(again_s=1000.0):
            Finalised(signal.SIGINT)
            with Interrupts() as interrupts:
                os.kill(os.getpid(), signal.SIGALRM)
                with pytest.raises(SignalReceived):
                    interrupts.wait(start_call(never.wait))


def test_what_another_thread_prints_has_the_colours_of_its_command() -> None:
    @click.command
    def command() -> None:
        with Interrupts() as interrupts:
            interrupts.call(lambda: click.secho("red", fg="red"))

    def printed(color: bool) -> str:
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            command.main([], standalone_mode=False, color=color)
        return stream.getvalue()

    assert (printed(color=True), printed(color=False)) == ("\x1b[31mred\x1b[0m\n", "red\n")
