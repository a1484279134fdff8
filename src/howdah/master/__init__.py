"""The master: one loop that carries out the decisions of `step` and records the events of the job."""

import sys

# Before anything else is read, and in words that any Python understands.
if sys.version_info < (3, 10):  # noqa: UP036
    _found = sys.executable + " is " + sys.version.split()[0]
    sys.exit("howdah's master needs CPython 3.10 or newer, " + _found + " (settings: python, python_archive)")
