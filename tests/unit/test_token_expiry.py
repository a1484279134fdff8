"""Tests warnings for jobs that may outlive their access to HDFS."""

from __future__ import annotations

import pytest

from howdah.client.token_expiry import may_outlive_tokens
from howdah.spec.job import Timeouts


@pytest.mark.parametrize(
    ("limits", "end", "late"),
    [
        (Timeouts(), 0.0, False), (Timeouts(), 1000.0, True),
        (Timeouts(run_s=900.0), 1000.0, False), (Timeouts(run_s=901.0), 1000.0, True),
        (Timeouts(total_s=900.0), 1000.0, False), (Timeouts(run_s=2000.0, total_s=900.0), 1000.0, False),
    ],
)  # fmt: skip
def test_whether_a_job_may_outlive_its_credentials(limits: Timeouts, end: float, late: bool) -> None:
    assert may_outlive_tokens(limits, end, 100.0) is late
