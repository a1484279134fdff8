"""The formats of Hadoop's InputFormats and OutputFormats, which XLearning's users name.

Names are those of both APIs, `mapred` and `mapreduce`; a name without its package is understood, too. The key is left
out even if Hadoop's class gives it as text, because XLearning itself has only ever passed on the value.
"""

from __future__ import annotations

_FORMATS = {
    "text": (
        *("TextInputFormat", "CombineTextInputFormat", "CombineFileInputFormat", "KeyValueTextInputFormat"),
        *("NLineInputFormat", "TextOutputFormat", "TextMultiOutputFormat", "MultipleTextOutputFormat"),
    ),
    "sequencefile": (
        *("SequenceFileInputFormat", "CombineSequenceFileInputFormat", "SequenceFileAsTextInputFormat"),
        *("SequenceFileAsBinaryInputFormat", "SequenceFileOutputFormat", "MultipleSequenceFileOutputFormat"),
        "SequenceFileAsBinaryOutputFormat",
    ),
    "whole": ("WholeFileInputFormat", "WholeTextFileInputFormat"),
    "tfrecord": ("TFRecordFileInputFormat", "TFRecordFileOutputFormat"),
    "avro": ("AvroInputFormat", "AvroKeyInputFormat", "AvroAsTextInputFormat"),
    "orc": ("OrcInputFormat",),
    "parquet": (
        *("ParquetInputFormat", "DeprecatedParquetInputFormat", "MapredParquetInputFormat", "ExampleInputFormat"),
        *("ParquetOutputFormat", "MapredParquetOutputFormat", "ExampleOutputFormat"),
    ),
}
_OPTIONS = {
    "NLineInputFormat": {"lines": "1"},
    "SequenceFileAsBinaryInputFormat": {"framing": "length"},
    "SequenceFileAsBinaryOutputFormat": {"framing": "length", "value": "bytes"},
}


def from_hadoop_class(name: str) -> tuple[str, dict[str, str]]:
    """Return the format and the options for a Java class; howdah's own names are returned unchanged.

    Raises:
        ValueError: the class is unknown; the message says what to do.
    """
    simple = name.strip().rpartition(".")[2]
    format_of = {each: format_name for format_name, classes in _FORMATS.items() for each in classes}
    if simple in format_of:
        return format_of[simple], dict(_OPTIONS.get(simple, {}))
    if "." not in name and not name.endswith("Format"):
        return name, {}
    raise ValueError(
        f"is {name!r}, a Java class that has no counterpart here; known are {', '.join(sorted(format_of))}."
        " Your own reader or writer in Python: module:function"
    )
