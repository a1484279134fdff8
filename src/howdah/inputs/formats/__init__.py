"""Record formats of streams: how a file is cut into splits, what a program reads of them, what its output becomes.

Found by name, by `module:function` (a stranger's `function(options)` or `function(options, sink)`), or by entry point
(groups `howdah.readers` and `howdah.writers`). The rule: options are checked by `check`, without opening anything.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, cast

from howdah.errors import HowdahError, SpecError
from howdah.inputs.formats.base import PIECE_BYTES, Corrupt, Piece, RecordReader, RecordWriter, Sink, Split, cut, joined
from howdah.inputs.formats.hadoop_classes import from_hadoop_class

READERS: dict[str, str] = {
    "text": "howdah.inputs.formats.text:TextReader",
    "whole": "howdah.inputs.formats.whole_file:WholeReader",
    "csv": "howdah.inputs.formats.text:CsvReader",
    "jsonl": "howdah.inputs.formats.text:JsonLinesReader",
    "sequencefile": "howdah.inputs.formats.sequencefile:SequenceFileReader",
    "tfrecord": "howdah.inputs.formats.tfrecord:TFRecordReader",
    "parquet": "howdah.inputs.formats.columns:ParquetReader",
    "orc": "howdah.inputs.formats.columns:OrcReader",
    "avro": "howdah.inputs.formats.avro:AvroReader",
}
WRITERS: dict[str, str] = {
    "text": "howdah.inputs.formats.text:TextWriter",
    "gzip": "howdah.inputs.formats.text:GzipWriter",
    "sequencefile": "howdah.inputs.formats.sequencefile_writer:SequenceFileWriter",
    "tfrecord": "howdah.inputs.formats.tfrecord:TFRecordWriter",
    "parquet": "howdah.inputs.formats.parquet_writer:ParquetWriter",
}


def reader(name: str, options: Mapping[str, str]) -> RecordReader:
    """The reader of format `name`, for one stream.

    Raises:
        SpecError: no such format or option.
    """
    return cast(RecordReader, _factory("format", name, READERS, "howdah.readers")(options))


def writer(name: str, options: Mapping[str, str], sink: Sink) -> RecordWriter:
    """The writer of format `name`, for one part file.

    Raises:
        SpecError: no such format or option.
    """
    return cast(RecordWriter, _factory("format", name, WRITERS, "howdah.writers")(options, sink))


def suffix(name: str) -> str:
    """What the names of part files of format `name` end with, such as `.gz`."""
    return str(getattr(_factory("format", name, WRITERS, "howdah.writers"), "suffix", ""))


def check(name: str, options: Mapping[str, str], writing: bool = False) -> list[str]:
    """All that is wrong with a format and its options, a line each; empty when it can be used."""
    try:
        if writing:
            writer(name, options, _Nowhere())
        else:
            reader(name, options)
    except SpecError as error:
        return [str(mistake) for mistake in error.mistakes]
    except HowdahError as error:
        return [str(error)]
    return []


class _Nowhere:
    def write(self, data: object, /) -> None:
        """Forget it."""

    def close(self) -> None:
        """Nothing is held."""


def _factory(place: str, name: str, known: Mapping[str, str], group: str) -> Any:
    target = known.get(name) or (name if ":" in name else _installed(group).get(name, ""))
    if not target:
        raise SpecError.at(place, f"is {name!r}, known are {', '.join(known)}, or your own as module:function")
    module, _, attribute = target.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise SpecError.at(place, f"is {name!r}, but {error}") from error
    except AttributeError:
        raise SpecError.at(place, f"is {name!r}, but module {module} has no {attribute}") from None


def _installed(group: str) -> dict[str, str]:
    from importlib.metadata import entry_points

    found: Any = entry_points()
    chosen = found.select(group=group) if hasattr(found, "select") else found.get(group, ())
    return {entry.name: entry.value for entry in chosen}


__all__ = [
    "PIECE_BYTES",
    "READERS",
    "WRITERS",
    "Corrupt",
    "Piece",
    "RecordReader",
    "RecordWriter",
    "Sink",
    "Split",
    "check",
    "cut",
    "from_hadoop_class",
    "joined",
    "reader",
    "suffix",
    "writer",
]
