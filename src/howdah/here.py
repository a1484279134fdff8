"""`howdah.program`, under the name by which programs have imported it since the first version."""

import sys

from howdah import program
from howdah.program import *  # noqa: F403

sys.modules[__name__] = program
