"""Tests which jobs XLearning's and HBox's documented commands become: files in tests/golden/xlearning and hbox.

HOWDAH_GOLDEN=write writes what comes out into the files, to be read before it is committed.
"""

from __future__ import annotations

import json
import math
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from howdah.compat import CompatCommand
from howdah.compat.xlearning.submit import HboxSubmit, XlSubmit
from howdah.config.job_file import job_mistakes
from howdah.errors import SpecError
from howdah.spec.codec import encode

COMMANDS: dict[str, CompatCommand] = {"xlearning": XlSubmit({}), "hbox": HboxSubmit({})}
CASES = sorted(path for command in COMMANDS for path in Path(__file__).with_name(command).glob("*.json"))


def outcome(command: CompatCommand, argv: list[str]) -> dict[str, Any]:
    try:
        parsed = command.parse(argv)
    except SpecError as error:
        return {"mistakes": str(error).splitlines()}
    mistakes = job_mistakes(parsed.job, parsed.origins)
    if mistakes:
        return {"mistakes": [str(mistake) for mistake in mistakes]}
    beside = {
        "variables": dict(parsed.variables),
        "conf_files": list(parsed.conf_files),
        "same_hosts": parsed.same_hosts,
    }
    told = {name: value for name, value in beside.items() if value}
    return {"job": encode(parsed.job), "notes": list(parsed.notes), **told}


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_means_what_it_meant(path: Path) -> None:
    case = json.loads(path.read_text())
    found = {"argv": case["argv"], **outcome(COMMANDS[path.parent.name], case["argv"])}
    if os.environ.get("HOWDAH_GOLDEN") == "write":
        path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
        case = found
    assert found == case


@pytest.mark.parametrize("count", [1, 3, 100, 101, 200, 997, 99_991])
@pytest.mark.parametrize("rate", ["0.5", "0.001", "0.3333", "0.999"])
def test_as_many_may_fail_as_the_rate_says(count: int, rate: str) -> None:
    argv = f"--worker-num {count} --conf hbox.container.maxFailures.rate={rate} --queue default true".split()
    success = COMMANDS["hbox"].parse(argv).job.success
    needed = count if success == "all" else math.ceil(count * Fraction(success.rstrip("%")) / 100)
    assert needed == count + 1 - math.ceil(count * float(rate))


def test_there_are_cases() -> None:
    assert len(CASES) >= 60
