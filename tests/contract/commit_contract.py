"""Tests on each file system that a commit which was interrupted at any step ends correctly when it is run again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import BinaryIO

import pytest

from howdah.errors import StagingError
from howdah.outputs.commit import OutputCommit, commit, discard
from howdah.spec import uris
from howdah.storage.filesystem import Entry, FileSystem, Sink


class Crash(Exception):
    """Stands for the end of the process at this point."""


class Mortal(FileSystem):
    """Raises Crash instead of making change number `life` to a file system."""

    def __init__(self, real: FileSystem, life: int) -> None:
        self.real, self.life = real, life

    def _change(self) -> FileSystem:
        if self.life == 0:
            raise Crash
        self.life -= 1
        return self.real

    def stat(self, uri: str) -> Entry | None:
        return self.real.stat(uri)

    def children(self, directory: str) -> list[Entry]:
        return self.real.children(directory)

    def walk(self, directory: str) -> Iterator[Entry]:
        return self.real.walk(directory)

    def glob(self, pattern: str) -> list[Entry]:
        return self.real.glob(pattern)

    def open_read(self, uri: str) -> BinaryIO:
        return self.real.open_read(uri)

    def create(self, uri: str, mode: int = 0o644) -> Sink:
        return self._change().create(uri, mode)

    def append(self, uri: str, data: bytes) -> None:
        self._change().append(uri, data)

    def mkdirs(self, directory: str, mode: int = 0o755) -> None:
        self._change().mkdirs(directory, mode)

    def rename(self, old: str, new: str, overwrite: bool = False) -> None:
        self._change().rename(old, new, overwrite)

    def delete(self, uri: str) -> bool:
        return self._change().delete(uri)

    def chmod(self, uri: str, mode: int) -> None:
        self._change().chmod(uri, mode)

    def touch(self, uri: str) -> None:
        self._change().touch(uri)


AT_ONCE, MAX_LIVES = 8, 64


def crash_at_each_step(base: str, finishes: Callable[[str, int], bool]) -> int:
    """Call `finishes(directory, life)` for lives from 0 on, each with its own directory, until one lasts to the end;
    return that one. Eight run at the same time, because each waits for its server most of the time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(0, MAX_LIVES, AT_ONCE):
            lives = range(first, first + AT_ONCE)
            finished = list(pool.map(lambda life: finishes(uris.join(base, str(life)), life), lives))
            if any(finished):
                assert finished == sorted(finished)
                return lives[finished.index(True)]
    raise AssertionError("it never finished")


@dataclass(frozen=True)
class Case:
    parts: tuple[tuple[str, str], ...]
    overwrite: bool
    expected: tuple[str, ...]


CASES = {
    "every task below its name": Case(
        (("worker-0.1", "worker-0"), ("worker-1.2", "worker-1")),
        False,
        ("_SUCCESS", "worker-0/m", "worker-1/d/w", "worker-1/m"),
    ),
    "one task alone": Case((("worker-1.2", ""),), False, ("_SUCCESS", "d/w", "m")),
    "over what was there": Case((("worker-0.1", ""),), True, ("_SUCCESS", "m")),
    "a program's own mark": Case((("worker-3.1", ""),), False, ("_SUCCESS", "_SUCCESS.program")),
    "nothing written": Case((("worker-2.1", "worker-2"),), False, ("_SUCCESS",)),
    "no part counts": Case((), True, ("_SUCCESS",)),
}


class CommitContract:
    """A subclass gives fixtures `fs` and `base`."""

    def _lay_out(self, fs: FileSystem, base: str, case: Case) -> OutputCommit:
        fs.delete(base)
        uploaded = tuple(source for source, _ in case.parts)
        temporary, final = uris.join(base, ".howdah-j-0"), uris.join(base, "model")
        output = OutputCommit(temporary, final, case.overwrite, case.parts, uploaded)
        for name in ("worker-0.1/m", "worker-1.1/m", "worker-1.2/m", "worker-1.2/d/w"):
            fs.mkdirs(uris.parent(uris.join(output.temporary, name)))
            fs.create(uris.join(output.temporary, name)).close()
        for name in ("worker-2.1", "worker-3.1"):
            fs.mkdirs(uris.join(output.temporary, name))
        with fs.writing(uris.join(output.temporary, "worker-3.1/_SUCCESS")) as sink:
            sink.write(b"{}")
        if case.overwrite:
            fs.mkdirs(output.final)
            fs.create(uris.join(output.final, "old")).close()
        return output

    def _found(self, fs: FileSystem, base: str) -> tuple[list[str], tuple[str, ...]]:
        top = [uris.name(entry.uri) for entry in fs.children(base)]
        final = uris.join(base, "model")
        return top, tuple(sorted(uris.below(entry.uri, final) for entry in fs.walk(final)))

    @pytest.mark.parametrize("case", CASES.values(), ids=CASES)
    def test_a_crash_anywhere_is_made_good(self, fs: FileSystem, base: str, case: Case) -> None:
        def finishes(base: str, life: int) -> bool:
            output = self._lay_out(fs, base, case)
            finished = True
            try:
                commit(output, Mortal(fs, life))
            except Crash:
                finished = False
            there = ["model", "model.replaced-j-0"] if case.overwrite else ["model"]
            for _ in range(2):
                commit(output, fs)
                assert self._found(fs, base) == (there, case.expected), life
            assert all(fs.exists(uris.join(base, name, "old")) for name in there[1:]), life
            return finished

        assert crash_at_each_step(base, finishes) >= 6

    def test_what_is_there_is_not_touched_and_the_uploads_are_kept(self, fs: FileSystem, base: str) -> None:
        case = CASES["one task alone"]
        output = self._lay_out(fs, base, case)
        fs.mkdirs(output.final)
        fs.create(uris.join(output.final, "theirs")).close()
        for _ in range(2):
            with pytest.raises(StagingError, match=r"exists already.*kept in .*_commit"):
                commit(output, fs)
        assert self._found(fs, base)[1] == ("theirs",)
        assert fs.exists(uris.join(output.gathered, "m"))

    @pytest.mark.parametrize("what", ["Spark's mark", "newer", "older", "older mark", "renamed", "empty directory"])
    def test_what_others_have_made_or_changed_is_put_aside(self, fs: FileSystem, base: str, what: str) -> None:
        """Files of the same size, and files that are older: somebody has put an earlier checkpoint back."""
        output = self._lay_out(fs, base, CASES["over what was there"])
        final, early = uris.join(base, "model"), uris.join(base, "early")
        fs.write_bytes(early, b"54321")
        commit(output, fs)
        assert self._overwrite(fs, base, "k") == ""
        if what == "Spark's mark":
            fs.write_bytes(uris.join(final, "_SUCCESS"), b"")
        elif what == "newer":
            time.sleep(0.002)  # a file system counts milliseconds
            fs.write_bytes(uris.join(final, "m"), b"54321")
        elif what == "older":
            fs.rename(early, uris.join(final, "m"), overwrite=True)
        elif what == "older mark":
            fs.rename(early, uris.join(final, "_FAILED"))
        elif what == "renamed":
            fs.rename(uris.join(final, "m"), uris.join(final, "best"))
        else:
            fs.mkdirs(uris.join(final, "empty"))
        assert self._overwrite(fs, base, "l") == uris.join(base, "model.replaced-l-0")
        assert self._found(fs, base)[1] == ("_SUCCESS", "m")

    def test_what_is_put_aside_has_a_name_that_fits(self, fs: FileSystem, base: str) -> None:
        for number, name in enumerate(("n" * 255, "数" * 85)):
            kept = []
            for job in ("k", "k", "local-20261130-073154-a459"):
                final = uris.join(base, name)
                if fs.exists(final):
                    fs.write_bytes(uris.join(final, "changed"), b"")
                else:
                    fs.mkdirs(final)
                    fs.create(uris.join(final, "theirs")).close()
                output = OutputCommit(uris.join(base, f".howdah-{job}-{number}"), final, overwrite=True)
                fs.mkdirs(output.temporary)
                kept.append(commit(output, fs))
            assert [uris.name(uri)[0] for uri in kept] == [name[0]] * 3
            assert [fs.exists(uri) for uri in set(kept)] == [True] * 3
            assert kept[1] == f"{kept[0]}-2"

    def _overwrite(self, fs: FileSystem, base: str, job: str, snapshots: str = "") -> str:
        """Publish five bytes; return the place where the earlier content is kept."""
        output = OutputCommit(
            uris.join(base, f".howdah-{job}-0"), uris.join(base, "model"), True, (("worker-0.1", ""),)
        )
        fs.mkdirs(uris.join(output.temporary, "worker-0.1"))
        fs.write_bytes(uris.join(output.temporary, "worker-0.1/m"), b"12345")
        if not snapshots:
            return commit(output, fs)
        prefix = uris.join(output.final, "saved", "save_")
        copy = f"{prefix}{snapshots}"
        fs.mkdirs(copy)
        fs.write_bytes(uris.join(copy, "m"), b"123")
        return commit(replace(output, snapshot_prefix=prefix, unfinished=f"{output.temporary}-saves"), fs)

    def test_snapshots_in_an_output_do_not_count_as_changes(self, fs: FileSystem, base: str) -> None:
        fs.delete(base)
        copies = [f"2026_11_21_15_0{number}_00" for number in range(3)]
        for job, copy in zip("jkl", copies, strict=True):
            assert self._overwrite(fs, base, job, copy) == ""
        found = self._found(fs, base)
        assert found == (["model"], ("_SUCCESS", "m", *(f"saved/save_{copy}/m" for copy in copies)))

    def test_a_crash_while_the_old_output_is_removed(self, fs: FileSystem, base: str) -> None:
        """The remains of the old output are not reported as kept."""

        def finishes(base: str, life: int) -> bool:
            commit(self._lay_out(fs, base, CASES["over what was there"]), fs)
            fs.delete(uris.join(base, "model.replaced-j-0"))
            output = OutputCommit(uris.join(base, ".howdah-k-0"), uris.join(base, "model"), True, (("w", ""),))
            fs.mkdirs(uris.join(output.temporary, "w"))
            fs.create(uris.join(output.temporary, "w", "m")).close()
            try:
                commit(output, Mortal(fs, life))
            except Crash:
                fs.delete(uris.join(output.removed, "m"))
                assert commit(output, fs) == ""
                assert self._found(fs, base) == (["model"], ("_SUCCESS", "m")), life
                return False
            return True

        assert crash_at_each_step(base, finishes) >= 6

    def test_discard_leaves_nothing_of_a_failed_job(self, fs: FileSystem, base: str) -> None:
        output = self._lay_out(fs, base, CASES["over what was there"])
        discard(output, fs)
        discard(output, fs)
        assert self._found(fs, base) == (["model"], ("old",))

    def test_discard_after_a_crash_keeps_the_old_output_or_the_new(self, fs: FileSystem, base: str) -> None:
        old, new = ("old",), ("_SUCCESS", "m")
        seen: dict[int, tuple[str, ...]] = {}

        def finishes(base: str, life: int) -> bool:
            output, finished = self._lay_out(fs, base, CASES["over what was there"]), True
            try:
                commit(output, Mortal(fs, life))
            except Crash:
                finished = False
            discard(output, fs)
            top, seen[life] = self._found(fs, base)
            assert top == (["model"] if seen[life] == old else ["model", "model.replaced-j-0"]), life
            return finished

        crash_at_each_step(base, finishes)
        in_order = [seen[life] for life in sorted(seen)]
        assert in_order == sorted(in_order, reverse=True)
        assert set(in_order) == {old, new}

    def test_copies_in_the_outputs_place_come_with_it_whenever_it_dies(self, fs: FileSystem, base: str) -> None:
        copies = ("interResult/interResult_2026_11_21_15_00_00", "interResult/interResult_2026_11_21_15_10_00")

        def finishes(base: str, life: int) -> bool:
            laid, finished = self._lay_out(fs, base, CASES["one task alone"]), True
            places = {
                "snapshot_prefix": uris.join(laid.final, "interResult", "interResult_"),
                "unfinished": laid.temporary + "-saves",
            }
            output = replace(laid, **places)
            for copy in (*(uris.join(output.final, name) for name in copies), uris.join(output.unfinished, "half")):
                fs.mkdirs(uris.join(copy, "worker-0"))
                fs.create(uris.join(copy, "worker-0", "m")).close()
            try:
                commit(output, Mortal(fs, life))
            except Crash:
                finished = False
            commit(output, fs)
            expected = ("_SUCCESS", "d/w", *(f"{copy}/worker-0/m" for copy in copies), "m")
            assert self._found(fs, base) == (["model"], expected), life
            return finished

        assert crash_at_each_step(base, finishes) >= 6

    def test_copies_of_a_failed_job_stay(self, fs: FileSystem, base: str) -> None:
        laid = self._lay_out(fs, base, CASES["one task alone"])
        output = replace(
            laid,
            snapshot_prefix=laid.final + ".saved/",
            unfinished=uris.join(laid.final + ".saved", ".howdah-j-0-saves"),
        )
        kept = uris.join(laid.final + ".saved", "2026_11_21_15_00_00", "m")
        for name in (kept, uris.join(output.unfinished, "x", "m")):
            fs.mkdirs(uris.parent(name))
            fs.create(name).close()
        discard(output, fs)
        assert [uris.name(entry.uri) for entry in fs.children(base)] == ["model.saved"]
        assert [entry.uri for entry in fs.walk(base)] == [kept]

    def test_others_in_the_outputs_place_are_not_touched_for_copies(self, fs: FileSystem, base: str) -> None:
        laid = self._lay_out(fs, base, CASES["one task alone"])
        output = replace(laid, snapshot_prefix=uris.join(laid.final, "save_"), unfinished=laid.temporary + "-saves")
        for name in ("save_2026_11_21_15_00_00/m", "save_me", "theirs"):
            fs.mkdirs(uris.parent(uris.join(output.final, name)))
            fs.create(uris.join(output.final, name)).close()
        with pytest.raises(StagingError, match="exists already"):
            commit(output, fs)
        assert self._found(fs, base)[1] == ("save_me", "theirs")
        assert fs.exists(uris.join(output.gathered, "save_2026_11_21_15_00_00", "m"))
