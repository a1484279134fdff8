"""TFRecord files as a data source of Spark 4: `spark.read.format("tfrecord").load(directory)`.

from howdah.spark.tfrecord_source import TFRecordSource

spark.dataSource.register(TFRecordSource)
frame = spark.read.format("tfrecord").option("binary", "image").load("hdfs:///data/mnist")
frame.write.format("tfrecord").save("hdfs:///data/copy")
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, InputPartition, WriterCommitMessage
from pyspark.sql.types import StructType

from howdah.spark import tfrecords
from howdah.spark.example_records import Column
from howdah.spec import uris
from howdah.storage.factory import filesystem


class WrittenFile(WriterCommitMessage):
    """The file that a task has written, under a hidden name."""

    def __init__(self, uri: str) -> None:
        self.uri = uri


class TFRecordSource(DataSource):
    """Directories of tf.train.Example records. The option `binary` names features, with commas between them, that are
    bytes though they look like text."""

    @classmethod
    def name(cls) -> str:
        return "tfrecord"

    def _directory(self) -> str:
        return tfrecords.uri_of(str(self.options["path"]))

    def schema(self) -> StructType:
        binary = [name.strip() for name in self.options.get("binary", "").split(",") if name.strip()]
        return tfrecords.schema_of(tfrecords.sample_columns(tfrecords.record_files(self._directory()), binary))

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self._directory(), tfrecords.columns_of(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return _Writer(self._directory(), tfrecords.columns_of(schema), overwrite)


class _Reader(DataSourceReader):
    def __init__(self, directory: str, columns: dict[str, Column]) -> None:
        self._directory, self._columns = directory, columns

    def partitions(self) -> list[Any]:
        return [InputPartition(uri) for uri in tfrecords.record_files(self._directory)]

    def read(self, partition: Any) -> Iterator[tuple[Any, ...]]:
        return tfrecords.read_rows(partition.value, self._columns)


class _Writer(DataSourceWriter):
    """Each task writes a file under a hidden name; the files get theirs when all have succeeded."""

    def __init__(self, directory: str, columns: dict[str, Column], overwrite: bool) -> None:
        self._directory, self._columns, self._overwrite = directory, columns, overwrite

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        filesystem(self._directory).mkdirs(self._directory)
        uri = uris.join(self._directory, f".{secrets.token_hex(8)}")
        tfrecords.write_rows(uri, iterator, self._columns)
        return WrittenFile(uri)

    def commit(self, messages: list[Any]) -> None:
        files = filesystem(self._directory)
        written = [message.uri for message in messages if message is not None]
        if self._overwrite:
            # By their names, which are random: the file system may write the directory's URI in another way.
            names = {uris.name(uri) for uri in written}
            files.delete_files([e.uri for e in files.walk(self._directory) if uris.name(e.uri) not in names])
        mark = secrets.token_hex(4)
        for number, uri in enumerate(written):
            files.rename(uri, uris.join(self._directory, f"part-{number:05d}-{mark}.tfrecord"))
        tfrecords.mark_complete(self._directory)

    def abort(self, messages: list[Any]) -> None:
        files = filesystem(self._directory)
        files.delete_files([message.uri for message in messages if message is not None])
