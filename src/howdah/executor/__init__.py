"""The executor: what runs in a task's container, towards its orders; standard library only."""

import sys

# Before anything else is read, and in words that any Python understands.
if sys.version_info < (3, 9):  # noqa: UP036
    _found = sys.executable + " is " + sys.version.split()[0]
    sys.exit("howdah's executor needs CPython 3.9 or newer, " + _found + " (settings: python, python_archive)")
