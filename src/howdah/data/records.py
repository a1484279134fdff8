"""`howdah.inputs.formats`, under the name by which programs have imported it since the first version."""

from howdah.inputs.formats import *  # noqa: F403
from howdah.inputs.formats import RecordReader as Reader
from howdah.inputs.formats import RecordWriter as Writer

__all__ = ["Reader", "Writer"]
