"""Tests a real executor's messages and processes, with a master that the test plays."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conductor import LIMIT_S, SOURCE, Conductor
from leftovers import MARK

from howdah.executor.process.program import _TERM_GRACE_S
from howdah.spec import DataFile, Exit
from howdah.spec.staged import Fetch
from howdah.wire.messages import Assignment, CheckpointSyncOrder, Goal, Phase, Upload

Start = Callable[..., Conductor]
PYTHON = sys.executable


@pytest.fixture
def conduct(tmp_path: Path) -> Iterator[Start]:
    started: list[Conductor] = []

    def start(command: object = "true", lease_s: float = 30.0, **fields: object) -> Conductor:
        directory = tmp_path / str(len(started)) if started else tmp_path
        directory.mkdir(exist_ok=True)
        started.append(Conductor(directory, Assignment(command, **fields), lease_s))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for one in started:
        one.close()


def program(source: str) -> tuple[str, ...]:
    return (PYTHON, "-c", source)


def marked(mark: str) -> list[int]:
    """Living processes that have `mark` in their environment."""
    found = []
    for name in (one.name for one in Path("/proc").iterdir()):
        if not name.isdigit():
            continue
        try:
            if mark.encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found


def gone(mark: str) -> bool:
    deadline = time.monotonic() + LIMIT_S
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not marked(mark)


class TestRunning:
    @pytest.mark.parametrize("name", ["howdah", "runpy", "queue", "json", "signal"])
    def test_a_file_of_the_users_is_not_taken_for_a_module(self, conduct: Start, name: str) -> None:
        """On YARN it lies in the directory in which the executor begins."""
        master = conduct(f"{PYTHON} {name}.py")
        for directory in (master.logs, master.work):
            (directory / f"{name}.py").write_text("print('mine')")
        assert master.run().exit == Exit("exit", 0, lines=("mine",))

    def test_the_last_lines_of_a_program_behind_tee_are_those_of_stdout(self, conduct: Start) -> None:
        ended = conduct("sh -c 'echo why >&2; exit 3' 2>&1 | tee log").run()
        assert ended.exit is not None
        why, own = ended.exit.lines
        assert why == "why"
        assert own.startswith("[howdah: a part of the pipeline ended with exit code 3")

    def test_the_exception_below_many_frames_is_named(self, conduct: Start) -> None:
        source = "def f(n): return g(n - 1)\ndef g(n): return 1 / n if n < 1 else f(n)\nf(40)"
        ended = conduct(program(source)).run().exit
        assert ended is not None
        assert ended.exception == "ZeroDivisionError: division by zero"
        assert (ended.detail, len(ended.lines)) == (f"exit code 1: {ended.exception}", 20)

    def test_it_joins_runs_reports_and_leaves(self, conduct: Start) -> None:
        master = conduct("echo hello; echo problem >&2; exit 3", ports=("main", "tensorboard"))
        ended = master.run()
        assert ended.exit is not None
        assert (ended.exit.cause, ended.exit.code, ended.exit.lines) == ("exit", 3, ("problem",))
        assert set(ended.ports) == {"main", "tensorboard"}
        assert len(set(ended.ports.values())) == 2
        assert ended.host == "127.0.0.1"
        assert master.leave() == 0
        assert (master.output(), master.output("stderr")) == (b"hello\n", b"problem\n")

    def test_a_shell_line_arrives_byte_for_byte(self, conduct: Start) -> None:
        master = conduct("""printf '%s|' "a  b" '$HOME' \\$x "ü"; echo $((1+2)) && [[ x == x ]]""")
        ended = master.run()
        assert ended.exit is not None
        assert ended.exit.ok
        assert master.output() == "a  b|$HOME|$x|ü|3\n".encode()

    def test_variables_come_from_container_assignment_world_and_secrets(self, conduct: Start) -> None:
        master = conduct(
            program("import os; print({n: v for n, v in os.environ.items() if n[:2] == 'X_' or n[:6] == 'HOWDAH'})"),
            environment={"X_JOB": "job", "X_BOTH": "job"},
            secrets=("X_TOKEN",),
        )
        master.start({"X_NODE": "node", "X_BOTH": "node"}, {"X_TOKEN": b"hush", "X_OTHER": b"not asked for"})
        master.run(X_WORLD="world", HOWDAH_RANK="3")
        seen = {name: value for name, value in eval(master.output()).items() if name != MARK}
        assert seen == {
            "HOWDAH_HERE": f"{master.directory}/howdah-here",
            "X_NODE": "node",
            "X_BOTH": "job",
            "X_JOB": "job",
            "X_WORLD": "world",
            "X_TOKEN": "hush",
            "HOWDAH_RANK": "3",
            "HOWDAH_TASK": "worker:1",
            "HOWDAH_ATTEMPT": "1",
        }

    def test_lists_are_extended_and_the_log_directory_is_put_in(self, conduct: Start) -> None:
        lists = {"PATH": "/opt/mine", "X_NEW": "./:/b", "X_OLD": "/a:$X_OLD:/b", "X_NONE": "/a:$X_NONE"}
        master = conduct("echo $PATH; echo $X_NEW; echo $X_LOGS; echo $X_OLD $X_NONE", extend=lists)
        master.run(X_LOGS="at <LOG_DIR>", X_OLD="/x:/y")
        path, new, logs, around = master.output().decode().split("\n")[:4]
        assert ":/opt/mine" in path  # where the machine has no `python` a directory with one comes last
        assert (new, logs) == ("./:/b", f"at {master.logs}")
        assert around == "/a:/x:/y:/b /a"

    def test_files_of_the_world_lie_there_anew_in_each_epoch(self, conduct: Start, tmp_path: Path) -> None:
        shared = tmp_path / "shared"
        shared.write_text("of others")
        master = conduct("cat list.txt; rm list.txt; ln -s $X_SHARED list.txt")
        master.files = {"list.txt": "first\n"}
        master.run(X_SHARED=str(shared))
        master.files = {"list.txt": "second ü\n"}
        master.set_orders(Goal.RUN, epoch=2)
        master.until(lambda status: status.epoch == 2 and status.phase is Phase.ENDED)
        assert master.output().decode() == "first\nsecond ü\n"
        assert shared.read_text() == "of others"

    def test_program_path_goes_first_and_of_howdah_the_program_sees_only_its_own_part(self, conduct: Start) -> None:
        master = conduct("which python3; echo $PATH; echo $PYTHONPATH", program_path=("environment/bin", "/usr"))
        tool = master.work / "environment" / "bin" / "python3"
        tool.parent.mkdir(parents=True)
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        ended = master.run()
        which, path, python_path = master.output().decode().splitlines()
        assert which == ended.program_python == str(tool)
        assert path.startswith(f"{tool.parent}:/usr:")
        assert python_path == f"{master.work}:{master.directory}/howdah-here/python"

    @pytest.mark.parametrize(
        ("python", "reason"),
        [
            ("-> /opt/other/python3", "leads to /opt/other/python3, which this node does not have"),
            ("#!/bin/sh\necho no such libc >&2; exit 1", "does not run on this node: no such libc"),
        ],
    )
    def test_an_environment_that_does_not_run_here_is_told_before_the_gang_starts(
        self, conduct: Start, tmp_path: Path, python: str, reason: str
    ) -> None:
        (tmp_path / "env/bin").mkdir(parents=True)
        if python.startswith("-> "):
            (tmp_path / "env/bin/python3").symlink_to(python[3:])
        else:
            (tmp_path / "env/bin/python3").write_text(python)
            (tmp_path / "env/bin/python3").chmod(0o755)
        master = conduct("true", program_path=(str(tmp_path / "env/bin"),))
        master.start()
        ended = master.phase(Phase.ENDED)
        assert ended.exit is not None
        assert ended.exit.cause == "localise"
        assert ended.exit.detail.startswith("the job's environment: ")
        assert reason in ended.exit.detail

    def test_no_other_python_takes_the_place_of_one_that_is_missing(self, conduct: Start) -> None:
        ended = conduct("true", program_path=("/opt/missing/bin",)).run()
        assert ended.exit is not None
        assert ended.exit.cause == "start"
        assert ended.exit.detail.startswith("/opt/missing/bin: no such directory on this node")

    def test_a_failed_program_says_its_last_words(self, conduct: Start) -> None:
        ended = conduct(("/bin/sh", "-c", "nosuchprogram --x")).run()
        assert ended.exit is not None
        assert (ended.exit.cause, ended.exit.code) == ("exit", 127)
        assert "nosuchprogram" in ended.exit.lines[-1]

    def test_a_missing_program_is_a_start_failure(self, conduct: Start) -> None:
        ended = conduct(("nosuchprogram", "--x")).run()
        assert ended.exit is not None
        assert ended.exit.cause == "start"
        assert ended.exit.detail.startswith("'nosuchprogram' is not found on PATH: name an environment")
        assert "; PATH is /" in ended.exit.detail

    def test_a_signal_is_named(self, conduct: Start) -> None:
        ended = conduct(program("import os; os.abort()")).run()
        assert ended.exit is not None
        assert (ended.exit.cause, ended.exit.signal, ended.exit.code) == ("signal", signal.SIGABRT, None)
        assert str(ended.exit) == "killed by SIGABRT (6)"

    def test_progress_and_usage_are_reported(self, conduct: Start) -> None:
        source = (
            "import pathlib, time; x = bytearray(80 << 20); print('howdah progress 0.25', flush=True)\n"
            "while not pathlib.Path('go').exists(): time.sleep(0.02)"
        )
        master = conduct(program(source))
        begin(master)
        master.until(lambda status: status.usage.peak_mib > 80)
        (master.work / "go").touch()
        ended = master.phase(Phase.ENDED)
        assert ended.usage.progress == 0.25
        assert 80 < ended.usage.peak_mib < 120

    def test_xlearnings_progress_line_is_understood(self, conduct: Start) -> None:
        assert conduct("echo reporter progress:0.5 >&2").run().usage.progress == 0.5

    def test_binary_output_is_kept_and_can_be_shown(self, conduct: Start) -> None:
        master = conduct(program("import os, sys; os.write(2, bytes(range(256)) + b'\\xff\\n'); sys.exit(1)"))
        ended = master.run()
        assert ended.exit is not None
        assert "\\xff" in ended.exit.lines[-1]
        assert all(line.replace("\t", "").isprintable() for line in ended.exit.lines)
        assert master.output("stderr") == bytes(range(256)) + b"\xff\n"


class TestData:
    def test_local_files_are_linked_with_their_directories(self, conduct: Start, tmp_path: Path) -> None:
        source = tmp_path / "ein Ort" / "1.txt"
        source.parent.mkdir()
        source.write_text("one")
        files = (DataFile(source.as_uri(), "train/1.txt", 3), DataFile(str(source), "2.txt", 3))
        master = conduct("cat data/train/1.txt data/2.txt", fetches=(Fetch("data", files),))
        ended = master.run()
        assert master.output() == b"oneone"
        assert (ended.data_files, ended.data_bytes) == (2, 6)

    @pytest.mark.parametrize(("to", "name"), [("data", "../../x"), ("../data", "x"), ("link", "x"), ("/data", "x")])
    def test_a_name_that_leads_out_is_refused(self, conduct: Start, tmp_path: Path, to: str, name: str) -> None:
        (tmp_path / "x").write_text("")
        master = conduct(fetches=(Fetch(to, (DataFile((tmp_path / "x").as_uri(), name),)),))
        (master.work / "link").symlink_to(tmp_path)
        master.start()
        ended = master.phase(Phase.ENDED)
        assert ended.exit is not None
        assert ended.exit.cause == "localise"
        assert "leads out of the working directory" in ended.exit.detail

    def test_what_a_program_does_to_its_input_changes_nobody_elses_file(self, conduct: Start, tmp_path: Path) -> None:
        source = tmp_path / "rows.csv"
        source.write_text("row\n")
        files = (DataFile(source.as_uri(), "rows.csv", 4),)
        master = conduct("echo more >> data/rows.csv; cat data/rows.csv", fetches=(Fetch("data", files),))
        master.run()
        assert master.output() == b"row\nmore\n"
        assert source.read_text() == "row\n"

    def test_large_files_are_linked_where_they_cant_share_blocks_and_that_is_told(
        self, conduct: Start, tmp_path: Path
    ) -> None:
        large = tmp_path / "large.bin"
        with large.open("wb") as file:
            file.truncate(300 << 20)  # without blocks: nothing is read
        files = (DataFile(large.as_uri(), "large.bin", 300 << 20),)
        master = conduct("stat -L -c %s data/large.bin", fetches=(Fetch("data", files),))
        master.run()
        assert master.output() == b"314572800\n"
        linked = (master.work / "data/large.bin").is_symlink()
        assert linked == (f"such as {large}, are links" in master.output("stderr").decode())

    def test_a_file_that_changed_since_the_submission_is_told(self, conduct: Start, tmp_path: Path) -> None:
        source = tmp_path / "rows.csv"
        source.write_text("row\n")
        status = source.stat()
        kept, changed = (DataFile(source.as_uri(), name, 4, status.st_mtime_ns // 10**6) for name in ("a", "b"))
        master = conduct("cat data/a", fetches=(Fetch("data", (kept,)),))
        master.run()
        assert "where the job was submitted" not in master.output("stderr").decode()
        source.write_text("one\n")
        os.utime(source, ns=(0, status.st_mtime_ns + 10**9))
        master = conduct("cat data/b", fetches=(Fetch("data", (changed,)),))
        master.run()
        assert master.output() == b"one\n"
        assert f"such as {source}, have not the size or time" in master.output("stderr").decode()

    def test_a_missing_file_is_named(self, conduct: Start) -> None:
        master = conduct(fetches=(Fetch("data", (DataFile("file:///nowhere/x", "x"),)),))
        master.start()
        ended = master.phase(Phase.ENDED)
        assert ended.exit is not None
        assert ended.exit.detail.startswith("file:///nowhere/x: no such file")

    def test_what_the_helper_cannot_fetch_is_said(self, conduct: Start) -> None:
        master = conduct(fetches=(Fetch("data", (DataFile("nosuch://host/x", "x"),)),))
        master.start()
        ended = master.phase(Phase.ENDED)
        assert ended.exit is not None
        assert (ended.exit.cause, bool(ended.exit.detail)) == ("localise", True)

    def test_an_output_is_uploaded_before_the_end_is_told(self, conduct: Start, tmp_path: Path) -> None:
        target = tmp_path / "parts" / "worker-1.1"
        master = conduct("mkdir -p model/sub; echo w > model/sub/weights", uploads=(Upload("model", target.as_uri()),))
        ended = master.run()
        assert ended.exit is not None
        assert (ended.exit.cause, ended.exit.code, ended.exit.detail) == ("exit", 0, "")
        assert ended.uploaded == (target.as_uri(),)
        assert (target / "sub" / "weights").read_text() == "w\n"

    def test_links_out_of_the_working_directory_are_told_and_not_uploaded(self, conduct: Start, tmp_path: Path) -> None:
        target = tmp_path / "parts"
        links = "ln -s step model/last; ln -s /etc/passwd model/users; ln -s /proc/self/environ model/variables"
        made = "mkdir -p model/step; echo w > model/step/weights"
        master = conduct(f"{made}; {links}", uploads=(Upload("model", target.as_uri()),))
        ended = master.run()
        assert ended.uploaded == (target.as_uri(),)
        assert (target / "last/weights").read_text() == "w\n"
        assert sorted(path.name for path in target.iterdir()) == ["last", "step"]
        said = master.output("stderr").decode()
        for name in ("users", "variables"):
            told = f"model/{name}: is a link out of the working directory; it is not uploaded"
            assert f"[howdah: {told}]" in said
            assert told in ended.warnings

    def test_nothing_is_uploaded_after_a_failure(self, conduct: Start, tmp_path: Path) -> None:
        target = tmp_path / "parts"
        ended = conduct("mkdir model; exit 4", uploads=(Upload("model", target.as_uri()),)).run()
        assert (ended.uploaded, target.exists()) == ((), False)

    def test_what_is_to_be_kept_of_a_failed_job_is_uploaded_when_the_master_says_so(
        self, conduct: Start, tmp_path: Path
    ) -> None:
        kept = Upload("model", (tmp_path / "kept").as_uri(), required=True, keep_failed=True)
        never_made = Upload("none", (tmp_path / "none").as_uri(), required=True, keep_failed=True)
        uploads = (kept, Upload("model", (tmp_path / "gone").as_uri()), never_made)
        master = conduct("mkdir model; echo w > model/weights; exit 4", uploads=uploads)
        assert master.run().uploaded == ()
        master.set_orders(Goal.STOP, keep=True)
        told = master.until(lambda status: status.kept)
        assert (told.uploaded, told.phase) == ((kept.uri,), Phase.ENDED)
        assert (tmp_path / "kept" / "weights").read_text() == "w\n"
        assert not (tmp_path / "gone").exists()
        assert master.leave() == 0

    def test_what_can_not_be_kept_is_said(self, conduct: Start) -> None:
        master = conduct("mkdir model; exit 4", uploads=(Upload("model", "nosuch://host/x", keep_failed=True),))
        master.run()
        master.set_orders(Goal.STOP, keep=True)
        assert master.until(lambda status: status.kept).uploaded == ()
        assert "could not be kept" in master.output("stderr").decode()

    def test_a_missing_output_directory_fails_the_task_that_must_make_it(self, conduct: Start, tmp_path: Path) -> None:
        ended = conduct(uploads=(Upload("model", (tmp_path / "out").as_uri(), required=True),)).run()
        assert ended.exit is not None
        assert (ended.exit.cause, "'model'" in ended.exit.detail) == ("upload", True)

    def test_a_task_that_may_make_an_output_may_do_without(self, conduct: Start, tmp_path: Path) -> None:
        ended = conduct(uploads=(Upload("model", (tmp_path / "out").as_uri()),)).run()
        assert ended.exit is not None
        assert (ended.exit.ok, ended.uploaded) == (True, ())


class TestTries:
    """Each try of a program begins in a fresh working directory."""

    def test_a_try_finds_nothing_of_the_one_before(self, conduct: Start, tmp_path: Path) -> None:
        (tmp_path / "rows.csv").write_text("row\n")
        files = (DataFile((tmp_path / "rows.csv").as_uri(), "rows.csv", 4),)
        line = "cat data/rows.csv; ls; mkdir model; echo half > model/x; echo more >> data/rows.csv; rm code.py; exit 1"
        master = conduct(line, fetches=(Fetch("data", files),), directories=("logs",))
        (tmp_path / "code.py").write_text("")
        (master.work / "code.py").symlink_to(tmp_path / "code.py")
        master.run()
        first = master.output()
        assert first.split() == [b"row", b"code.py", b"data", b"logs"]
        master.set_orders(Goal.RUN, epoch=2)
        master.phase(Phase.ENDED, epoch=2)
        assert master.output() == first + first
        assert b"2 files are removed that the try before has made or changed" in master.output("stderr")

    def test_its_checkpoints_outlive_a_try(self, conduct: Start, tmp_path: Path) -> None:
        sync = CheckpointSyncOrder("saved", uri=(tmp_path / "stored").as_uri(), every_s=60, writes=False)
        master = conduct("ls saved; touch saved/step-$(ls saved | wc -l); exit 1", checkpoint_sync=sync)
        master.run()
        master.set_orders(Goal.RUN, epoch=2)
        master.phase(Phase.ENDED, epoch=2)
        assert master.output() == b"step-0\n"


class TestFilesRemoved:
    """A NodeManager that keeps no state removes the files of containers that still run."""

    def removed(self, conduct: Start, command: str, **fields: object) -> tuple[Conductor, Exit]:
        """How a program ends whose container's files are moved away when it has made a file `ready`."""
        master = conduct(f"{command}; touch ready; while ! test -e ../go; do sleep 0.02; done", **fields)
        master.start(
            {"HOWDAH_CONTAINER": f"container_{time.monotonic_ns()}"}
        )  # its orphan killer ends all that have it
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN)
        deadline = time.monotonic() + LIMIT_S
        while not (master.work / "ready").exists():
            assert time.monotonic() < deadline, master.log()
            time.sleep(0.02)
        shutil.move(master.work, master.directory / "deleted")
        (master.directory / "go").touch()
        ended = master.phase(Phase.ENDED)
        assert ended.exit is not None
        return master, ended.exit

    def test_a_failure_after_that_is_held_against_no_task(self, conduct: Start) -> None:
        _, exit = self.removed(conduct, "trap 'exit 75' EXIT")
        assert (exit.cause, exit.code) == ("withdrawn", 75)
        assert exit.detail == "the node has removed the container's files"

    def test_an_output_that_is_gone_was_made(self, conduct: Start, tmp_path: Path) -> None:
        """The program ended well: what it made must not be missing without a word."""
        target = tmp_path / "parts" / "worker-1.1"
        uploads = (Upload("model", target.as_uri()),)
        master, exit = self.removed(conduct, "mkdir model; echo w > model/weights", uploads=uploads)
        assert exit.cause == "withdrawn"
        assert master.statuses[-1].uploaded == ()

    def test_a_program_that_made_nothing_has_ended_well(self, conduct: Start) -> None:
        _, exit = self.removed(conduct, "true")
        assert exit.ok


class TestPorts:
    SERVE = "import os, socket; s = socket.socket(); {}; s.bind(('', int(os.environ['PORT']))); s.listen(); print('ok')"

    def serve(self, conduct: Start, hold: bool, option: str) -> Conductor:
        master = conduct(program(self.SERVE.format(option)), hold_ports=hold)
        master.start()
        joined = master.phase(Phase.JOINED)
        master.run(PORT=str(joined.ports["main"]))
        return master

    @pytest.mark.parametrize("option", ["SO_REUSEADDR", "SO_REUSEPORT"])
    def test_a_held_port_lets_in_a_program_with_either_option(self, conduct: Start, option: str) -> None:
        master = self.serve(conduct, True, f"s.setsockopt(socket.SOL_SOCKET, socket.{option}, 1)")
        assert master.output() == b"ok\n"

    def test_a_released_port_lets_in_any_program(self, conduct: Start) -> None:
        assert self.serve(conduct, False, "pass").output() == b"ok\n"

    def test_a_port_in_use_is_told_apart(self, conduct: Start) -> None:
        ended = self.serve(conduct, True, "pass").statuses[-1]
        assert ended.exit is not None
        assert (ended.exit.cause, ended.exit.code) == ("port", 1)

    @pytest.mark.parametrize(
        "words",
        [
            "lightgbm.basic.LightGBMError: Binding port 46851 failed",
            "add_port.cc:83] Failed to add port to server: No address added out of total 1 resolved for '[::]:57215'",
        ],
    )
    def test_some_say_it_in_words_of_their_own(self, conduct: Start, words: str) -> None:
        master = conduct(program(f"raise SystemExit({words!r})"))
        master.start()
        exit = master.run().exit
        assert exit is not None
        assert (exit.cause, exit.code) == ("port", 1)

    def test_socketserver_binds_while_the_port_is_held(self, conduct: Start) -> None:
        source = (
            "import os, socketserver as s; s.TCPServer.allow_reuse_address = True; "
            "s.TCPServer(('127.0.0.1', int(os.environ['PORT'])), s.BaseRequestHandler); print('ok')"
        )
        master = conduct(program(source), hold_ports=True)
        master.start()
        master.run(PORT=str(master.phase(Phase.JOINED).ports["main"]))
        assert master.output() == b"ok\n"
        assert socketserver.TCPServer.allow_reuse_address is False

    def test_no_other_process_gets_a_reserved_port(self, conduct: Start) -> None:
        master = conduct()
        master.start()
        port = master.phase(Phase.JOINED).ports["main"]
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))


class TestStopping:
    def test_stop_is_asked_for_first(self, conduct: Start) -> None:
        master = conduct("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN)
        master.phase(Phase.RUNNING)
        wait_for_output(master)
        master.set_orders(Goal.STOP)
        ended = master.phase(Phase.ENDED)
        assert ended.exit is not None
        assert (ended.exit.cause, ended.exit.code) == ("stopped", 0)
        assert master.output() == b"up\nbye\n"

    def test_the_exception_printed_before_a_stop_is_told_and_not_the_one_after(self, conduct: Start) -> None:
        source = """import sys, time, traceback
try: 1 / 0
except Exception: traceback.print_exc()
print(1, flush=True)
try: time.sleep(600)
finally: raise ValueError('after')"""
        master = conduct(program(f"import signal; signal.signal(15, signal.default_int_handler)\n{source}"))
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN)
        master.phase(Phase.RUNNING)
        wait_for_output(master)
        master.set_orders(Goal.STOP)
        ended = master.phase(Phase.ENDED).exit
        assert ended is not None
        assert (ended.cause, ended.exception) == ("stopped", "ZeroDivisionError: division by zero")
        assert ended.lines[-1] == "ValueError: after"
        assert ended.detail.endswith("; before, it had printed ZeroDivisionError: division by zero")

    def test_what_ignores_term_is_killed(self, conduct: Start) -> None:
        master = conduct(program("import signal, time; signal.signal(15, signal.SIG_IGN); print(1); time.sleep(600)"))
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN)
        wait_for_output(master)
        master.set_orders(Goal.STOP, stop_s=0.3)
        ended = master.phase(Phase.ENDED)
        assert ended.exit is not None
        assert (ended.exit.cause, ended.exit.signal) == ("stopped", signal.SIGKILL)

    def test_a_new_epoch_runs_it_again_with_new_ports(self, conduct: Start) -> None:
        master = conduct("echo $EPOCH; [ $EPOCH = 2 ] || sleep 600", ports=("main",))
        master.start()
        first = master.phase(Phase.JOINED)
        master.world = {"EPOCH": "1"}
        master.set_orders(Goal.RUN)
        wait_for_output(master)
        master.set_orders(Goal.JOIN, epoch=2)
        second = master.phase(Phase.JOINED, epoch=2)
        assert second.exit is None
        assert second.ports.keys() == first.ports.keys()
        master.world = {"EPOCH": "2"}
        master.set_orders(Goal.RUN)
        ended = master.phase(Phase.ENDED, epoch=2)
        assert ended.exit is not None
        assert ended.exit.ok
        assert master.output() == b"1\n2\n"
        assert (first.log_offset, second.log_offset, ended.log_offset) == (None, 0, 2)

    def test_an_old_epoch_is_not_obeyed(self, conduct: Start) -> None:
        master = conduct("sleep 600")
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.JOIN, epoch=5)
        master.phase(Phase.JOINED, epoch=5)
        master.set_orders(Goal.RUN, epoch=4)
        told = max(status.sequence for status in master.statuses)  # two connections: they may come in another order
        master.until(lambda status: status.sequence > told + 1)
        assert all(status.phase is Phase.JOINED for status in master.statuses if status.sequence > told)

    def test_children_that_hide_are_found(self, conduct: Start) -> None:
        source = (
            "import os, time\n"
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    if os.fork() == 0:\n"
            "        time.sleep(600)\n"
            "    os._exit(0)\n"
            "os.wait()\n"
        )
        mark = f"HIDDEN_{os.getpid()}"
        master = conduct(program(source), environment={mark: "1"})
        ended = master.run()
        assert ended.exit is not None
        assert ended.exit.ok
        assert marked(mark) == []
        left = r"the command has ended; what it has left .* killed after 5 s \(a command .*\): python\w* \(pid \d+\)\]"
        assert re.search(left, master.output("stderr").decode())

    def test_sigterm_ends_everything_before_yarn_sends_sigkill(self, conduct: Start) -> None:
        """YARN waits for 250 ms, whatever the orders say of the time that a program has to end."""
        assert _TERM_GRACE_S <= 0.125
        mark = f"TERM_{os.getpid()}"
        master = conduct("trap '' TERM; echo up; (setsid sleep 600 &) ; sleep 600", environment={mark: "1"})
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN, stop_s=400.0)
        wait_for_output(master)
        assert master.executor is not None
        master.executor.terminate()
        assert master.exit_status() == 143
        assert marked(mark) == []

    def test_the_program_dies_with_a_killed_executor(self, conduct: Start) -> None:
        mark = f"KILL_{os.getpid()}"
        master = conduct(program("import time; print(1); time.sleep(600)"), environment={mark: "1"})
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN)
        wait_for_output(master)
        assert master.executor is not None
        master.executor.kill()
        assert gone(mark)

    def test_it_ends_when_the_master_falls_silent(self, conduct: Start) -> None:
        mark = f"SILENT_{os.getpid()}"
        master = conduct("sleep 600", environment={mark: "1"})
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN)
        master.phase(Phase.RUNNING)
        master.fall_silent(1.0)
        assert master.exit_status() == 75
        silent = re.search(r"was not heard for (\d+) s", master.log())
        assert silent is not None, master.log()
        assert int(silent[1]) >= 1
        assert marked(mark) == []

    def test_a_program_that_will_not_end_is_not_waited_for_then(self, conduct: Start) -> None:
        mark = f"STAYS_{os.getpid()}"
        source = "import signal, time; signal.signal(15, lambda *_: None); print(1, flush=True); time.sleep(500)"
        master = conduct(program(source), environment={mark: "1"})
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN, stop_s=400.0)
        wait_for_output(master)
        master.fall_silent(1.0)
        assert master.exit_status() == 75
        assert marked(mark) == []

    @pytest.mark.parametrize("status", [403, 409, 410])
    def test_it_ends_when_it_is_not_wanted(self, conduct: Start, status: int) -> None:
        master = conduct("sleep 600")
        master.refuse = status
        master.start()
        assert master.exit_status() == 76
        assert "does not want this attempt" in master.log()

    def test_another_jobs_master_on_the_port_of_its_own_ends_nothing(self, conduct: Start) -> None:
        """A master that takes over is found elsewhere; meanwhile whoever has the port refuses what he does not know."""
        master = conduct("true")
        master.start()
        master.phase(Phase.JOINED)
        master.refuse, master.stranger = 410, True
        wait_for_refusals(master, 2)
        master.refuse, master.stranger = 0, False
        ended = master.run()
        assert ended.exit is not None
        assert ended.exit.ok

    def test_why_it_was_not_heard_is_told(self, conduct: Start) -> None:
        master = conduct("sleep 600")
        master.start()
        master.phase(Phase.JOINED)
        master.refuse, master.stranger = 403, True
        wait_for_refusals(master, 2)  # it has understood the first before the second
        master.refuse = 0
        master.fall_silent(1.0, 403, stranger=True)
        assert master.exit_status() == 75
        assert re.search(r"was not heard for \d+ s \(403 not wanted\)", master.log())


class TestLogs:
    def test_a_flood_is_not_held_up_and_its_middle_is_dropped(self, conduct: Start) -> None:
        source = (
            "import os\n"
            "block, n = b'x' * 65535 + b'\\n', 0\n"
            "os.write(1, b'first\\n')\n"
            "while n < 100 << 20:\n"
            "    n += os.write(1, block)\n"
            "os.write(1, b'last\\n')\n"
        )
        master = conduct(program(source))
        master.start({"HOWDAH_LOG_LIMIT_MIB": "4"})
        master.run()
        chunk = master.ask_log("stdout", -5, 100)
        assert (chunk.text, chunk.offset + 5 == chunk.size) == ("last\n", True)
        assert master.ask_log("stdout", 0, 6).text == "first\n"
        assert resident_mib(master) < 24
        assert master.leave() == 0
        output = master.output()
        assert output.startswith(b"first\n")
        assert output.endswith(b"last\n")
        assert b"bytes are left out here" in output
        assert 3 << 20 < len(output) <= (4 << 20) + 200

    def test_log_requests_are_answered_while_it_runs(self, conduct: Start) -> None:
        master = conduct("echo 0123456789; sleep 600")
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN)
        wait_for_output(master)
        chunk = master.ask_log("stdout", 3, 4)
        assert (chunk.offset, chunk.size, chunk.text) == (3, 11, "3456")


class TestCost:
    def test_it_is_small(self, conduct: Start) -> None:
        master = conduct("sleep 600")
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN)
        master.phase(Phase.RUNNING)
        assert resident_mib(master) <= 20

    @pytest.mark.parametrize("version", ["3.9", "3.13"])
    def test_it_needs_the_standard_library_only(self, version: str) -> None:
        found = interpreter(version)
        if found is None:
            pytest.skip(f"no CPython {version} here")
        code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import howdah.executor.executor"
        subprocess.run([found, "-I", "-S", "-W", "error", "-c", code], check=True)


def interpreter(version: str) -> str | None:
    """Where pyenv and uv keep theirs, for their shims run one version only; else the PATH's."""
    homes = (Path.home() / ".pyenv/versions", Path.home() / ".local/share/uv/python")
    for home, pattern in zip(homes, (f"{version}.*", f"cpython-{version}.*"), strict=True):
        for found in home.glob(f"{pattern}/bin/python3"):
            return str(found)
    return shutil.which(f"python{version}")


def resident_mib(master: Conductor) -> float:
    assert master.executor is not None
    pages = int(Path(f"/proc/{master.executor.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def wait_for_output(master: Conductor) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not (master.logs / "stdout").exists() or not master.output():
        assert time.monotonic() < deadline, f"nothing was printed: {master.log()}"
        time.sleep(0.01)


def wait_for_refusals(master: Conductor, count: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while master.refusals < count:
        assert time.monotonic() < deadline, f"{master.refusals} messages came: {master.log()}"
        time.sleep(0.01)


def begin(master: Conductor) -> None:
    """Start an executor, and its program."""
    master.start()
    master.phase(Phase.JOINED)
    master.set_orders(Goal.RUN)
