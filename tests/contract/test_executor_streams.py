"""Tests an executor's input and output streams with real helper processes, pipes and local files."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conductor import LIMIT_S, Conductor
from test_executor import PYTHON

from howdah.executor.process.process_tree import children, tree
from howdah.spec import Feed, Split, uris
from howdah.wire.messages import Assignment, Goal, Phase, Status, StdoutOutput, Upload

Start = Callable[..., Conductor]
LINES = [b"line %d\n" % number for number in range(1000)]


@pytest.fixture
def conduct(tmp_path: Path) -> Iterator[Start]:
    started: list[Conductor] = []

    def start(command: object = "true", **fields: object) -> Conductor:
        started.append(Conductor(tmp_path, Assignment(command, **fields)))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    """A file in two splits."""
    path = tmp_path / "data.txt"
    path.write_bytes(b"".join(LINES))
    size = path.stat().st_size
    return Feed(0, (Split(uris.of_local(path), 0, 3000), Split(uris.of_local(path), 3000, size - 3000)))


@pytest.fixture
def large(tmp_path: Path) -> Feed:
    """More than a pipe holds."""
    path = tmp_path / "large.txt"
    path.write_bytes(b"x" * 99 + b"\n")
    with path.open("ab") as file:
        for _ in range(40):
            file.write((b"y" * 99 + b"\n") * 5000)
    return Feed(0, (Split(uris.of_local(path), 0, path.stat().st_size),))


def capture(tmp_path: Path, **fields: object) -> StdoutOutput:
    return StdoutOutput(
        uri=uris.of_local(tmp_path / "out" / "worker-1.1"), name="part-worker-1", output="out", **fields
    )  # type: ignore[arg-type]


def part(tmp_path: Path, name: str = "part-worker-1") -> Path:
    return tmp_path / "out" / "worker-1.1" / name


def failure(ended: Status) -> tuple[str, str]:
    assert ended.exit is not None
    return ended.exit.cause, ended.exit.detail


class TestInput:
    def test_the_program_reads_its_splits_to_their_end(self, conduct: Start, feed: Feed) -> None:
        master = conduct("cat", feeds=(feed,))
        ended = master.run()
        assert ended.exit is not None
        assert ended.exit.ok
        assert master.output() == b"".join(LINES)
        assert ended.usage.progress == 1.0
        assert ended.usage.streamed_bytes == ended.usage.local_bytes == len(b"".join(LINES))

    def test_its_own_progress_counts_more(self, conduct: Start, feed: Feed) -> None:
        ended = conduct("cat >/dev/null; echo howdah progress 0.5", feeds=(feed,)).run()
        assert ended.usage.progress == 0.5

    def test_a_program_may_have_enough(self, conduct: Start, large: Feed) -> None:
        master = conduct("head -1 | wc -c", feeds=(large,))
        ended = master.run()
        assert ended.exit is not None
        assert ended.exit.ok
        assert master.output() == b"100\n"

    def test_a_program_may_close_its_input_and_go_on(self, conduct: Start, large: Feed) -> None:
        """Then nobody waits for it to read: the process that feeds it ends, and the program runs."""
        master = conduct("exec <&-; until [ -e go ]; do sleep 0.02; done", feeds=(large,))
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN)
        master.phase(Phase.RUNNING)
        deadline = time.monotonic() + LIMIT_S
        while feeders(master):
            assert time.monotonic() < deadline, f"it is fed still: {master.log()}"
            time.sleep(0.02)
        (master.work / "go").touch()
        ended = master.phase(Phase.ENDED)
        assert ended.exit is not None
        assert ended.exit.ok

    def test_what_is_missing_fails_the_task_whatever_the_program_says(self, conduct: Start, feed: Feed) -> None:
        gone = Feed(0, (*feed.splits, Split("file:///nowhere/x.txt", 0, 10, size=10)))
        # It would end well, with half a model, if it took the end of what there is for the end of the data.
        master = conduct("trap '' TERM; cat >/dev/null; echo model kept", feeds=(gone,))
        ended = master.run(stop_s=1.0)
        assert failure(ended) == (
            "stream",
            "file:///nowhere/x.txt: no such file: it was there when the job was submitted",
        )
        assert b"model kept" not in master.output()

    def test_a_helper_that_is_killed_fails_the_task(self, conduct: Start, large: Feed) -> None:
        master = conduct("sleep 600", feeds=(large,))
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN)
        master.phase(Phase.RUNNING)
        (feeder,) = feeders(master)
        os.kill(feeder, signal.SIGKILL)
        assert failure(master.phase(Phase.ENDED)) == (
            "stream",
            "howdah.inputs.streaming.stdin_feeder ended with signal 9",
        )

    def test_a_program_that_stops_reading_is_told_of(self, conduct: Start, large: Feed) -> None:
        ended = conduct("head -c 100 >/dev/null; exec sleep 600", feeds=(large,), stall_s=1).run()
        cause, detail = failure(ended)
        assert cause == "stream"
        assert re.search(r"worker:1 has read nothing from its standard input for \d+ s, since ", detail), detail
        assert "large.txt, bytes 0 to 20000100 in epoch 1" in detail

    def test_a_new_epoch_of_the_gang_reads_the_same_again(self, conduct: Start, feed: Feed) -> None:
        master = conduct("md5sum", feeds=(feed,))
        master.run()
        master.set_orders(Goal.RUN, epoch=2)
        master.phase(Phase.ENDED, epoch=2)
        first, second = master.output().splitlines()
        assert first == second

    def test_nothing_is_left_when_the_master_stops_it(self, conduct: Start, large: Feed, tmp_path: Path) -> None:
        master = conduct("sleep 600", feeds=(large,), stdout_output=capture(tmp_path))
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN)
        master.phase(Phase.RUNNING)
        master.set_orders(Goal.STOP, stop_s=1.0)
        assert failure(master.phase(Phase.ENDED))[0] == "stopped"
        assert master.executor is not None
        assert tree(master.executor.pid) == [master.executor.pid]
        assert master.leave() == 0


class TestOutput:
    def test_what_is_printed_is_the_part(self, conduct: Start, tmp_path: Path) -> None:
        master = conduct("echo a; echo b; echo problem >&2", stdout_output=capture(tmp_path))
        ended = master.run()
        assert ended.uploaded == (capture(tmp_path).uri,)
        assert part(tmp_path).read_bytes() == b"a\nb\n"
        assert master.output() == b"[howdah: standard output goes to out]\n[howdah: its last lines]\na\nb\n"
        assert master.output("stderr") == b"problem\n"

    def test_in_and_out_and_a_directory_too(self, conduct: Start, feed: Feed, tmp_path: Path) -> None:
        upload = Upload("model", uris.of_local(tmp_path / "models"))
        command = "mkdir model; echo m > model/m; tac"
        ended = conduct(command, feeds=(feed,), stdout_output=capture(tmp_path), uploads=(upload,)).run()
        assert ended.uploaded == (capture(tmp_path).uri, upload.uri)
        assert part(tmp_path).read_bytes() == b"".join(reversed(LINES))
        assert (tmp_path / "models" / "m").read_bytes() == b"m\n"

    def test_nothing_printed_is_no_file(self, conduct: Start, tmp_path: Path) -> None:
        ended = conduct("true", stdout_output=capture(tmp_path)).run()
        assert ended.exit is not None
        assert ended.exit.ok
        assert ended.uploaded == ()
        assert list(part(tmp_path).parent.iterdir()) == []

    def test_a_failed_program_leaves_nothing(self, conduct: Start, tmp_path: Path) -> None:
        ended = conduct("seq 100000; exit 3", stdout_output=capture(tmp_path)).run()
        assert failure(ended) == ("exit", "")
        assert ended.exit is not None
        assert ended.exit.lines[-1] == "100000"
        assert not part(tmp_path).parent.exists()

    def test_an_output_that_cannot_be_written_fails_the_task(self, conduct: Start, tmp_path: Path) -> None:
        (tmp_path / "out").write_text("in the way")
        ended = conduct("yes", stdout_output=capture(tmp_path)).run()
        cause, detail = failure(ended)
        assert cause == "stream"
        assert "out" in detail

    def test_what_a_format_does_not_take_fails_the_task(self, conduct: Start, tmp_path: Path) -> None:
        reader = tmp_path / "work" / "mine.py"
        master = conduct("echo a; exec sleep 600", stdout_output=capture(tmp_path, format="mine:Refusing"))
        reader.write_text("class Refusing:\n def __init__(s, o, k): 0\n def write(s, d): raise ValueError(d)\n")
        cause, detail = failure(master.run())
        assert cause == "stream"
        assert detail.endswith("part-worker-1: ValueError: b'a\\n'")

    def test_what_an_earlier_epoch_printed_is_gone(self, conduct: Start, tmp_path: Path) -> None:
        master = conduct("[ $AGAIN ] || { seq 1000; exit 1; }; echo b", stdout_output=capture(tmp_path))
        master.run()
        master.world = {"AGAIN": "1"}
        master.set_orders(Goal.RUN, epoch=2)
        assert failure(master.phase(Phase.ENDED, epoch=2)) == ("exit", "")
        assert part(tmp_path).read_bytes() == b"b\n"

    def test_a_child_that_is_left_does_not_hold_it_open(self, conduct: Start, tmp_path: Path) -> None:
        ended = conduct("echo a; setsid sleep 600 &", stdout_output=capture(tmp_path)).run()
        assert ended.exit is not None
        assert ended.exit.ok
        assert part(tmp_path).read_bytes() == b"a\n"


def test_a_users_own_reader_runs_in_the_jobs_python(conduct: Start, feed: Feed) -> None:
    own = Feed(0, feed.splits[:1], format="mine:Reader")
    master = conduct("cat", feeds=(own,), program_path=("job/bin",))
    (master.work / "mine.py").write_text(
        "import os\n"
        "from howdah.inputs.formats import RecordReader as Base\nclass Reader(Base):\n def __init__(s, o): 0\n"
        " def records(s, fs, split): yield os.environ['JOB'].encode() + fs.read_bytes(split.uri)[:7]\n"
    )
    python = master.work / "job" / "bin" / "python3"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nJOB="the job reads " exec {PYTHON} "$@"\n')
    python.chmod(0o755)
    ended = master.run()
    assert ended.exit is not None
    assert ended.exit.ok, ended.exit
    assert master.output() == b"the job reads line 0\n"


def feeders(master: Conductor) -> list[int]:
    """The processes that feed the program."""
    assert master.executor is not None
    return [pid for pid in children(master.executor.pid) if b"howdah.inputs.streaming.stdin_feeder" in command(pid)]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""


def test_requests_of_any_size_reach_a_helper(conduct: Start, tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_bytes(b"x\n")
    splits = tuple(Split(uris.of_local(path), 0, 2) for _ in range(20_000))
    assert len(json.dumps([split.uri for split in splits])) > 1 << 19
    ended = conduct("wc -l", feeds=(Feed(0, splits),)).run()
    assert ended.exit is not None
    assert ended.exit.ok
    assert (tmp_path / "logs" / "stdout").read_bytes() == b"20000\n"
