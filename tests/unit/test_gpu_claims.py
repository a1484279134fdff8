"""Tests claiming GPUs by file locks: each has one holder, and is free again when its holder dies."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from howdah.executor.gpu.claims import GpuAssignment, GpuClaim, NotEnoughGpus, assigned_by_engine, count

Hold = Callable[[int, int, str], GpuClaim]


@pytest.fixture
def hold() -> Iterator[Hold]:
    """Claims GPUs until the end of the test."""
    with contextlib.ExitStack() as stack:

        def claim(wanted: int, total: int, prefix: str) -> GpuClaim:
            made = GpuClaim(wanted, total, prefix)
            stack.callback(made.release)
            return made

        yield claim


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_each_gpu_is_claimed_once(tmp_path: Path, hold: Hold) -> None:
    prefix = str(tmp_path / "gpus")
    one, two = hold(2, 4, prefix), hold(1, 4, prefix)
    assert (one.numbers, two.numbers) == ([0, 1], [2])
    with pytest.raises(NotEnoughGpus, match="2 GPUs are asked for, 1 of this node's 4 are free"):
        hold(2, 4, prefix)
    one.release()
    assert hold(3, 4, prefix).numbers == [0, 1, 3]


def test_a_dead_holder_holds_nothing(tmp_path: Path, hold: Hold) -> None:
    source = (
        "import sys; from howdah.executor.gpu.claims import GpuClaim\n"
        "claim = GpuClaim(2, 2, sys.argv[1]); print('held', flush=True); sys.stdin.read()"
    )
    prefix = str(tmp_path / "gpus")
    command = [sys.executable, "-c", source, prefix]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(NotEnoughGpus):
            hold(1, 2, prefix)
        holder.kill()
        holder.wait()
    assert hold(2, 2, prefix).numbers == [0, 1]


def test_a_link_is_not_followed(tmp_path: Path, hold: Hold) -> None:
    prefix = str(tmp_path / "gpus")
    hold(1, 1, prefix).release()
    (directory,) = tmp_path.iterdir()
    (directory / "0").unlink()
    (directory / "0").symlink_to(tmp_path / "elsewhere")
    before = open_files()
    with pytest.raises(OSError, match="symbolic links"):
        hold(1, 1, prefix)
    assert open_files() == before


def test_a_directory_that_others_may_write_is_not_used(tmp_path: Path, hold: Hold) -> None:
    theirs = tmp_path / f"gpus-{os.geteuid()}-open"
    theirs.mkdir()
    theirs.chmod(0o777)
    claim = hold(1, 1, str(tmp_path / "gpus"))
    assert list(theirs.iterdir()) == []
    (own,) = (path for path in tmp_path.iterdir() if path != theirs)
    assert (own.stat().st_mode & 0o777, (own / "0").stat().st_mode & 0o777) == (0o711, 0o600)
    claim.release()


def test_of_two_first_directories_each_counts(tmp_path: Path, hold: Hold) -> None:
    """Two processes that made one at the same moment, of which the first saw its own alone."""
    prefix = str(tmp_path / "gpus")
    first = hold(1, 2, prefix)
    (tmp_path / f"gpus-{os.geteuid()}-aaaa").mkdir(mode=0o711)
    second = hold(1, 2, prefix)
    assert (first.numbers, second.numbers) == ([0], [1])
    with pytest.raises(NotEnoughGpus):
        hold(1, 2, prefix)


AS_ANOTHER = (
    "import os, sys; from howdah.executor.gpu.claims import GpuClaim, NotEnoughGpus\n"
    "os.setgid(65534); os.setuid(65534)\n"
    "try:\n"
    "    claim = GpuClaim(int(sys.argv[2]), 4, sys.argv[1])\n"
    "    print(claim.numbers, flush=True)\n"
    "    sys.stdin.read()\n"
    "except NotEnoughGpus as error:\n"
    "    print(error)\n"
)


@pytest.mark.skipif(os.geteuid() != 0, reason="takes another user's part")
class TestOtherUsers:
    @pytest.fixture
    def prefix(self) -> Iterator[str]:
        with tempfile.TemporaryDirectory(dir="/tmp") as directory:
            Path(directory).chmod(0o1777)
            yield f"{directory}/gpus"

    def another(self, prefix: str, wanted: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", AS_ANOTHER, prefix, str(wanted)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def test_what_they_hold_is_theirs_while_they_live(self, prefix: str, hold: Hold) -> None:
        with self.another(prefix, 3) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "[0, 1, 2]\n"
            claim = hold(1, 4, prefix)
            assert claim.numbers == [3]
            holds = "".join(rf"; user 65534 \(pid {other.pid}\) holds {number}" for number in range(3))
            with pytest.raises(NotEnoughGpus, match=f"1 GPUs are asked for, 0 of this node's 4 are free{holds}"):
                hold(1, 4, prefix)
            other.kill()
            other.wait()
        assert hold(3, 4, prefix).numbers == [0, 1, 2]

    def test_they_see_what_is_ours_and_cannot_hold_it(self, prefix: str, hold: Hold) -> None:
        claim = hold(2, 4, prefix)
        (own,) = Path(prefix).parent.iterdir()
        steal = "import os, sys; os.setgid(65534); os.setuid(65534); os.open(sys.argv[1], os.O_RDONLY)"
        for path in (own, own / "0", own / "1"):
            done = subprocess.run([sys.executable, "-c", steal, str(path)], capture_output=True, text=True, check=False)
            assert "Permission denied" in done.stderr
        with self.another(prefix, 3) as other:
            assert other.stdout is not None
            told = other.stdout.readline()
        assert told.startswith("3 GPUs are asked for, 2 of this node's 4 are free; user 0 (pid ")
        assert claim.numbers == [0, 1]

    def test_all_at_once(self, prefix: str, hold: Hold) -> None:
        """Each device goes to one process at most, whoever comes first."""
        others = [self.another(prefix, 1) for _ in range(6)]
        ours: list[GpuClaim] = []
        for _ in range(2):
            with contextlib.suppress(NotEnoughGpus):
                ours.append(hold(1, 4, prefix))
        told = [other.stdout.readline() for other in others if other.stdout is not None]
        numbers = [number for line in told if line.startswith("[") for number in json.loads(line)]
        numbers += [number for claim in ours for number in claim.numbers]
        assert len(numbers) == len(set(numbers))
        for other in others:
            other.kill()
            other.communicate()


def test_the_engine_may_have_dealt_them_out() -> None:
    assert assigned_by_engine({"CUDA_VISIBLE_DEVICES": "3"})
    assert assigned_by_engine({"CUDA_VISIBLE_DEVICES": ""})
    assert assigned_by_engine({"NVIDIA_VISIBLE_DEVICES": "GPU-1"})
    assert not assigned_by_engine({"NVIDIA_VISIBLE_DEVICES": "all"})
    assert not assigned_by_engine({})


def test_a_program_that_asked_for_none_is_told_what_its_node_tells() -> None:
    container = {"HOWDAH_GPU_COUNT": "4"}
    for told in ({}, {"CUDA_VISIBLE_DEVICES": "1"}, {"CUDA_VISIBLE_DEVICES": ""}):
        variables = dict(told)
        GpuAssignment(container, print).add_to(variables, 0)
        assert variables == told


def test_the_count_can_be_given() -> None:
    assert count({"HOWDAH_GPU_COUNT": "4"}) == 4
