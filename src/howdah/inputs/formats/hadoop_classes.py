"""Hadoop's InputFormats and OutputFormats by our names: what XLearning's users write is what they get.

Names are those of both APIs, `mapred` and `mapreduce`; without a package they are understood, too.
"""

from __future__ import annotations

# An input's key goes along where Hadoop's class gives it as text; XLearning itself has only ever passed the value on.
INPUTS: dict[str, tuple[str, dict[str, str]]] = {
    "TextInputFormat": ("text", {}),
    "CombineTextInputFormat": ("text", {}),
    "CombineFileInputFormat": ("text", {}),
    "KeyValueTextInputFormat": ("text", {}),
    "NLineInputFormat": ("text", {"lines": "1"}),
    "SequenceFileInputFormat": ("sequencefile", {}),
    "CombineSequenceFileInputFormat": ("sequencefile", {}),
    "SequenceFileAsTextInputFormat": ("sequencefile", {}),
    "SequenceFileAsBinaryInputFormat": ("sequencefile", {"framing": "length"}),
    "WholeFileInputFormat": ("whole", {}),
    "WholeTextFileInputFormat": ("whole", {}),
    "TFRecordFileInputFormat": ("tfrecord", {}),
    "AvroInputFormat": ("avro", {}),
    "AvroKeyInputFormat": ("avro", {}),
    "AvroAsTextInputFormat": ("avro", {}),
    "OrcInputFormat": ("orc", {}),
    "ParquetInputFormat": ("parquet", {}),
    "DeprecatedParquetInputFormat": ("parquet", {}),
    "MapredParquetInputFormat": ("parquet", {}),
    "ExampleInputFormat": ("parquet", {}),
}
OUTPUTS: dict[str, tuple[str, dict[str, str]]] = {
    "TextOutputFormat": ("text", {}),
    "TextMultiOutputFormat": ("text", {}),
    "MultipleTextOutputFormat": ("text", {}),
    "SequenceFileOutputFormat": ("sequencefile", {}),
    "MultipleSequenceFileOutputFormat": ("sequencefile", {}),
    "SequenceFileAsBinaryOutputFormat": ("sequencefile", {"framing": "length", "value": "bytes"}),
    "TFRecordFileOutputFormat": ("tfrecord", {}),
    "ParquetOutputFormat": ("parquet", {}),
    "MapredParquetOutputFormat": ("parquet", {}),
    "ExampleOutputFormat": ("parquet", {}),
}


def from_hadoop_class(name: str) -> tuple[str, dict[str, str]]:
    """The format and its options that stand for a Java class; one of our own names stands for itself.

    Raises:
        ValueError: it is none that is known here; says what to do.
    """
    simple = name.strip().rpartition(".")[2]
    known = {**INPUTS, **OUTPUTS}
    if simple in known:
        format_name, options = known[simple]
        return format_name, dict(options)
    if "." not in name and not name.endswith("Format"):
        return name, {}
    raise ValueError(
        f"is {name!r}, a Java class that has no counterpart here; known are {', '.join(sorted(known))}."
        " Your own reader or writer in Python: module:function"
    )
