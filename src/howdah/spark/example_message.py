"""The message tf.train.Example, as tensorflow/core/example/example.proto and feature.proto describe it.

It is described here, not compiled: compiled code asks for a range of versions of protobuf, and executors have the one
that their TensorFlow wants (3.19 for 2.10, 4 for 2.15, 6 or newer for 2.21).
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "howdah.spark"
_LISTS = {"BytesList": _Field.TYPE_BYTES, "FloatList": _Field.TYPE_FLOAT, "Int64List": _Field.TYPE_INT64}


def _add_field(message: Any, name: str, number: int, kind: str, **options: Any) -> None:
    message.field.add(
        **{"name": name, "number": number, "type": _Field.TYPE_MESSAGE, "type_name": f".{_PACKAGE}.{kind}"}, **options
    )


def _message_class() -> Any:
    """Return the class of the message."""
    one, many = {"label": _Field.LABEL_OPTIONAL}, {"label": _Field.LABEL_REPEATED}
    file = descriptor_pb2.FileDescriptorProto(name="howdah/spark/example.proto", package=_PACKAGE, syntax="proto3")
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (kind, values) in enumerate(_LISTS.items(), 1):
        file.message_type.add(name=kind).field.add(name="value", number=1, type=values, **many)
        _add_field(feature, kind.lower().replace("list", "_list"), number, kind, **one, oneof_index=0)
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=_Field.TYPE_STRING, **one)
    _add_field(entry, "value", 2, "Feature", **one)
    _add_field(features, "feature", 1, "Features.FeatureEntry", **many)
    _add_field(file.message_type.add(name="Example"), "features", 1, "Features", **one)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found = pool.FindMessageTypeByName(f"{_PACKAGE}.Example")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(found)
    return message_factory.MessageFactory(pool).GetPrototype(found)  # type: ignore[attr-defined]  # before 4.22


Example: Any = _message_class()
"""The class of the message: `FromString`, `SerializeToString`, `features.feature[NAME]`."""
