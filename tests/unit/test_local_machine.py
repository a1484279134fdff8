"""Tests what resources this machine offers, which jobs are refused, and how a working directory is made."""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from howdah.config.user_file import language_setting, user_file
from howdah.engines.local.machine import Machine, refusals
from howdah.errors import SpecError, StagingError
from howdah.localfiles.own_directories import state_directory
from howdah.spec import JobSpec, Resources, Role, StagedFile
from howdah.spec.units import format_memory
from howdah.staging.working_directory import prepare
from howdah.storage.content_cache import local_directory


def job(**roles: Role) -> JobSpec:
    return JobSpec(roles)


class TestMachine:
    def test_it_is_measured(self) -> None:
        machine = Machine.detect({})
        assert machine.vcores >= 4
        assert 256 < machine.memory_mib <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20

    def test_it_can_be_told_otherwise(self) -> None:
        told = {"HOWDAH_LOCAL_VCORES": "64", "HOWDAH_LOCAL_MEMORY_MIB": "100", "HOWDAH_LOCAL_GPUS": "2"}
        assert Machine.detect(told) == Machine(64, 100, ("0", "1"))

    @pytest.mark.parametrize(("name", "text"), [("MEMORY_MIB", "4GiB"), ("VCORES", "-1"), ("GPUS", "all")])
    def test_what_is_no_number_limits_nothing_and_is_refused(self, name: str, text: str) -> None:
        with pytest.raises(SpecError, match=f"HOWDAH_LOCAL_{name}: is '{text}', must be a whole number"):
            Machine.detect({f"HOWDAH_LOCAL_{name}": text})
        assert Machine.detect({f"HOWDAH_LOCAL_{name}": ""}) == Machine.detect({})

    def test_gpus_that_the_user_may_not_see_are_not_offered(self) -> None:
        assert Machine.detect({"CUDA_VISIBLE_DEVICES": "2,5"}).gpus == ("2", "5")
        for hidden in ("", "-1", "NoDevFiles"):
            assert Machine.detect({"CUDA_VISIBLE_DEVICES": hidden}).gpus == ()
        assert Machine.detect({"CUDA_VISIBLE_DEVICES": "0,-1,1"}).gpus == ("0",)
        assert Machine.detect({"CUDA_VISIBLE_DEVICES": "0,0, MIG-a/1/0"}).gpus == ("0", "MIG-a/1/0")

    def test_a_small_gang_fits_a_laptop(self) -> None:
        small = Role("", resources=Resources(1024, 1))
        laptop = Machine(4, 8 << 10)
        assert list(refusals(job(ps=small, worker=Role("", 2, Resources(1024, 1))), laptop)) == []

    def test_a_job_with_an_image_is_not_refused(self) -> None:
        assert list(refusals(job(worker=Role("", image="tf:1")), Machine(4, 8 << 10))) == []

    def test_a_refusal_names_each_figure(self) -> None:
        workers = Role("", 3, Resources(40 << 10, 2, 1, {"yarn.io/fpga": 1}))
        found = list(refusals(job(worker=workers, ps=Role("", 1, Resources(512, 1))), Machine(4, 24 << 10, ("0",))))
        assert found == [
            "needs 3 × 40 GiB (worker) + 1 × 512 MiB (ps) = 120.5 GiB, this machine has 24 GiB"
            " (HOWDAH_LOCAL_MEMORY_MIB sets another limit)",
            "needs 3 × 2 vcores (worker) + 1 × 1 vcores (ps) = 7 vcores, this machine has 4 vcores"
            " (HOWDAH_LOCAL_VCORES sets another limit)",
            "needs 3 × 1 GPUs (worker) = 3 GPUs, this machine has 1 GPUs (HOWDAH_LOCAL_GPUS sets another limit)",
            "role 'worker' wants 1 'yarn.io/fpga', a resource this machine does not know",
        ]

    @pytest.mark.parametrize(
        ("mib", "text"), [(512, "512 MiB"), (1024, "1 GiB"), (1536, "1.5 GiB"), (9216000, "9000 GiB"), (0, "0 MiB")]
    )
    def test_memory_as_people_read_it(self, mib: int, text: str) -> None:
        assert format_memory(mib) == text


def test_where_jobs_are_kept() -> None:
    assert state_directory({"HOWDAH_HOME": "/h"}) == Path("/h/state")
    assert state_directory({"XDG_STATE_HOME": "/s"}) == Path("/s/howdah")
    assert state_directory({}) == Path.home() / ".local/state/howdah"


@pytest.mark.parametrize("read", [lambda: state_directory(os.environ), lambda: user_file(os.environ), local_directory])
def test_howdah_home_is_one_directory_wherever_howdah_is_called(
    read: Callable[[], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HOWDAH_HOME", "~/own")
    assert read().parent == tmp_path / "own"
    for relative in ("own", "./own", "~nobody-of-this-name/own"):
        monkeypatch.setenv("HOWDAH_HOME", relative)
        with pytest.raises(SpecError, match=rf"^HOWDAH_HOME: is '{relative}', must be an absolute path$"):
            read()
    assert language_setting(os.environ) == ""  # whoever reads the settings says it


class TestWorkingDirectory:
    def stored(self, tmp_path: Path, name: str, kind: str = "file") -> StagedFile:
        return StagedFile(name, (tmp_path / name).as_uri(), kind)

    def test_archives_keep_modes_and_links_and_are_unpacked_once(self, tmp_path: Path) -> None:
        tool = tmp_path / "tool"
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
            zipped.write(tool, "bin/tool")
            link = zipfile.ZipInfo("bin/link")
            link.external_attr = 0o120777 << 16
            zipped.writestr(link, "tool")
        with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as tar:
            tar.add(tool, "bin/tool")
        files = (self.stored(tmp_path, "a.zip", "archive"), self.stored(tmp_path, "b.tar.gz", "archive"))
        for work in (tmp_path / "one", tmp_path / "two"):
            prepare(work, files, tmp_path / "cache")
            assert os.access(work / "a.zip" / "bin" / "link", os.X_OK)
            assert os.access(work / "b.tar.gz" / "bin" / "tool", os.X_OK)
            assert (work / "a.zip" / "bin" / "link").readlink() == Path("tool")
            assert not (work / "a.zip" / "bin" / "tool").stat().st_mode & 0o222
        assert (tmp_path / "one" / "a.zip").resolve() == (tmp_path / "two" / "a.zip").resolve()

    def test_what_is_no_archive_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "a.zip").write_text("no")
        with pytest.raises(StagingError, match=r"a\.zip is not a \.zip"):
            prepare(tmp_path / "work", (self.stored(tmp_path, "a.zip", "archive"),), tmp_path / "cache")

    def test_what_is_gone_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(StagingError, match=r"x\.py: No such file"):
            prepare(tmp_path / "work", (self.stored(tmp_path, "x.py"),), tmp_path / "cache")

    def test_a_link_in_a_zip_and_a_member_through_it_write_nowhere(self, tmp_path: Path) -> None:
        (tmp_path / "outside").mkdir()
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
            link = zipfile.ZipInfo("d")
            link.external_attr = 0o120777 << 16
            zipped.writestr(link, str(tmp_path / "outside"))
            zipped.writestr("d/x", "written")
        with pytest.raises(StagingError, match=r"a\.zip is not unpacked: 'd/x' lies below 'd', which is a link"):
            prepare(tmp_path / "work", (self.stored(tmp_path, "a.zip", "archive"),), tmp_path / "cache")
        assert list((tmp_path / "outside").iterdir()) == []
        assert [path.name for path in (tmp_path / "cache/unpacked").iterdir()] == ["a.zip.lock"]
