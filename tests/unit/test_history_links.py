"""Tests which links `howdah history` prints, and where."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from howdah.cli.history import _tell_link, history
from howdah.history.options import key_of
from howdah.wire import auth

LINK = "http://127.0.0.1:1/#token=ab"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stderr", "as_json", "told"), [(Terminal(), False, True), (Terminal(), True, False), (io.StringIO(), False, False)]
)
def test_the_link_that_permits_changes_is_told_on_a_terminal_alone(
    stderr: io.StringIO, as_json: bool, told: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr)
    _tell_link(LINK, b"key", as_json)
    assert ("&act=" in stderr.getvalue()) is told
    out = capsys.readouterr().out
    assert LINK in out
    assert "act=" not in out


def test_a_new_link_that_permits_changes_is_printed_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    done = CliRunner().invoke(history, ["--act", "--port", "5"], catch_exceptions=False)
    key = key_of(tmp_path / "state" / "history")
    link, _, act = done.stdout.strip().partition("&act=")
    assert link == f"http://127.0.0.1:5{auth.page_link(key)}"
    assert auth.may_act(key, act, time.time())
