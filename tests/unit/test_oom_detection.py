"""Tests where an executor looks for the kernel's counts of its control group."""

from __future__ import annotations

from pathlib import Path

from howdah.executor.process import oom_detection


def test_a_container_may_have_its_own_group_mounted_as_the_root(tmp_path: Path) -> None:
    assert oom_detection._as_mounted(str(tmp_path), "/kubepods/pod1") == str(tmp_path)
    (tmp_path / "kubepods" / "pod1").mkdir(parents=True)
    assert oom_detection._as_mounted(str(tmp_path), "/kubepods/pod1") == f"{tmp_path}/kubepods/pod1"
