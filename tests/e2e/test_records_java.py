"""Tests that Java's own readers and writers of Hadoop, Avro, ORC and Parquet files understand ours, and ours theirs."""

from __future__ import annotations

import base64
import importlib.util
import json
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.inputs.formats import Split, reader, writer
from howdah.sandbox import install
from howdah.spec import uris
from howdah.storage.content_cache import local_directory
from howdah.storage.local import LocalFileSystem

CACHE = local_directory()  # as it is before the session's fixture moves HOWDAH_HOME
PROGRAM = Path(__file__).with_name("java") / "Records.java"
LIBRARIES = (
    ("org.apache.avro", "avro", "1.12.0", ""),
    ("org.apache.orc", "orc-core", "1.9.4", "nohive"),
    ("org.lz4", "lz4-java", "1.8.0", ""),
    ("org.apache.parquet", "parquet-hadoop", "1.15.2", ""),
)
PARQUET = ("none", "snappy", "gzip", "zstd")
ROWS = [f"{'k' * (number % 7)}{number}\t{'v' * (number * 13 % 300)}é" for number in range(2000)]
FS = LocalFileSystem()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`theirs`, which Java wrote, `ours` and `read`, what Java reads of ours: one start of Java for all."""
    directory = tmp_path_factory.mktemp("records")
    java = install.require_java(install.DEFAULT_HADOOP, print)
    if "jdk.compiler" not in subprocess.run([java.program, "--list-modules"], capture_output=True, text=True).stdout:
        pytest.skip("this Java runs programs, but does not compile any")
    hadoop = install.jars(install.DEFAULT_HADOOP, java, CACHE, print)
    write_ours(directory / "ours")
    # Its start is most of what it does.
    command = [java.program, "-XX:TieredStopAtLevel=1", "-cp", f"{hadoop}/*:{libraries()}/*", PROGRAM, directory]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return directory


def libraries() -> Path:
    """Jars that Hadoop does without, from Maven Central once."""
    target = CACHE / "records-java-2"
    if not target.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as work:
            Path(work, "pom.xml").write_text(pom())
            command = ["mvn", "-B", "-q", "-f", f"{work}/pom.xml", "dependency:copy-dependencies"]
            subprocess.run([*command, f"-DoutputDirectory={work}/lib"], check=True, timeout=280)
            shutil.move(f"{work}/lib", target)
    return target


def pom() -> str:
    # ORC brings an older Hadoop along.
    hadoop = "<groupId>org.apache.hadoop</groupId><artifactId>*</artifactId>"
    without = f"<exclusions><exclusion>{hadoop}</exclusion></exclusions>"
    rows = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        + (f"<classifier>{kind}</classifier>" if kind else "")
        + f"{without}</dependency>"
        for group, name, version, kind in LIBRARIES
    )
    head = "<modelVersion>4.0.0</modelVersion><groupId>howdah.tests</groupId><artifactId>records</artifactId>"
    return f"<project>{head}<version>1</version><dependencies>{rows}</dependencies></project>"


def write_ours(directory: Path) -> None:
    directory.mkdir()
    for compression in ("none", "record", "block"):
        for codec in ("deflate", "gzip", "bzip2", "snappy", "lz4"):
            options = {"compression": compression, "codec": codec}
            lines = "".join(f"{row}\n" for row in ROWS).encode()
            write(directory / f"text-{compression}-{codec}", "sequencefile", options, lines)
            write(directory / f"key-{compression}-{codec}", "sequencefile", {**options, "key": "true"}, lines)
    bare = b"".join(struct.pack(">I", len(row.encode())) + row.encode() for row in ROWS)
    write(directory / "bytes", "sequencefile", {"framing": "length", "value": "bytes"}, bare)
    write(directory / "empty", "sequencefile", {}, b"")
    write(directory / "text.gz", "gzip", {}, "".join(f"{row}\n" for row in ROWS).encode())
    if importlib.util.find_spec("pyarrow"):
        rows = [json.dumps({"id": number, "text": row, "part": number / 8}) for number, row in enumerate(ROWS)]
        for codec in PARQUET:
            options = {"compression": codec, "batch": "64KiB"}
            write(directory / f"parquet-{codec}", "parquet", options, "".join(f"{row}\n" for row in rows).encode())


def write(path: Path, name: str, options: dict[str, str], data: bytes) -> None:
    with path.open("wb") as sink:
        made = writer(name, options, sink)
        for at in range(0, len(data), 7001):
            made.write(data[at : at + 7001])
        made.close()


def ours_read_by_java(files: Path, name: str) -> list[str]:
    return (files / "read" / name).read_text().split("\n")[:-1]


def theirs(files: Path, prefix: str = "", suffix: str = "") -> Iterator[Path]:
    found = [
        path
        for path in sorted((files / "theirs").iterdir())
        if path.name.startswith(prefix) and path.name.endswith(suffix)
        if path.suffix not in (".expected", ".splits", ".counted", ".crc")
    ]
    assert found
    return iter(found)


def expected(path: Path) -> list[str]:
    return path.with_name(f"{path.name}.expected").read_text().split("\n")[:-1]


def whole(path: Path, name: str, options: dict[str, str] | None = None) -> list[str]:
    """What a program would read of the file, as one split."""
    split = Split(uris.of_local(path), 0, path.stat().st_size)
    pieces = reader(name, options or {}).blocks(FS, split)
    return b"".join(bytes(piece) for piece in pieces).decode().split("\n")[:-1]


def counts(path: Path, name: str) -> list[list[int]]:
    """Records in each split, for the sizes of splits that Java was asked for."""
    size, uri, found = path.stat().st_size, uris.of_local(path), []
    for line in path.with_name(f"{path.name}.splits").read_text().splitlines():
        step = int(line.split()[0])
        splits = [Split(uri, at, min(step, size - at)) for at in range(0, size, step)]
        found.append([step, *(sum(1 for _ in reader(name, {}).records(FS, split)) for split in splits)])
    return found


def java_counts(path: Path) -> list[list[int]]:
    lines = path.with_name(f"{path.name}.splits").read_text().splitlines()
    return [[int(word) for word in line.split()] for line in lines]


def test_sequence_files_of_every_compression(files: Path) -> None:
    for path in theirs(files, "seq-"):
        assert whole(path, "sequencefile", {"key": "true"}) == expected(path), path.name


def test_keys_and_values_of_every_kind(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in theirs(files, "kind-"):
        found = [line.split("\t") for line in whole(path, "sequencefile", {"key": "true"})]
        # What is null goes with its tab, an empty value does not.
        one = path.name.startswith(("kind-null", "kind-float"))
        wanted = [(line.strip("\t") if one else line).split("\t") for line in expected(path)]
        if "float" in path.name or "double" in path.name:
            found, wanted = stored(found, path.name), stored(wanted, path.name)
        assert found == wanted, path.name
    assert "MapWritable is not known here" in capsys.readouterr().err


def stored(rows: list[list[str]], name: str) -> list[bytes]:
    """Java writes 1.0E10 where Python writes 10000000000.0: the number in the file is what counts."""
    return [struct.pack(">f" if "float" in name else ">d", float(row[-1])) for row in rows]


def test_splits_of_sequence_files_have_the_records_that_hadoop_finds_in_them(files: Path) -> None:
    for path in (*theirs(files, "seq-"), *theirs(files, "kind-")):
        assert counts(path, "sequencefile") == java_counts(path), path.name


def test_text_however_compressed(files: Path) -> None:
    for suffix in (".txt", ".gz", ".bz2", ".snappy", ".lz4", ".deflate"):
        for path in theirs(files, suffix=suffix):
            assert whole(path, "text") == expected(path), path.name


def test_splits_of_text_have_the_lines_that_hadoop_finds_in_them(files: Path) -> None:
    for path in (*theirs(files, suffix=".txt"), *theirs(files, suffix=".bz2")):
        assert counts(path, "text") == java_counts(path), path.name


def test_splits_of_so_many_lines(files: Path) -> None:
    path = files / "theirs" / "plain.txt"
    lines = reader("text", {"lines": "37"})
    splits = lines.splits(FS, uris.of_local(path), path.stat().st_size, 0, 0)
    wanted = [int(word) for word in path.with_name("plain.txt.counted").read_text().split()]
    assert [sum(1 for _ in lines.records(FS, split)) for split in splits] == wanted


@pytest.mark.parametrize("name", ["avro", "orc"])
def test_rows(files: Path, name: str) -> None:
    pytest.importorskip("fastavro" if name == "avro" else "pyarrow")
    for path in theirs(files, suffix=f".{name}"):
        found = [json.loads(line) for line in whole(path, name)]
        assert found == [json.loads(line) for line in expected(path)], path.name


def test_splits_of_avro_have_the_records_that_java_finds_in_them(files: Path) -> None:
    pytest.importorskip("fastavro")
    for path in theirs(files, suffix=".avro"):
        assert counts(path, "avro") == java_counts(path), path.name


def test_java_reads_the_values_that_we_write(files: Path) -> None:
    for path in (files / "ours").glob("text-*"):
        assert ours_read_by_java(files, path.name) == [f"\t{row}" for row in ROWS], path.name


def test_java_reads_the_keys_that_we_write(files: Path) -> None:
    for path in (files / "ours").glob("key-*"):
        assert ours_read_by_java(files, path.name) == ROWS, path.name


def test_java_reads_bytes_gzip_and_an_empty_file(files: Path) -> None:
    stored_bytes = [line.removeprefix("\t") for line in ours_read_by_java(files, "bytes")]
    assert [base64.b64decode(line).decode() for line in stored_bytes] == ROWS
    assert ours_read_by_java(files, "empty") == []
    assert ours_read_by_java(files, "text.gz") == ROWS


@pytest.mark.parametrize("codec", PARQUET)
def test_java_reads_the_parquet_that_we_write(files: Path, codec: str) -> None:
    pytest.importorskip("pyarrow")
    wanted = [f"{number}\t{row}\t{number / 8}" for number, row in enumerate(ROWS)]
    assert ours_read_by_java(files, f"parquet-{codec}") == wanted
