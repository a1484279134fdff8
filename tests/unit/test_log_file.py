"""Tests which part of a program's output is kept, in memory (LogTail) and on disk (StreamLog)."""

from __future__ import annotations

import itertools
import resource
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from howdah.executor.io.log_file import StreamLog
from howdah.executor.io.log_tail import LogTail


def fed(*pieces: bytes) -> LogTail:
    tail = LogTail()
    for piece in pieces:
        tail.feed(piece)
    return tail


RUN = "wandb: 🚀 View run digits at: \x1b[34mhttps://wandb.ai/vision/digits/runs/x7k2\x1b[0m\n".encode()
MLFLOW_RUN = "🏃 View run calm-owl 7 at: http://mlflow:5000/#/experiments/1/runs/0af3\n".encode()


class TestTrackerRuns:
    def test_the_lines_of_trackers_tell_where_runs_are(self) -> None:
        first = "wandb: 🚀 View run at https://wandb.ai/vision/digits/runs/x7k2\n".encode()
        tail = fed(b"begin\n" + first, b"loss 0.3\n" * 200, MLFLOW_RUN + RUN)
        assert tail.tracker_runs == (
            "https://wandb.ai/vision/digits/runs/x7k2",
            "http://mlflow:5000/#/experiments/1/runs/0af3",
        )

    @given(st.lists(st.integers(0, len(RUN + MLFLOW_RUN)), max_size=6))
    def test_a_line_may_come_in_pieces(self, cuts: list[int]) -> None:
        whole, places = RUN + MLFLOW_RUN, [0, *sorted(cuts), len(RUN + MLFLOW_RUN)]
        tail = fed(*(whole[begin:end] for begin, end in itertools.pairwise(places)))
        assert set(tail.tracker_runs) == set(fed(whole).tracker_runs)

    def test_no_token_and_no_password_is_taken(self) -> None:
        lines = (
            b"View run a at: http://host/r?write_token=x\nView run a at: http://host/r?apiKey=x&p=y\n"
            b"View run a at: http://ann:pw@host/\nView run at: file:///x\nView run at: http://host/password=x\n"
        )
        assert fed(lines).tracker_runs == ("http://host/r",)

    def test_a_line_with_other_than_printable_letters_tells_no_address(self) -> None:
        for strange in ("\a", "\b", "\x9b2J", "é", '"', ")", "]"):
            assert fed(f"View run at http://host/a{strange}b\n".encode()).tracker_runs == ()

    def test_only_the_first_few_are_kept(self) -> None:
        tail = fed(*(b"View run a at: http://host/%d\n" % number for number in range(100)))
        assert len(tail.tracker_runs) == 8


class TestTail:
    def test_the_last_twenty_lines(self) -> None:
        tail = fed(*(b"line %d\n" % number for number in range(100)))
        assert tail.lines() == tuple(f"line {number}" for number in range(80, 100))

    def test_a_long_line_is_cut_at_its_beginning(self) -> None:
        (line,) = fed(b"x" * 10_000, b"end\n").lines()
        assert len(line) == 4095
        assert line.endswith("xend")

    def test_of_an_overwritten_line_the_last_state(self) -> None:
        assert fed(b"10%\r50%\r100%\r\ndone").lines() == ("100%", "done")

    def test_trailing_blank_lines_are_left_out(self) -> None:
        assert fed(b"a\n\nb\n\n \n").lines() == ("a", "", "b")

    def test_undecodable_and_control_bytes_are_escaped(self) -> None:
        assert fed(b"\xff\x1b[31mred\x00\t\xc3\xa9").lines() == ("\\xffred\\x00\té",)

    @given(st.lists(st.binary(max_size=300)))
    def test_no_bytes_give_lines_that_a_terminal_obeys(self, pieces: list[bytes]) -> None:
        shown = "".join(fed(*pieces).lines())
        controls = {char for char in shown if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
        assert controls <= {"\t", "\u00ad", "\u200c", "\u200d"}

    @pytest.mark.parametrize(
        ("text", "progress"),
        [
            (b"howdah progress 0.25\n", 0.25),
            (b"reporter progress:0.5\n", 0.5),
            (b"reporter progress: 1\r", 1.0),
            (b"howdah progress 40%\n", 0.4),
            (b"howdah progress 7\n", 1.0),
            (b"howdah progress .5\nhowdah progress 0.75\nother\n", 0.75),
            (b"howdah progress much\n", None),
            (b"progress 0.5\n", None),
        ],
    )
    def test_progress(self, text: bytes, progress: float | None) -> None:
        assert fed(text).progress == progress

    @given(st.integers(0, 40), st.integers(0, 40))
    def test_progress_is_seen_across_pieces(self, first: int, second: int) -> None:
        text = b"...\nhowdah progress 0.25\n...................."
        cuts = sorted((first, second))
        assert fed(text[: cuts[0]], text[cuts[0] : cuts[1]], text[cuts[1] :]).progress == 0.25


class TestStreamLog:
    def test_what_fits_is_kept_whole(self, tmp_path: Path) -> None:
        log = StreamLog(str(tmp_path / "log"), 100)
        log.write(b"a" * 50)
        log.write(b"b" * 50)
        log.close()
        assert (tmp_path / "log").read_bytes() == b"a" * 50 + b"b" * 50

    def test_a_full_disk_delays_no_writer_and_is_reported_later(self, tmp_path: Path) -> None:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        log = StreamLog(str(tmp_path / "log"), 1000)
        log.write(b"kept\n")
        resource.setrlimit(resource.RLIMIT_FSIZE, (7, before[1]))
        try:
            log.write(b"12345\n")
            log.write(b"lost\n")
            assert (log.size, log.lost, log.problem) == (7, 9, "File too large")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        log.write(b"kept again\n")
        assert log.lost == 0
        log.close()
        text = (tmp_path / "log").read_text()
        assert text == "kept\n12\n[howdah: 9 bytes are missing here: File too large]\nkept again\n"
        assert log.size == len(text)

    def test_the_middle_is_left_out_and_said_so(self, tmp_path: Path) -> None:
        log = StreamLog(str(tmp_path / "log"), 400)
        text = b"".join(b"%07d\n" % number for number in range(1000))
        log.write(text)
        assert log.size == len(text)
        log.close()
        kept = (tmp_path / "log").read_bytes()
        head, _, rest = kept.partition(b"\n[howdah: ")
        said, _, tail = rest.partition(b"]\n")
        assert head == text[:200]
        assert tail == text[-len(tail) :]
        assert 100 <= len(tail) <= 200
        assert said.startswith(b"%d bytes are left out here" % (len(text) - len(head) - len(tail)))
        assert [path.name for path in tmp_path.iterdir()] == ["log"]

    @settings(deadline=None)
    @given(st.lists(st.binary(max_size=60)), st.integers(-500, 500), st.integers(1, 100))
    def test_reading_gives_what_was_written_there(
        self, tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], offset: int, limit: int
    ) -> None:
        log = StreamLog(str(tmp_path_factory.mktemp("log") / "log"), 64)
        for piece in pieces:
            log.write(piece)
        text = b"".join(pieces)
        start, data = log.read(offset, limit)
        assert data == text[start : start + len(data)]
        assert start >= (max(0, len(text) + offset) if offset < 0 else min(offset, len(text)))
        assert bool(data) == (start < len(text))
        assert log.size == len(text)
        log.close()
