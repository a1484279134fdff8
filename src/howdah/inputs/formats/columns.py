"""Reads rows of Parquet and ORC as lines of JSON with pyarrow, which must be in the environment of the job.

A split has the row groups whose middle lies in it (as in parquet-hadoop). pyarrow does not give the positions of the
stripes in an ORC file, so the stripes are taken as equally long.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from howdah.inputs.formats.base import Corrupt, Piece, RecordReader, Split, cut_splits
from howdah.inputs.formats.format_options import FormatOptions
from howdah.storage import native_codecs
from howdah.storage.filesystem import FileSystem

ROWS = 4096
"""The number of rows that are turned into text at a time."""


class _ColumnReader(RecordReader):
    """Reads rows. Options: `columns`, the columns to read, in the order of the file."""

    name = ""

    def __init__(self, options: Mapping[str, str]) -> None:
        parsed = FormatOptions(options)
        self.columns = parsed.names("columns")
        parsed.finish(self.name)

    def splits(self, fs: FileSystem, uri: str, size: int, block_size: int, wanted_bytes: int) -> list[Split]:
        return cut_splits(uri, size, block_size, wanted_bytes)

    def blocks(self, fs: FileSystem, split: Split) -> Iterator[Piece]:
        pyarrow = native_codecs.package("pyarrow", f"format {self.name}")
        from howdah.inputs.formats import json_rows

        with fs.open_read(split.uri) as file, _errors_as_corrupt(split.uri, pyarrow):
            size = file.seek(0, 2)
            file.seek(0)
            for batch in self._batches(file, split, size):
                for at in range(0, batch.num_rows, ROWS):
                    yield json_rows.lines(batch.slice(at, ROWS))

    def records(self, fs: FileSystem, split: Split) -> Iterator[bytes]:
        for block in self.blocks(fs, split):
            yield from [line + b"\n" for line in bytes(block).split(b"\n")[:-1]]

    def _columns_to_read(self, uri: str, names: list[str]) -> list[str] | None:
        """Return the names of the columns to read; None for all."""
        absent = [name for name in self.columns if name not in names]
        if absent:
            raise Corrupt(f"{uri}: has no column {', '.join(absent)}, there are {', '.join(names)} (options.columns)")
        return [name for name in names if name in self.columns] if self.columns else None

    @abstractmethod
    def _batches(self, file: BinaryIO, split: Split, size: int) -> Iterator[Any]:
        """Yield record batches of the split; the file has `size` bytes."""


class ParquetReader(_ColumnReader):
    """Reads row groups."""

    name = "parquet"

    def _batches(self, file: BinaryIO, split: Split, size: int) -> Iterator[Any]:
        from pyarrow import parquet

        source = parquet.ParquetFile(file)
        columns = self._columns_to_read(split.uri, source.schema_arrow.names)
        middles = [_middle_offset(source.metadata.row_group(number)) for number in range(source.num_row_groups)]
        groups = [number for number, middle in enumerate(middles) if _is_in(split, middle, size)]
        if groups:
            yield from source.iter_batches(ROWS, groups, columns)


class OrcReader(_ColumnReader):
    """Reads stripes."""

    name = "orc"

    def _batches(self, file: BinaryIO, split: Split, size: int) -> Iterator[Any]:
        from pyarrow import orc

        source = orc.ORCFile(file)
        columns = self._columns_to_read(split.uri, source.schema.names)
        for number in range(source.nstripes):
            if _is_in(split, (2 * number + 1) * size // (2 * source.nstripes), size):
                yield source.read_stripe(number, columns)


def _middle_offset(group: Any) -> int:
    columns = [group.column(number) for number in range(group.num_columns)]
    if not columns:
        return 0
    start = min(column.dictionary_page_offset or column.data_page_offset for column in columns)
    return int(start + sum(column.total_compressed_size for column in columns) // 2)


def _is_in(split: Split, position: int, size: int) -> bool:
    """Return whether a position is in the split. A position after the end of a damaged file counts as its end, so that
    each row is still read once."""
    return split.start <= min(position, size - 1) < split.start + split.length


@contextlib.contextmanager
def _errors_as_corrupt(uri: str, pyarrow: Any) -> Iterator[None]:
    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:  # the last two: damaged values
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise Corrupt(f"{uri}: {reason}") from error
