"""XLearning's documented command lines in, jobs out: one file each in tests/golden/xlearning.

HOWDAH_GOLDEN=write writes what comes out into the files, to be read before it is committed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from howdah.client.jobfile import wrong
from howdah.dialects.xlearning import XlSubmit
from howdah.errors import SpecError
from howdah.spec.codec import encode

CASES = sorted(Path(__file__).with_name("xlearning").glob("*.json"))


def outcome(argv: list[str]) -> dict[str, Any]:
    try:
        parsed = XlSubmit().parse(argv)
    except SpecError as error:
        return {"mistakes": str(error).splitlines()}
    mistakes = wrong(parsed.job, parsed.origins)
    if mistakes:
        return {"mistakes": [str(mistake) for mistake in mistakes]}
    return {"job": encode(parsed.job), "notes": list(parsed.notes)}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_means_what_it_meant(path: Path) -> None:
    case = json.loads(path.read_text())
    found = {"argv": case["argv"], **outcome(case["argv"])}
    if os.environ.get("HOWDAH_GOLDEN") == "write":
        path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    assert found == case


def test_there_are_cases() -> None:
    assert len(CASES) >= 10
