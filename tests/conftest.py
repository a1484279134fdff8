"""How all tests run."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# How long an example takes tells how busy the machine is, not whether the code is right. The same examples are tried
# each time; HOWDAH_EXPLORE=1 looks for others.
settings.register_profile(
    "here",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="HOWDAH_EXPLORE" not in os.environ,
    database=None,
)
settings.load_profile("here")
