"""Tests what `howdah doctor` says of the tool that runs images on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.cli.doctor_local import checks
from howdah.client.engine_registry import settings_for


def found(tool: str) -> list[tuple[str, str]]:
    return [(each.state, each.text) for each in checks(settings_for({"container_tool": tool})) if each.name == "images"]


def test_the_tool_for_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOWDAH_LANGUAGE", "en")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert found("podman") == [("warn", "container_tool is podman, which is not installed here")]
    assert found("") == []
    (tmp_path / "docker").touch(0o755)
    assert found("") == found("docker") == [("ok", str(tmp_path / "docker"))]
    assert found("podman")[0][0] == "warn"
