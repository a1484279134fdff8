"""Tests file names in URIs: literal on HDFS, percent-encoded in `file:` URIs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.spec import uris

PARTS = st.lists(st.text("ab%?#& é*", min_size=1, max_size=5), min_size=1, max_size=4)


@given(st.sampled_from(["hdfs://ns", "hdfs://h:8020", "file://", "s3://bucket"]), PARTS)
def test_what_is_joined_is_taken_apart(root: str, parts: list[str]) -> None:
    uri = uris.join(root + "/base", *parts)
    assert uris.path(uri) == "/".join(["/base", *parts])
    assert uris.name(uri) == parts[-1]
    assert uris.below(uri, root + "/base") == "/".join(parts)
    assert uris.join(uris.parent(uri), parts[-1]) == uri
    assert uris.root(uri) == root


@given(PARTS)
def test_file_uris_equal_those_of_pathlib(parts: list[str]) -> None:
    path = Path("/base", *parts)
    assert uris.path(path.as_uri()) == str(path)
    assert uris.path(uris.of_local(path)) == str(path)


@pytest.mark.parametrize(
    ("text", "default", "directory", "expected"),
    [
        ("hdfs://a/x//y/", "hdfs://b", "hdfs://b/user/me", "hdfs://a/x/y"),
        ("/data/in", "hdfs://b", "hdfs://b/user/me", "hdfs://b/data/in"),
        ("out", "hdfs://b", "hdfs://b/user/me", "hdfs://b/user/me/out"),
        ("../you/out", "hdfs://b", "hdfs://b/user/me", "hdfs://b/user/you/out"),
        ("out 1", "file://", "file:///base", "file:///base/out%201"),
        ("/abs", "file://", "file:///base", "file:///abs"),
        ("file:/abs", "hdfs://b", "hdfs://b/user/me", "file:///abs"),
        ("hdfs:///x//y?%", "hdfs://b:9000", "hdfs://b:9000/user/me", "hdfs://b:9000/x/y?%"),
        ("viewfs:///x", "viewfs://prod", "viewfs://prod/user/me", "viewfs://prod/x"),
        ("hdfs:///x", "viewfs://prod", "viewfs://prod/user/me", "hdfs:///x"),
        ("hdfs:///x", "file://", "file:///base", "hdfs:///x"),
        ("file:///a%20b", "file://", "file:///base", "file:///a%20b"),
    ],
)
def test_a_path_becomes_an_absolute_uri(text: str, default: str, directory: str, expected: str) -> None:
    assert uris.absolute(text, default, directory) == expected


def test_a_byte_that_is_no_text() -> None:
    name = os.fsdecode(b"caf\xe9 %E9")
    assert uris.of_local(f"/d/{name}") == "file:///d/caf%E9%20%25E9"
    assert os.fsencode(uris.path(uris.of_local(f"/d/{name}"))) == b"/d/caf\xe9 %E9"
    assert uris.join("file:///d", name) == uris.of_local(f"/d/{name}")
    assert uris.join("hdfs://ns/d", name) == "hdfs://ns/d/caf%E9 %E9"


def test_a_colon_in_a_name_on_hdfs() -> None:
    uri = uris.join("hdfs://ns:8020/d", "at 12:30/a:b%3A")
    assert uri == uris.normalize("hdfs://ns:8020/d/at 12:30/a:b%3A") == "hdfs://ns:8020/d/at 12%3A30/a%3Ab%3A"
    assert uris.local_name("at 12%3A30", uri) == "at 12:30"
    assert uris.join("viewfs://c/d", "a:b") == "viewfs://c/d/a:b"  # what it leads to may take a colon
    assert uris.local_name("a%3Ab", "viewfs://c/d") == "a:b"
    for other in ("file:///d", "s3://bucket/d"):
        assert uris.name(uris.join(other, "a:b")) == uris.local_name("a:b", other) == "a:b"
        assert uris.local_name("a%3Ab", other) == "a%3Ab"


@pytest.mark.parametrize("name", ["at_12:30", "at_12%3A30", "a:b%3Ac%253Ad%25253A", "50%", "x%25"])
def test_a_stored_name_comes_back(name: str) -> None:
    for uri in ("hdfs://ns/d", "viewfs://c/d", "file:///d", "s3://bucket/d"):
        stored = uris.name(uris.join(uri, uris.stored_name(name, uri)))
        assert uris.local_name(stored, uri) == name
        assert ":" not in stored or not uri.startswith(("hdfs", "viewfs"))


def test_two_names_that_would_be_one(tmp_path: Path) -> None:
    for name in ("a:b", "a%3Ab", "a%253Ab", "c:d", "e%3Af", "g:h%3Ai", "g%3Ah:i"):
        (tmp_path / name).touch()
    names = sorted(each.name for each in tmp_path.iterdir())
    stored = uris.StoredNames("hdfs://ns/d", str(tmp_path))
    for _ in range(2):
        assert {name: uris.name(stored.uri_of(name)) for name in names} == {
            "a%253Ab": "a%253Ab",
            "a%3Ab": "a%3Ab",
            "a:b": "a%25253Ab",
            "c:d": "c%3Ad",
            "e%3Af": "e%3Af",
            "g%3Ah:i": "g%3Ah%3Ai",
            "g:h%3Ai": "g%253Ah%253Ai",
        }
    assert uris.name(uris.StoredNames("file:///d", str(tmp_path)).uri_of("a:b")) == "a:b"


def test_a_directory_and_a_file_that_would_be_one(tmp_path: Path) -> None:
    (tmp_path / "a%3Ab").touch()
    (tmp_path / "a:b").mkdir()
    stored = uris.StoredNames("hdfs://ns/d", str(tmp_path))
    assert [stored.stored(name) for name in ("a:b/x:y", "a%3Ab", "a:b", "c/d:e")] == [
        "a%253Ab/x%3Ay",
        "a%3Ab",
        "a%253Ab",
        "c/d%3Ae",
    ]


def test_a_name_that_is_taken_later(tmp_path: Path) -> None:
    stored = uris.StoredNames("hdfs://ns/d", str(tmp_path))
    assert stored.stored("a:b") == "a%3Ab"
    (tmp_path / "a%3Ab").touch()
    assert (stored.stored("a:b"), stored.stored("a%3Ab")) == ("a%3Ab", "a%253Ab")


def test_the_root_is_its_own_parent() -> None:
    assert uris.parent("hdfs://ns/") == uris.parent("hdfs://ns/x") == "hdfs://ns/"
    assert uris.split("hdfs://ns") == ("hdfs", "ns", "/")
