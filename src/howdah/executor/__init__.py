"""The executor runs in a task's container and obeys the master's orders; it needs the standard library only."""

import sys

# This comes before all other imports, in syntax that any Python understands.
if sys.version_info < (3, 9):  # noqa: UP036
    _found = sys.executable + " is " + sys.version.split()[0]
    sys.exit("howdah's executor needs CPython 3.9 or newer, " + _found + " (settings: python, python_archive)")
