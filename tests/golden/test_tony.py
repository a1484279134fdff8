"""Tests which jobs TonY's documented command lines and keys become: one file each in tests/golden/tony.

A case's `files` are written where the command is typed: texts as they are, mappings as Hadoop configurations.
HOWDAH_GOLDEN=write writes what comes out into the files, to be read before it is committed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from howdah.compat import Parsed
from howdah.compat.tony.azkaban import AzkabanJob
from howdah.compat.tony.submit import Tony
from howdah.config.job_file import job_mistakes
from howdah.errors import SpecError
from howdah.spec.codec import encode

CASES = sorted(Path(__file__).with_name("tony").glob("*.json"))


def written(content: Any) -> str:
    if isinstance(content, str):
        return content
    properties = (
        f"<property>\n<name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in content.items()
    )
    return f"<configuration>\n{''.join(properties)}</configuration>\n"


def parse(case: dict[str, Any], directory: Path) -> Parsed:
    for name, content in case.get("files", {}).items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(written(content))
    here = {name: value.replace("HERE", str(directory)) for name, value in case.get("environ", {}).items()}
    environ = {"TONY_CONF_DIR": "none", "HADOOP_USER_NAME": "user1", **here}
    argv = [word.replace("HERE", str(directory)) for word in case["argv"]]
    if case.get("command") == "azkaban-job":
        return AzkabanJob(environ).parse([str(directory / word) for word in argv])
    return Tony(directory, environ).parse(argv)


def outcome(case: dict[str, Any], directory: Path) -> dict[str, Any]:
    try:
        parsed = parse(case, directory)
    except SpecError as error:
        return {"mistakes": str(error).splitlines()}
    mistakes = job_mistakes(parsed.job, parsed.origins)
    if mistakes:
        return {"mistakes": [str(mistake) for mistake in mistakes]}
    return {"job": encode(parsed.job), "notes": list(parsed.notes)}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_means_what_it_meant(path: Path, tmp_path: Path) -> None:
    case = json.loads(path.read_text())
    given = {name: case[name] for name in ("command", "argv", "files", "environ") if name in case}
    found = {**given, **json.loads(json.dumps(outcome(case, tmp_path)).replace(str(tmp_path), "HERE"))}
    if os.environ.get("HOWDAH_GOLDEN") == "write":
        path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    assert found == case


def test_there_are_cases() -> None:
    assert len(CASES) >= 30
