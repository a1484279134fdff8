"""DataFrames as TFRecord files with tf.train.Example records, and back; no JAR is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from howdah.spark import tfrecords
from howdah.spark.example_records import infer_columns, to_record, to_row

loadedDF: dict[Any, str] = {}
"""The directory from which each DataFrame was loaded."""


def isLoadedDF(df: Any) -> bool:
    """Return whether `loadTFRecords` has made this DataFrame."""
    return df in loadedDF


def saveAsTFRecords(df: DataFrame, output_dir: str) -> None:
    """Write a DataFrame into a new directory, one file for each partition. Nulls are left out.

    Raises:
        Exception: the directory exists, or a column's type is one that records cannot hold.
    """
    directory, columns = _uri(df.rdd.context, output_dir), tfrecords.columns_of(df.schema)
    tfrecords.prepare_directory(directory)
    df.rdd.mapPartitionsWithIndex(tfrecords.partition_writer(directory, columns)).count()
    tfrecords.mark_complete(directory)


def loadTFRecords(sc: Any, input_dir: str, binary_features: Sequence[str] = ()) -> DataFrame:
    """Return a directory's records as a DataFrame. The first records say which columns there are; a record without a
    feature has a null there. `binary_features` are bytes, though they look like text."""
    files = tfrecords.record_files(_uri(sc, input_dir))
    columns = tfrecords.sample_columns(files, binary_features)
    rows = sc.parallelize(files, len(files)).flatMap(lambda uri: tfrecords.read_rows(uri, columns))
    df = SparkSession.builder.getOrCreate().createDataFrame(rows, tfrecords.schema_of(columns))
    loadedDF[df] = input_dir
    return df


def toTFExample(dtypes: Sequence[tuple[str, str]]) -> Callable[[Iterable[Any]], Iterator[tuple[bytearray, None]]]:
    """Return the function for `mapPartitions` that makes records of rows with these columns (`DataFrame.dtypes`)."""
    from pyspark.sql.types import StructType

    columns = tfrecords.columns_of(StructType.fromDDL(", ".join(f"`{name}` {kind}" for name, kind in dtypes)))

    def convert(rows: Iterable[Any]) -> Iterator[tuple[bytearray, None]]:
        for row in rows:
            yield bytearray(to_record(row, columns)), None

    return convert


def infer_schema(example: Any, binary_features: Sequence[str] = ()) -> Any:
    """Return the columns of a record, a tf.train.Example."""
    return tfrecords.schema_of(infer_columns([example.SerializeToString()], binary_features))


def fromTFExample(iter: Iterable[Any], binary_features: Sequence[str] = ()) -> list[Row]:
    """Return records (pairs of their bytes, and anything) as Rows with the columns in the order of their names."""
    records = [bytes(pair[0]) for pair in iter]
    columns = infer_columns(records, binary_features)
    return [Row(**to_row(record, columns)) for record in records]


def _uri(sc: Any, path: str) -> str:
    from tensorflowonspark import TFCluster  # executors, which need not have what starts clusters, import this module

    return tfrecords.uri_of(path, TFCluster._default_fs(sc))
