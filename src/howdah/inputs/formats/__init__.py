"""Record formats of streams: cutting a file into splits, reading it as records, and writing a program's output.

A format is found by name, by `module:function` (a user's `function(options)` or `function(options, sink)`), or by entry
point (groups `howdah.readers` and `howdah.writers`). The rule: `check` validates options without opening anything.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, cast

from howdah.errors import HowdahError, SpecError
from howdah.inputs.formats.base import (
    PIECE_BYTES,
    Corrupt,
    Piece,
    RecordReader,
    RecordWriter,
    Sink,
    Split,
    cut_splits,
    join_blocks,
)
from howdah.inputs.formats.hadoop_classes import from_hadoop_class
from howdah.spec import plugins

READERS, WRITERS = plugins.BUILT_IN["howdah.readers"], plugins.BUILT_IN["howdah.writers"]


def reader(name: str, options: Mapping[str, str]) -> RecordReader:
    """Return a reader of format `name`, for one stream.

    Raises:
        SpecError: no such format or option.
    """
    return cast(RecordReader, _factory("howdah.readers", name)(options))


def writer(name: str, options: Mapping[str, str], sink: Sink) -> RecordWriter:
    """Return a writer of format `name`, for one part file.

    Raises:
        SpecError: no such format or option.
    """
    return cast(RecordWriter, _factory("howdah.writers", name)(options, sink))


def suffix(name: str) -> str:
    """Return the extension of the part files of format `name`, such as `.gz`."""
    return str(getattr(_factory("howdah.writers", name), "suffix", ""))


def check(name: str, options: Mapping[str, str], writing: bool = False) -> list[str]:
    """Return a line for each mistake in a format and its options."""
    try:
        if writing:
            writer(name, options, io.BytesIO())
        else:
            reader(name, options)
    except SpecError as error:
        return [str(mistake) for mistake in error.mistakes]
    except HowdahError as error:
        return [str(error)]
    return []


def _factory(group: str, name: str) -> Any:
    target = name if ":" in name else plugins.find(group, name)
    if not target:
        known = ", ".join(plugins.BUILT_IN[group])
        raise SpecError.at("format", f"is {name!r}, known are {known}, or your own as module:function")
    try:
        return plugins.load(target)
    except ImportError as error:
        raise SpecError.at("format", f"is {name!r}, but {error}") from error
    except AttributeError:
        module, _, attribute = target.partition(":")
        raise SpecError.at("format", f"is {name!r}, but module {module} has no {attribute}") from None


__all__ = [
    "PIECE_BYTES", "READERS", "WRITERS", "Corrupt", "Piece", "RecordReader", "RecordWriter", "Sink", "Split", "check",
    "cut_splits", "from_hadoop_class", "join_blocks", "reader", "suffix", "writer",
]  # fmt: skip
