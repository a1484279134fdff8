"""Tests serving the page's own files, compressed or not, and that no other file is served."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from howdah.api import static_files
from howdah.api.http_server import Request, Response

SCRIPT = b"console.log(1);" * 100


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    inside = tmp_path / "page"
    (inside / "assets").mkdir(parents=True)
    (inside / "index.html").write_bytes(b"<!doctype html>")
    (inside / "assets" / "a-1b2.js.gz").write_bytes(gzip.compress(SCRIPT))
    (tmp_path / "secret").write_text("secret")
    monkeypatch.setenv(static_files.DIRECTORY_VARIABLE, str(inside))
    return inside


def get(path: str, encoding: str = "gzip, br") -> Response:
    return static_files.answer(Request("GET", path, {"accept-encoding": encoding}, b"", "127.0.0.1"))


def test_a_script_is_sent_as_it_lies_and_kept_for_ever(directory: Path) -> None:
    answer = get("/assets/a-1b2.js?x=1")
    assert answer.file == directory / "assets" / "a-1b2.js.gz"
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers["Cache-Control"].endswith("immutable")
    assert answer.content_type.startswith("text/javascript")
    plain = get("/assets/a-1b2.js", "identity")
    assert (plain.body, plain.headers.get("Content-Encoding")) == (SCRIPT, None)


def test_the_page_is_asked_for_each_time(directory: Path) -> None:
    answer = get("/")
    assert answer.file == directory / "index.html"
    assert answer.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    [
        "/../secret",
        "/assets/../../secret",
        "/%2e%2e/secret",
        "/assets/%2e%2e/x",
        "/.x",
        "//etc/passwd",
        "/a/b",
        "/assets/",
    ],
)
def test_nothing_else_is_sent(directory: Path, path: str) -> None:
    assert get(path).status == 404


def test_a_tree_without_a_page_says_how_to_build_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(static_files.DIRECTORY_VARIABLE, str(tmp_path))
    answer = get("/")
    assert answer.status == 200
    assert b"not built" in answer.body
