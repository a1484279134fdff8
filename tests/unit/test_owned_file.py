"""Tests who owns a file in segments, when answers are lost and masters are killed between any two requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from object_store import SmallBlocks, Store

from howdah.errors import EngineUnavailable, StagingError
from howdah.master.owned_file import LogChanged, LogOwnerChanged, SegmentedFile
from howdah.storage.segmented_log import find_log, segment_uri

URI = "s3://bucket/events.jsonl"


class Killed(BaseException):
    """The process is gone."""


class Faulty(Store):
    """Ends before or after a request that writes, by its number, or loses its answer."""

    def __init__(self, objects: dict[str, bytes] | None = None) -> None:
        super().__init__()
        self.objects = objects if objects is not None else self.objects
        self.requests = 0
        self.fails: dict[int, tuple[bool, type[BaseException]]] = {}
        """For a number whether the request is carried out, and the error."""
        self.reads = 0

    def _counted(self, act: Callable[[], object]) -> object:
        self.requests += 1
        done, error = self.fails.get(self.requests, (True, None))
        answer = act() if done else None
        if error is not None:
            raise error("injected")
        return answer

    def create_new(self, uri: str, data: bytes) -> bool:
        return bool(self._counted(lambda: super(Faulty, self).create_new(uri, data)))

    def write_bytes(self, uri: str, data: bytes, mode: int) -> None:
        self._counted(lambda: super(Faulty, self).write_bytes(uri, data, mode))

    def delete_files(self, gone: Sequence[str]) -> None:
        """Each removal is a step of its own."""
        for uri in gone:
            self._counted(lambda uri=uri: super(Faulty, self).delete_files([uri]))

    def read_bytes(self, uri: str) -> bytes:
        self.reads += 1
        return super().read_bytes(uri)


def owned(files: Store, small: bool = True) -> SegmentedFile:
    return (SmallBlocks if small else SegmentedFile)(URI, "event log", files)  # type: ignore[arg-type]


def content(files: Store) -> bytes:
    log = find_log(files, URI)  # type: ignore[arg-type]
    return log.read() if log is not None else b""


def batch(number: int) -> bytes:
    return b"line %d\n" % number


def write(file: SegmentedFile, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        file.append(batch(number))
        file.merge()


def lines(count: int, first: int = 0) -> bytes:
    return b"".join(map(batch, range(first, first + count)))


def killed_at_every_step(work: Callable[[SegmentedFile], None]) -> list[Faulty]:
    """The stores that a master leaves which is killed before or after each of its requests."""
    left, count = [], 1
    while True:
        for done in (False, True):
            files = Faulty()
            files.fails[count] = done, Killed
            try:
                work(owned(files))
                return left
            except Killed:
                left.append(files)
        count += 1


def test_a_master_killed_at_any_step_of_writing_and_merging_leaves_a_log_that_goes_on() -> None:
    def work(file: SegmentedFile) -> None:
        write(file, 37)
        file.merge(at_the_end=True)

    left = killed_at_every_step(work)
    assert len(left) > 150
    for killed in left:
        files = Faulty(killed.objects)
        before = content(files)
        assert before == lines(before.count(b"\n"))
        if before:
            new = owned(files)
            new.claim(new.read(), b"took over\n")
            write(new, 40, 100)
            new.merge(at_the_end=True)
            assert content(files) == before + b"took over\n" + lines(40, 100)


def test_what_was_confirmed_is_there_after_each_kill() -> None:
    for step in range(1, 120):
        for done in (False, True):
            files, confirmed = Faulty(), 0
            files.fails[step] = done, Killed
            file = owned(files)
            try:
                for number in range(30):
                    file.append(batch(number))
                    confirmed = number + 1
                    file.merge()
            except Killed:
                pass
            assert content(files).startswith(lines(confirmed))


def test_lost_answers_bring_no_line_twice() -> None:
    for done in (False, True):
        for step in range(1, 60):
            files = Faulty()
            files.fails.update({step: (done, EngineUnavailable), step + 1: (done, EngineUnavailable)})
            file, pending, expected = owned(files), b"", b""
            for number in range(20):
                pending, expected = pending + batch(number), expected + batch(number)
                try:
                    file.append(pending)
                    pending = b""
                    file.merge()
                except EngineUnavailable:
                    continue
            files.fails.clear()
            file.append(pending)
            assert content(files) == expected
            assert file.known == len(expected)


def test_the_old_master_finds_out_whatever_the_new_one_merges() -> None:
    for count in range(1, 40):
        files = Faulty()
        old, new = owned(files), owned(files)
        write(old, count)
        new.claim(new.read(), b"took over\n")
        write(new, 80, 1000)
        new.merge(at_the_end=True)
        with pytest.raises(LogOwnerChanged):
            old.check()
        with pytest.raises(LogOwnerChanged):
            old.append(b"of the old one\n")
        with pytest.raises(LogOwnerChanged):
            old.append(b"again\n")
        assert content(files) == lines(count) + b"took over\n" + lines(80, 1000)


def test_the_old_master_writes_while_it_is_read() -> None:
    """Its new segments may even be merged and gone, so that the number is free again."""
    for count in range(1, 40):
        for more in range(1, 20):
            files = Faulty()
            old, new = owned(files), owned(files)
            write(old, count)
            before = new.read()
            write(old, more, count)
            with pytest.raises(LogChanged):
                new.claim(before, b"took over\n")
            before = new.read()
            assert before == lines(count + more)
            new.claim(before, b"took over\n")
            with pytest.raises(LogOwnerChanged):
                old.append(b"of the old one\n")
            assert content(files) == before + b"took over\n"


def test_the_old_master_goes_on_merging() -> None:
    """It was stopped in the middle of that, and goes on when the new one has written and merged, too."""
    for step in range(1, 12):
        files = Faulty()
        old = owned(files)
        for number in range(16):
            old.append(batch(number))
        new = owned(Faulty(files.objects))

        def meanwhile(new: SegmentedFile = new) -> None:
            new.claim(new.read(), b"took over\n")
            write(new, 40, 1000)

        files.fails[files.requests + step] = True, Killed
        try:
            old.merge()
        except Killed:
            meanwhile()
        old.merge()
        if new.last > 0:
            assert content(files) == lines(16) + b"took over\n" + lines(40, 1000)
            write(new, 40, 2000)
            assert content(files).endswith(lines(40, 2000))


def test_a_claim_whose_answer_is_lost_is_made_again() -> None:
    files = Faulty()
    old, new = owned(files), owned(files)
    write(old, 3)
    before = new.read()
    files.fails[files.requests + 1] = True, EngineUnavailable
    with pytest.raises(EngineUnavailable):
        new.claim(before, b"took over\n")
    with pytest.raises(LogChanged):
        new.claim(before, b"took over\n")
    before = new.read()
    new.claim(before, b"took over again\n")
    with pytest.raises(LogOwnerChanged):
        old.append(b"of the old one\n")


def test_two_masters_claim_at_the_same_time() -> None:
    files = Faulty()
    write(owned(files), 3)
    one, two = owned(files), owned(files)
    before = one.read()
    assert two.read() == before
    one.claim(before, b"\n")
    with pytest.raises(LogChanged):
        two.claim(before, b"\n")


def test_two_masters_begin_at_the_same_time() -> None:
    files = Faulty()
    one, two = owned(files), owned(files)
    assert (one.read(), two.read()) == (b"", b"")
    one.append(b"one\n")
    with pytest.raises(LogOwnerChanged):
        two.append(b"two\n")


def test_a_file_of_an_earlier_version_is_continued() -> None:
    files = Faulty({URI: b'{"whole":1}\n{"cut'})
    file = owned(files)
    file.claim(file.read(), b"took over\n")
    write(file, 9)
    assert content(files) == b'{"whole":1}\n{"cut\ntook over\n' + lines(9)


def test_readers_do_few_requests() -> None:
    files = Faulty()
    file = owned(files, small=False)
    for number in range(3000):
        file.append(batch(number))
        file.merge()
    log = find_log(files, URI)  # type: ignore[arg-type]
    assert log is not None
    assert len(log.segments) < 100
    file.merge(at_the_end=True)
    log = find_log(files, URI)  # type: ignore[arg-type]
    assert log is not None
    assert len(log.segments) == 1
    assert [part.uri for part in log.covered] == [URI]
    assert log.read() == lines(3000)


def test_a_large_log_is_merged_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("howdah.master.owned_file.MERGED_BYTES", 200)
    files = Faulty()
    file = owned(files)
    write(file, 300)
    file.merge(at_the_end=True)
    assert content(files) == lines(300)
    assert max(map(len, files.objects.values())) <= 200
    assert len(files.objects) < 40


def test_merging_costs_no_more_when_the_log_is_long() -> None:
    files = Faulty()
    file = owned(files, small=False)
    costs = []
    for _ in range(4):
        before = files.requests + files.reads
        write(file, 1024)
        costs.append(files.requests + files.reads - before)
    assert max(costs) <= min(costs) * 1.1


def test_a_store_that_ignores_the_condition_is_found_out(capsys: pytest.CaptureFixture[str]) -> None:
    class Careless(Faulty):
        def create_new(self, uri: str, data: bytes) -> bool:
            self.objects[uri] = data
            return True

    files = Careless()
    old, new = owned(files), owned(files)
    write(old, 3)
    assert "ignores If-None-Match" in capsys.readouterr().err
    new.claim(new.read(), b"took over\n")
    with pytest.raises(LogOwnerChanged):
        old.append(b"of the old one\n")
    assert content(files) == lines(3) + b"took over\n"


def test_a_file_is_replaced_by_what_says_as_much() -> None:
    def work(file: SegmentedFile) -> None:
        write(file, 9)
        file.replace(b"snapshot\n")
        write(file, 1, 9)

    for files in killed_at_every_step(work):
        found = content(files)
        assert found in (*map(lines, range(10)), b"snapshot\n", b"snapshot\n" + batch(9))


def test_old_lines_do_not_come_back_after_a_replacement() -> None:
    files = Faulty()
    file = owned(files)
    write(file, 5)
    file.replace(b"snapshot\n")
    write(file, 90, 5)
    assert content(files) == b"snapshot\n" + lines(90, 5)
    file.replace(b"another\n")
    file.replace(b"third\n")
    assert content(files) == b"third\n"
    again = owned(files)
    assert again.read() == b"third\n"


def test_a_file_is_emptied_and_the_old_master_finds_out() -> None:
    files = Faulty()
    old, new = owned(files), owned(files)
    new.clear()
    write(old, 6)
    new.clear()
    assert content(files) == b""
    with pytest.raises(LogOwnerChanged):
        old.append(b"of the old one\n")
    new.append(b"anew\n")
    assert content(files) == b"anew\n"


def test_a_file_is_continued_without_being_read() -> None:
    files = Faulty()
    old, new = owned(files), owned(files)
    write(old, 6)
    reads = files.reads
    new.resume()
    assert files.reads == reads
    with pytest.raises(LogOwnerChanged):
        old.check()
    new.append(b"more\n")
    assert content(files) == lines(6) + b"\nmore\n"


def test_nothing_is_left() -> None:
    files = Faulty()
    file = owned(files)
    write(file, 50)
    file.remove()
    assert files.objects == {}


def test_a_segment_that_is_missing_stops_a_takeover() -> None:
    files = Faulty()
    write(owned(files), 3)
    del files.objects[segment_uri(URI, 1)]
    with pytest.raises(StagingError, match="is missing"):
        owned(files).read()
