"""Builds Kubernetes for the tests, unless howdah's cache has it. A second call waits until the first one has ended.

Where Kubernetes cannot be built, one line says why, and its tests are skipped or say it again.
"""

from __future__ import annotations

import os
import sys

from howdah.errors import HowdahError
from howdah.sandbox.kubernetes.build import binaries
from howdah.storage.content_cache import local_directory


def main() -> None:
    if os.geteuid() != 0:
        _say("the tests that need Kubernetes are skipped: its sandbox needs root")
        return
    try:
        binaries(local_directory(), _say)
    except HowdahError as error:
        _say(f"Kubernetes is not there for the tests: {error}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
