"""Tests that a list of URIs is given to a program in a variable if it fits, and always in a file."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from howdah.executor.io.input_uri_list import FILE_NAME, MAX_LIST_BYTES, S3_FILE_NAME, variables


def test_a_short_list_is_in_both(tmp_path: Path) -> None:
    listed = {"train": ("hdfs://n/a b", "hdfs://n/é"), "test": ()}
    found = variables(listed, str(tmp_path))
    assert json.loads(found["INPUT_FILE_LIST"]) == {"train": ["hdfs://n/a b", "hdfs://n/é"], "test": []}
    assert found["INPUT_FILE_LIST_FILE"] == str(tmp_path / FILE_NAME)
    assert json.loads((tmp_path / FILE_NAME).read_text()) == json.loads(found["INPUT_FILE_LIST"])


def test_a_long_one_is_in_the_file_and_the_program_starts(tmp_path: Path) -> None:
    listed = {"train": tuple(f"hdfs://namenode/data/part-{number:05d}" for number in range(3000))}
    found = variables(listed, str(tmp_path))
    assert list(found) == ["INPUT_FILE_LIST_FILE"]
    assert json.loads((tmp_path / FILE_NAME).read_text()) == {"train": list(listed["train"])}


def test_the_longest_that_is_put_in_a_variable_can_be_carried(tmp_path: Path) -> None:
    listed = {"x": ("y" * (MAX_LIST_BYTES - len('{"x": [""]}')),)}
    found = variables(listed, str(tmp_path))
    assert len(found["INPUT_FILE_LIST"]) == MAX_LIST_BYTES
    assert subprocess.run(["true"], env=found, check=False).returncode == 0


def test_nothing_is_written_where_nothing_is_listed(tmp_path: Path) -> None:
    assert variables({}, str(tmp_path)) == {}
    assert list(tmp_path.iterdir()) == []


def test_what_others_share_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "shared").write_text("theirs")
    (tmp_path / FILE_NAME).symlink_to(tmp_path / "shared")
    variables({"x": ("y",)}, str(tmp_path))
    assert (tmp_path / "shared").read_text() == "theirs"


def test_what_is_in_s3_is_told_by_its_urls_too(tmp_path: Path) -> None:
    listed = {"data": ("s3://bucket/dir/a b.txt", "s3a://bucket/c"), "other": ("hdfs://n/d",)}
    found = variables(listed, str(tmp_path), "http://cluster:9000/")
    urls = {"data": ["http://cluster:9000/bucket/dir/a%20b.txt", "http://cluster:9000/bucket/c"]}
    assert json.loads(found["S3_INPUT_FILE_LIST"]) == urls
    assert json.loads((tmp_path / S3_FILE_NAME).read_text()) == urls
    assert json.loads(found["INPUT_FILE_LIST"]) == {name: list(uris) for name, uris in listed.items()}
    long = {"data": tuple(f"s3://bucket/part-{number:05d}" for number in range(5000))}
    found = variables(long, str(tmp_path))
    assert "S3_INPUT_FILE_LIST" not in found
    assert found["S3_INPUT_FILE_LIST_FILE"] == str(tmp_path / S3_FILE_NAME)
    assert json.loads((tmp_path / S3_FILE_NAME).read_text())["data"][0] == "https://s3.amazonaws.com/bucket/part-00000"


def test_what_is_not_in_s3_is_not(tmp_path: Path) -> None:
    assert "S3_INPUT_FILE_LIST_FILE" not in variables({"data": ("hdfs://n/d",)}, str(tmp_path))
    assert not (tmp_path / S3_FILE_NAME).exists()
