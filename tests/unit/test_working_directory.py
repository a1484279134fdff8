"""Tests that what is in a task's working directory is the task's own, and that each try finds it fresh."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pytest

from howdah.executor.io.working_directory import WorkingDirectory
from howdah.localfiles import own_copy
from howdah.storage.output_files import OutputFiles

NOBODY = 65534
# As root an environment needs a mount of its own process; as another user it must not be root that looks.
TRY_ENVIRONMENT = """
import json, os, sys
from pathlib import Path
from howdah.executor.io.working_directory import WorkingDirectory
user, base = int(sys.argv[1]), Path(sys.argv[2])
os.setuid(user)
work = WorkingDirectory(str(base / "container/work"))
env, found = base / "container/work/env", {}
for _ in work.make_own({}, {"env"}, False): pass
work.program_starts()
found["first"] = (env / "lib/torch.py").read_text()
(env / "lib/new.py").write_text("installed")
(env / "lib/old.py").unlink()
try:
    with (env / "lib/torch.py").open("a") as file: file.write(" changed")
except PermissionError:
    found["refused"] = True
(env / "lib/changed.py").unlink(), (env / "lib/changed.py").write_text("other")
for _ in work.remove_changes([]): pass
for _ in work.make_own({}, {"env"}, False): pass
found["again"] = {path.name: path.read_text() for path in sorted((env / "lib").iterdir())}
work.restore()
found["link"] = os.readlink(env)
print(json.dumps(found))
"""


def own(work: WorkingDirectory, spread: Mapping[str, str] | None = None, environments: Collection[str] = ()) -> None:
    for _ in work.make_own(spread or {}, environments, are_links_read_only=False):
        pass


def clean(work: WorkingDirectory, *kept: str) -> int:
    return sum(work.remove_changes(kept))


def names(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Make a cache as containers share it."""
    shared = tmp_path / "cache"
    (shared / "code/sub").mkdir(parents=True)
    (shared / "code/main.py").write_text("main")
    (shared / "code/sub/deep.py").write_text("deep")
    (shared / "code/run.sh").write_text("#!/bin/sh")
    (shared / "code/link").symlink_to("main.py")
    for path in ("code/main.py", "code/sub/deep.py"):
        (shared / path).chmod(0o444)
    (shared / "code/run.sh").chmod(0o555)
    (shared / "script.py").write_text("script")
    return shared


@pytest.fixture
def make(tmp_path: Path, shared: Path) -> Callable[[str], WorkingDirectory]:
    """Prepare a working directory as an engine does."""

    def make(name: str) -> WorkingDirectory:
        work = tmp_path / name
        (work / "conf").mkdir(parents=True)
        (work / "launch.sh").write_text("the engine's")
        (work / "code").symlink_to(shared / "code")
        (work / "conf/script.py").symlink_to(shared / "script.py")
        return WorkingDirectory(str(work))

    return make


class TestOwn:
    def test_what_two_tasks_write_reaches_neither_the_other_nor_the_cache(
        self, make: Callable[[str], WorkingDirectory], shared: Path
    ) -> None:
        one, two = make("one"), make("two")
        own(one), own(two)
        for name in ("code/main.py", "code/sub/deep.py", "conf/script.py", "code/sub/new"):
            Path(one.path, name).write_text("changed")
        Path(one.path, "code/run.sh").unlink()
        assert Path(two.path, "code/main.py").read_text() == "main"
        assert Path(two.path, "conf/script.py").read_text() == "script"
        assert (
            names(shared / "code")
            == ["link", "main.py", "run.sh", "sub", "sub/deep.py"]
            == names(Path(two.path, "code"))
        )
        assert (shared / "code/main.py").read_text() == "main"

    def test_copies_keep_modes_times_and_links(self, make: Callable[[str], WorkingDirectory], shared: Path) -> None:
        os.utime(shared / "code/main.py", (1, 1_000_000_000))
        work = make("work")
        own(work)
        code = Path(work.path, "code")
        assert (code / "main.py").stat().st_mtime == 1_000_000_000, "byte code counts only beside a source of its time"
        assert (code / "run.sh").stat().st_mode & 0o777 == 0o755
        assert (code / "link").readlink() == Path("main.py")

    def test_a_large_file_is_linked_if_it_cant_be_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(own_copy, "LARGE", 4)
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name == "open")
        for name in ("open", "closed"):
            (tmp_path / name).write_text("large")
            for _ in own_copy.copy_or_link(str(tmp_path / name), str(tmp_path / f"my-{name}")):
                pass
        assert (tmp_path / "my-closed").readlink() == tmp_path / "closed"
        assert not (tmp_path / "my-open").is_symlink()

    def test_what_is_howdahs_own_stays_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "work").mkdir()
        (tmp_path / "runtime").mkdir()
        (tmp_path / "work/howdah-runtime").symlink_to(tmp_path / "runtime")
        own(WorkingDirectory(str(tmp_path / "work")))
        assert (tmp_path / "work/howdah-runtime").is_symlink()

    def test_a_directory_that_holds_the_container_is_not_copied_into_it(self, tmp_path: Path) -> None:
        (tmp_path / "work").mkdir()
        (tmp_path / "work/above").symlink_to(tmp_path)
        own(WorkingDirectory(str(tmp_path / "work")))
        assert (tmp_path / "work/above").is_symlink()

    def test_nothing_is_written_through_a_link_that_a_program_has_put_in_place_of_a_directory(
        self, make: Callable[[str], WorkingDirectory], tmp_path: Path
    ) -> None:
        work = make("work")
        own(work)
        (tmp_path / "users").mkdir()
        (tmp_path / "users/script.py").write_text("a user's")
        (Path(work.path) / "conf/script.py").unlink()
        (Path(work.path) / "conf").rmdir()
        (Path(work.path) / "conf").symlink_to(tmp_path / "users")
        with pytest.raises(OSError, match=r"conf/script\.py: its directory has become a link out of"):
            own(work)
        assert (tmp_path / "users/script.py").read_text() == "a user's"

    @pytest.mark.parametrize("how", ["linked", "gone"])
    def test_what_a_program_puts_in_place_of_an_environment_is_not_followed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
    ) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
        (tmp_path / "env/lib").mkdir(parents=True)
        (tmp_path / "env/lib/torch.py").write_text("shared")
        (tmp_path / "container/work").mkdir(parents=True)
        (tmp_path / "users").mkdir()
        (tmp_path / "users/data").write_text("a user's")
        mine = tmp_path / "container/work/env"
        mine.symlink_to(tmp_path / "env")
        work = WorkingDirectory(str(tmp_path / "container/work"))
        own(work, environments={"env"})
        work.program_starts()
        mine.rename(tmp_path / "moved")
        if how == "linked":
            mine.symlink_to(tmp_path / "users")
        clean(work)
        assert (tmp_path / "users/data").read_text() == "a user's"
        own(work, environments={"env"})
        assert (mine / "lib/torch.py").read_text() == "shared"
        assert not mine.is_symlink()

    def test_an_environment_that_was_half_made_is_completed(self, tmp_path: Path) -> None:
        (tmp_path / "env/lib").mkdir(parents=True)
        for name in ("a.py", "b.py"):
            (tmp_path / "env/lib" / name).write_text("shared")
        (tmp_path / "mine/lib").mkdir(parents=True)
        os.link(tmp_path / "env/lib/a.py", tmp_path / "mine/lib/a.py")
        for _ in own_copy.link_tree(str(tmp_path / "env"), str(tmp_path / "mine")):
            pass
        assert names(tmp_path / "mine") == ["lib", "lib/a.py", "lib/b.py"]

    @pytest.mark.parametrize("user", [0, NOBODY])
    def test_an_environment_is_the_tasks_own_without_a_copy_of_its_files(self, tmp_path: Path, user: int) -> None:
        if os.geteuid():
            pytest.skip("only root becomes another user")
        base = tmp_path if not user else Path("/tmp", f"howdah-test-{os.getpid()}")
        (base / "env/lib").mkdir(parents=True, exist_ok=True)
        for name in ("torch.py", "old.py", "changed.py"):
            (base / "env/lib" / name).write_text("shared")
        (base / "container/work").mkdir(parents=True)
        (base / "container/work/env").symlink_to(base / "env")
        try:
            subprocess.run(["chown", "-R", str(user), base], check=True)
            done = subprocess.run(
                [sys.executable, "-c", TRY_ENVIRONMENT, str(user), base], capture_output=True, text=True, check=True
            )
            found = json.loads(done.stdout)
            assert found["first"] == "shared"
            assert found.get("refused", False) == bool(user), "only root writes to a file that nobody may write"
            assert found["again"] == {"torch.py": "shared", "old.py": "shared", "changed.py": "shared"}
            assert {path.name: path.read_text() for path in (base / "env/lib").iterdir()} == found["again"]
            assert found["link"] == str(base / "env")
        finally:
            if user:
                subprocess.run(["rm", "-rf", base], check=True)


class TestSpread:
    """Archives whose content goes into the directory itself. A NodeManager unpacks them by rules of its own."""

    def test_copies_but_keeps_what_is_there(self, tmp_path: Path, shared: Path) -> None:
        (tmp_path / "work").mkdir()
        (tmp_path / "work/part").symlink_to(shared / "code")
        (tmp_path / "work/main.py").write_text("old")
        work = WorkingDirectory(str(tmp_path / "work"))
        for _ in range(2):
            own(work, {"part": ""})
        assert (tmp_path / "work/main.py").read_text() == "old"
        assert (tmp_path / "work/sub/deep.py").read_text() == "deep"
        (tmp_path / "work/sub/deep.py").write_text("mine")
        assert (shared / "code/sub/deep.py").read_text() == "deep"

    def test_a_file_that_another_archive_has_brought_is_told(self, tmp_path: Path, shared: Path) -> None:
        (shared / "other").mkdir()
        for name, text in (("main.py", "other"), ("run.sh", "#!/bin/sh"), ("new.py", "new")):
            (shared / "other" / name).write_text(text)
        (tmp_path / "work").mkdir()
        for name in ("code", "other"):
            (tmp_path / "work" / f"{name}-part").symlink_to(shared / name)
        work = WorkingDirectory(str(tmp_path / "work"))
        own(work, {"code-part": "", "other-part": ""})
        assert work.passed_over == ["main.py"]
        assert (tmp_path / "work/main.py").read_text() == "main"
        assert (tmp_path / "work/new.py").read_text() == "new"

    def test_a_directory_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            own(WorkingDirectory(str(tmp_path)), {"code": ""})

    @pytest.mark.parametrize("link", ["{outside}", "../../outside"])
    def test_links_that_lead_out_are_refused(self, tmp_path: Path, link: str) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (tmp_path / "work/code").mkdir(parents=True)
        (tmp_path / "work/code/d").symlink_to(link.format(outside=outside))
        with pytest.raises(OSError, match="code: 'd' is a link out of the archive, to"):
            own(WorkingDirectory(str(tmp_path / "work")), {"code": ""})

    def test_nothing_is_written_through_a_link_of_another_archive(self, tmp_path: Path) -> None:
        for name in ("one/real", "two/d"):
            (tmp_path / "work" / name).mkdir(parents=True)
        (tmp_path / "work/one/d").symlink_to("real")
        (tmp_path / "work/two/d/x").write_text("x")
        with pytest.raises(OSError, match="two: 'd' lies below a link that another archive has made"):
            own(WorkingDirectory(str(tmp_path / "work")), {"one": "", "two": ""})

    def test_pipes_are_not_waited_for(self, tmp_path: Path) -> None:
        (tmp_path / "code").mkdir()
        os.mkfifo(tmp_path / "code/p")
        with pytest.raises(OSError, match="'p' is a device or a pipe"):
            own(WorkingDirectory(str(tmp_path)), {"code": ""})

    def test_an_environment_keeps_its_python(self, tmp_path: Path) -> None:
        (tmp_path / "code/bin").mkdir(parents=True)
        (tmp_path / "code/bin/python3").symlink_to(sys.executable)
        own(WorkingDirectory(str(tmp_path)), {"code": "env"})
        assert (tmp_path / "env/bin/python3").readlink() == Path(sys.executable)


class TestFresh:
    def test_what_was_fetched_is_not_the_programs(self, make: Callable[[str], WorkingDirectory]) -> None:
        work = make("work")
        old = Path(work.path) / "runs/ckpt/step-1/deep/weights"
        old.parent.mkdir(parents=True)
        old.write_text("old")
        time.sleep(0.02)  # the file system's clock has steps
        work.program_starts(["runs/ckpt", "board"])
        for name in ("runs/new", "runs/ckpt/new", "runs/ckpt/step-1/new", "runs/ckpt/step-1/deep/new"):
            (Path(work.path) / name).write_text("new")
        files = OutputFiles(work.path, since_ns=work.program_started_ns, prepared=work.prepared())
        assert [name for name in files if name.startswith("runs/")] == [
            *("runs/ckpt/new", "runs/ckpt/step-1/deep/new", "runs/ckpt/step-1/new", "runs/new")
        ]

    def test_what_a_program_made_goes_and_what_it_changed_comes_back(
        self, make: Callable[[str], WorkingDirectory], shared: Path, tmp_path: Path
    ) -> None:
        work = make("work")
        own(work)
        path = Path(work.path)
        (path / "mine").mkdir()
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere/data").write_text("a user's")
        time.sleep(0.02)  # the file system's clock has steps
        work.program_starts()
        before = names(path)
        (path / "model/deep").mkdir(parents=True)
        (path / "model/deep/weights").write_text("half")
        (path / "model").chmod(0)
        (path / "code/main.py").write_text("changed")
        (path / "code/sub/deep.py").unlink()
        (path / "code/leftover").write_text("x")
        (path / "conf/script.py").rename(path / "conf/moved.py")
        (path / "launch.sh").write_text("the engine's, changed")
        (path / "out").symlink_to(tmp_path / "elsewhere")
        (path / "mine/x").write_text("x")
        assert clean(work) == 6
        own(work)
        assert names(path) == [name for name in before if name != "mine"] or names(path) == before
        assert (path / "code/main.py").read_text() == "main"
        assert (path / "conf/script.py").read_text() == "script"
        assert (tmp_path / "elsewhere/data").read_text() == "a user's", "a link is never followed"
        assert not work.is_used

    def test_a_directory_that_a_program_has_moved_goes_whole(
        self, make: Callable[[str], WorkingDirectory], shared: Path
    ) -> None:
        work = make("work")
        own(work)
        path = Path(work.path)
        (path / "data/train").mkdir(parents=True)
        (path / "data/train/a").write_text("input")
        work.inputs[str(path / "data/train/a")] = "file:///a"
        time.sleep(0.02)  # the file system's clock has steps
        work.program_starts()
        (path / "data/train").rename(path / "model")
        (path / "code/sub").rename(path / "code/moved")
        (path / "data/new").write_text("the program's")
        clean(work)
        own(work)
        assert not (path / "model").exists()
        assert names(path / "code") == names(shared / "code")
        assert names(path / "data") == []

    def test_a_programs_own_name_may_begin_as_howdahs_do(self, make: Callable[[str], WorkingDirectory]) -> None:
        work = make("a")
        own(work)
        work.program_starts()
        for name in (".howdah-notes", ".howdah-layers", ".howdahignore"):
            Path(work.path, name).touch()
        assert work.list_others() == [".howdah-layers"]
        clean(work)
        assert [name for name in names(Path(work.path)) if name.startswith(".")] == [".howdah-layers"]

    def test_checkpoints_stay(self, make: Callable[[str], WorkingDirectory]) -> None:
        work = make("work")
        own(work)
        work.program_starts()
        for name in ("checkpoints/step-1", "code/ck/step-2", "other"):
            Path(work.path, name).parent.mkdir(exist_ok=True)
            Path(work.path, name).write_text("x")
        clean(work, "checkpoints", "./code/ck/")
        assert Path(work.path, "checkpoints/step-1").exists()
        assert Path(work.path, "code/ck/step-2").exists()
        assert not Path(work.path, "other").exists()

    def test_a_directory_that_is_a_checkpoint_itself_stays_whole(self, make: Callable[[str], WorkingDirectory]) -> None:
        work = make("work")
        work.program_starts()
        Path(work.path, "step-1").write_text("x")
        assert clean(work, ".") == 0
        assert Path(work.path, "step-1").exists()

    def test_another_task_finds_what_the_engine_has_prepared(
        self, make: Callable[[str], WorkingDirectory], shared: Path
    ) -> None:
        work = make("work")
        before = {name: Path(work.path, name).is_symlink() for name in names(Path(work.path))}
        own(work)
        Path(work.path, "input").mkdir()
        Path(work.path, "input/x").write_text("the first task's")
        work.restore()
        assert {name: Path(work.path, name).is_symlink() for name in names(Path(work.path))} == before
        assert names(shared / "code") == ["link", "main.py", "run.sh", "sub", "sub/deep.py"]
