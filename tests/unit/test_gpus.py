"""GPUs claimed by locks: each by one holder, free again when it dies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from howdah.executor.gpus import Claim, TooFew, count, dealt


def test_each_is_claimed_once(tmp_path: Path) -> None:
    directory = str(tmp_path / "gpus")
    one, two = Claim(2, 4, directory), Claim(1, 4, directory)
    assert (one.numbers, two.numbers) == ([0, 1], [2])
    with pytest.raises(TooFew, match="2 GPUs are asked for, 1 of this node's 4 are free"):
        Claim(2, 4, directory)
    one.release()
    assert Claim(3, 4, directory).numbers == [0, 1, 3]


def test_a_dead_holder_holds_nothing(tmp_path: Path) -> None:
    source = (
        "import sys; from howdah.executor.gpus import Claim\n"
        "claim = Claim(2, 2, sys.argv[1]); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", source, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(TooFew):
            Claim(1, 2, str(tmp_path))
        holder.kill()
        holder.wait()
    assert Claim(2, 2, str(tmp_path)).numbers == [0, 1]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        Claim(1, 1, str(tmp_path))


def test_the_engine_may_have_dealt_them_out() -> None:
    assert dealt({"CUDA_VISIBLE_DEVICES": "3"})
    assert dealt({"CUDA_VISIBLE_DEVICES": ""})
    assert dealt({"NVIDIA_VISIBLE_DEVICES": "GPU-1"})
    assert not dealt({"NVIDIA_VISIBLE_DEVICES": "all"})
    assert not dealt({})


def test_the_count_can_be_given() -> None:
    assert count({"HOWDAH_GPU_COUNT": "4"}) == 4
