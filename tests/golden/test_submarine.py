"""Tests which jobs Submarine's documented command lines and YAML become: one file each in tests/golden/submarine.

A case's `files` are written where the command is typed.
HOWDAH_GOLDEN=write writes what comes out into the files, to be read before it is committed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from howdah.compat import Parsed
from howdah.compat.submarine.job_run import Submarine
from howdah.config.job_file import job_mistakes
from howdah.errors import SpecError, StagingError
from howdah.spec.codec import encode

CASES = sorted(Path(__file__).with_name("submarine").glob("*.json"))


def parse(case: dict[str, Any], directory: Path) -> Parsed:
    for name, content in case.get("files", {}).items():
        (directory / name).write_text(content)
    hadoop = str(directory) if any(name.endswith(".xml") for name in case.get("files", {})) else "/nonexistent"
    environ = {"HADOOP_USER_NAME": "user1"}
    return Submarine(directory, environ, hadoop, "hdfs://nn/user/user1").parse(case["argv"])


def outcome(case: dict[str, Any], directory: Path) -> dict[str, Any]:
    try:
        parsed = parse(case, directory)
    except (SpecError, StagingError) as error:
        return {"mistakes": str(error).splitlines()}
    mistakes = job_mistakes(parsed.job, parsed.origins)
    if mistakes:
        return {"mistakes": [str(mistake) for mistake in mistakes]}
    told = {"variables": dict(parsed.variables)} if parsed.variables else {}
    return {"job": encode(parsed.job), "notes": list(parsed.notes), **told}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_means_what_it_meant(path: Path, tmp_path: Path) -> None:
    case = json.loads(path.read_text())
    given = {name: case[name] for name in ("argv", "files") if name in case}
    found = {**given, **json.loads(json.dumps(outcome(case, tmp_path)).replace(str(tmp_path), "HERE"))}
    if os.environ.get("HOWDAH_GOLDEN") == "write":
        path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
        case = found
    assert found == case


def test_there_are_cases() -> None:
    assert len(CASES) >= 30
