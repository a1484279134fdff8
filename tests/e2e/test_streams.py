"""Tests streaming records from HDFS into programs, and their output back, as people run it."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import hdfs_native
import pytest
from commandline import CommandLine

from howdah.inputs import formats
from howdah.inputs.formats import Split
from howdah.sandbox import Sandbox
from howdah.spec import uris
from howdah.spec.codec import encode
from howdah.spec.staged import Feed

BLOCK = 1 << 20
LINES = [f"{number:07d} the quick brown fox jumps over the lazy dog\n".encode() for number in range(60_000)]
EXAMPLE = Path(__file__).parents[2] / "examples" / "stream-wordcount" / "job.yaml"
FORMATS = Path(__file__).parents[2] / "examples" / "stream-formats"


@pytest.fixture(scope="module")
def howdah(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HADOOP_CONF_DIR", str(sandbox.conf_dir))
        command_line = CommandLine(sandbox, tmp_path_factory.mktemp("streams"))
        yield command_line
        command_line.end_all()


@pytest.fixture(scope="module")
def text(howdah: CommandLine) -> str:
    """3 MB in blocks of 1 MiB, whose borders fall into lines; and a small file whose last line has no end."""
    directory = f"{howdah.root}/tmp/stream-text"
    howdah.files.mkdirs(directory)
    client = hdfs_native.Client(howdah.root)
    options = hdfs_native.WriteOptions(block_size=BLOCK, overwrite=True)
    for left in (2, 1, 0):
        try:
            with client.create(uris.path(f"{directory}/a.txt"), options) as file:
                file.write(b"".join(LINES))
            break
        except RuntimeError:  # the DataNode of a busy machine has not told of a block yet, and the library gives up
            if not left:
                raise
    howdah.files.write_bytes(f"{directory}/b.txt", b"one more line")
    return directory


def printed(howdah: CommandLine, uri: str) -> dict[str, bytes]:
    """The parts of an output, unpacked, by name."""
    files = [entry.uri for entry in howdah.files.children(uri)]
    assert f"{uri}/_SUCCESS" in files
    parts = {uris.name(file): howdah.files.read_bytes(file) for file in files if "/part-" in file}
    return {name: gzip.decompress(part) if name.endswith(".gz") else part for name, part in parts.items()}


def test_every_line_goes_to_one_of_three_tasks(howdah: CommandLine, text: str) -> None:
    target = f"{howdah.root}/tmp/stream-counts"
    done = howdah("run", "--on", "yarn", "--set", f"TEXT={text}", "--set", f"COUNTS={target}", str(EXAMPLE))
    assert done.code == 0, done.text
    counts: Counter[str] = Counter()
    parts = printed(howdah, target)
    for part in parts.values():
        for line in part.decode().splitlines():
            word, _, count = line.partition("\t")
            counts[word] += int(count)
    assert sorted(parts) == [f"part-worker-{number}.gz" for number in range(3)]
    assert counts["fox"] == len(LINES)
    assert counts["the"] == 2 * len(LINES)
    assert counts["more"] == 1
    status = howdah("status", done.job).text
    assert "streamed: 3.0 MiB, 100% of it on the task's own node" in status
    assert all(task["progress"] == 1.0 for task in howdah.status(done.job)["tasks"])


def test_epochs_in_an_order_that_the_seed_determines(howdah: CommandLine, text: str) -> None:
    entry = {"path": text, "strategy": "stream", "epochs": 2, "shuffle": True, "window": 1000, "seed": 7}
    found = []
    for number in range(2):
        target = f"{howdah.root}/tmp/stream-epochs-{number}"
        outputs = [{"path": target, "strategy": "stream"}]
        done = howdah.run("cat", replicas=2, inputs=[entry], outputs=outputs).done()
        assert done.code == 0, done.text
        found.append(printed(howdah, target))
    assert found[0] == found[1]
    lines = [part.splitlines(keepends=True) for part in found[0].values()]
    assert Counter(line for part in lines for line in part) == Counter([*LINES, b"one more line\n"] * 2)
    first, second = lines[0][: len(lines[0]) // 2], lines[0][len(lines[0]) // 2 :]
    assert sorted(first) == sorted(second)
    assert first not in (second, sorted(first))


def test_sequencefile_to_sequencefile(howdah: CommandLine) -> None:
    source, target = f"{howdah.root}/tmp/stream-pairs/pairs.seq", f"{howdah.root}/tmp/stream-pairs-out"
    pairs = [b"key%d\tvalue of %d\n" % (number, number) for number in range(5000)]
    howdah.files.mkdirs(uris.parent(source))
    with howdah.files.writing(source) as sink:
        writer = formats.writer("sequencefile", {}, sink)
        writer.write(b"".join(pairs))
        writer.close()
    done = howdah.run(
        "cat",
        replicas=2,
        inputs=[{"path": source, "strategy": "stream", "format": "sequencefile"}],
        outputs=[{"path": target, "strategy": "stream", "format": "sequencefile"}],
    ).done()
    assert done.code == 0, done.text
    reader, found = formats.reader("sequencefile", {}), []
    for entry in [each for each in howdah.files.children(target) if uris.name(each.uri) != "_SUCCESS"]:
        for split in reader.splits(howdah.files, entry.uri, entry.size, 0, 0):
            found += reader.records(howdah.files, split)
    assert sorted(found) == sorted(pairs)


def test_a_failed_job_leaves_nothing(howdah: CommandLine, text: str) -> None:
    target = f"{howdah.root}/tmp/stream-failed"
    done = howdah.run(
        "head -1000; exit 3",
        inputs=[{"path": text, "strategy": "stream"}],
        outputs=[{"path": target, "strategy": "stream"}],
    ).done()
    assert done.code != 0
    assert "exit code 3" in done.text
    assert not howdah.files.exists(target)
    assert howdah.left(done.job) == []


def test_a_program_that_stops_reading_is_told_of(howdah: CommandLine, text: str) -> None:
    done = howdah.run(
        "head -10 >/dev/null; sleep 60 <&0",
        inputs=[{"path": text, "strategy": "stream"}],
        timeouts={"stall": "2s", "stop": "1s"},
    ).done()
    assert done.code != 0
    assert re.search(
        r"worker:0 has read nothing from its standard input for \d+ s, since \d\d:\d\d:\d\d \(timeouts.stall\);"
        r" it was given hdfs://\S+/a.txt, bytes 0 to \d+ in epoch 1, \d+% of all",
        done.text,
    ), done.text


class TestWhatCannotBeReadWhole:
    """The helper itself, on the real HDFS."""

    def feed(self, howdah: CommandLine, *splits: Split, **fields: object) -> tuple[dict[str, object], bytes]:
        reader, writer = os.pipe()
        feeds = [Feed(0, splits, **fields)]  # type: ignore[arg-type]
        request = {"feeds": encode(feeds), "to": writer, "task": "t:0", "host": "h", "directory": "/", "stall_s": 5}
        command = [sys.executable, "-m", "howdah.inputs.streaming.stdin_feeder"]
        with subprocess.Popen(command, stdin=-1, stdout=-1, pass_fds=(writer,)) as helper:
            os.close(writer)
            assert helper.stdin
            helper.stdin.write(json.dumps(request).encode())
            helper.stdin.close()
            with os.fdopen(reader, "rb") as pipe:
                given = pipe.read()
            assert helper.stdout
            return json.loads(helper.stdout.read().splitlines()[-1]), given

    def test_a_file_deleted_since(self, howdah: CommandLine, text: str) -> None:
        uri = f"{howdah.root}/tmp/stream-gone.txt"
        answer, given = self.feed(howdah, Split(f"{text}/b.txt", 0, 13), Split(uri, 0, 100, size=100))
        assert given == b"one more line\n"
        assert answer["error"] == f"{uri}: no such file: it was there when the job was submitted"

    def test_a_file_cut_since(self, howdah: CommandLine, text: str) -> None:
        answer, given = self.feed(howdah, Split(f"{text}/b.txt", 0, 20, size=20))
        assert given == b""
        assert "b.txt: has changed since the job was submitted: it had 20 bytes, and has 13" in str(answer["error"])

    def test_a_truncated_gz(self, howdah: CommandLine) -> None:
        uri, packed = f"{howdah.root}/tmp/stream-cut.gz", gzip.compress(b"".join(LINES[:1000]))[:-50]
        howdah.files.write_bytes(uri, packed)
        answer, given = self.feed(howdah, Split(uri, 0, len(packed)))
        assert b"".join(LINES).startswith(given)
        assert str(answer["error"]).startswith(f"{uri}: at byte ")

    def pairs(self, howdah: CommandLine, name: str, values: list[str], cut: int = 0) -> tuple[Split, bytes]:
        """A SequenceFile, without its last `cut` bytes, and the lines that it was to have."""
        sink, lines = io.BytesIO(), "".join(f"key\t{value}\n" for value in values).encode()
        writer = formats.writer("sequencefile", {"key": "true", "compression": "none"}, sink)
        writer.write(lines)
        writer.close()
        uri, made = f"{howdah.root}/tmp/stream-{name}.seq", sink.getvalue()
        howdah.files.write_bytes(uri, made[: len(made) - cut])
        return Split(uri, 0, len(made) - cut, size=len(made) - cut), lines

    def test_a_truncated_sequencefile(self, howdah: CommandLine) -> None:
        split, lines = self.pairs(howdah, "cut", [f"value {number}" for number in range(5000)], cut=7)
        answer, given = self.feed(howdah, split, format="sequencefile", options={"key": "true"})
        assert lines.startswith(given)
        assert given != lines
        assert str(answer["error"]).startswith(f"{split.uri}: at byte "), answer

    def test_a_record_that_is_too_long(self, howdah: CommandLine) -> None:
        split, _ = self.pairs(howdah, "long", ["short", "x" * 5000, "short"])
        options = {"key": "true", "max_record": "1KiB"}
        answer, _ = self.feed(howdah, split, format="sequencefile", options=options)
        assert str(answer["error"]).startswith(f"{split.uri}: at byte ")
        assert "a record of 50" in str(answer["error"])
        assert "allowed are 1024 (max_record)" in str(answer["error"])


@pytest.mark.timeout(900)  # where the environment is made first
def test_each_format_and_compression_by_the_example(howdah: CommandLine, tmp_path: Path) -> None:
    subprocess.run([sys.executable, FORMATS / "make_samples.py", tmp_path / "samples"], check=True, timeout=60)
    samples, rows = f"{howdah.root}/tmp/stream-samples", f"{howdah.root}/tmp/stream-rows"
    howdah.files.mkdirs(samples)
    for file in (tmp_path / "samples").iterdir():
        howdah.files.put(file, f"{samples}/{file.name}")
    sets = ("--set", f"SAMPLES={samples}", "--set", f"ROWS={rows}")
    done = howdah.start("run", "--on", "yarn", str(FORMATS / "job.yaml"), *sets).done(400)
    assert done.code == 0, done.text
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    wanted = Counter(dict.fromkeys(enumerate(words), 14))
    options = {"tfrecord": {"framing": "lines"}}
    for name, part in {
        "text": "text/part-text-0",
        "sequencefile": "seq/part-sequencefile-0.seq",
        "tfrecord": "tfrecord/part-tfrecord-0.tfrecord",
        "parquet": "parquet/part-parquet-0.parquet",
    }.items():
        reader, uri = formats.reader(name, options.get(name, {})), f"{rows}/{part}"
        entry = howdah.files.stat(uri)
        assert entry is not None
        splits = reader.splits(howdah.files, uri, entry.size, entry.block_size, entry.size)
        lines = [line for split in splits for line in reader.records(howdah.files, split)]
        found = [json.loads(base64.b64decode(line) if name == "tfrecord" else line) for line in lines]
        assert Counter((row["number"], row["word"]) for row in found) == wanted, name
