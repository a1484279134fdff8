"""Reads one event by its protobuf message, for everything that `scalar_columns` does not read in bulk."""

from __future__ import annotations

import codecs
import math
import struct
from array import array
from collections.abc import Sequence
from typing import Any, cast

from google.protobuf.message import DecodeError

from howdah.eventfiles.event_batch import (
    Batch,
    Histogram,
    HyperparameterSession,
    Image,
    Media,
    Points,
    PrecisionRecallCurve,
    TextValue,
)
from howdah.eventfiles.proto import event_pb2
from howdah.eventfiles.sampling import evenly_spread

SCALARS, HISTOGRAMS, IMAGES, TEXT, HPARAMS = b"scalars", b"histograms", b"images", b"text", b"hparams"
AUDIO, PR_CURVES = b"audio", b"pr_curves"
MAX_BUCKETS = 200
MAX_THRESHOLDS = 200
"""The points of a curve of precision over recall that are kept."""
MAX_TEXT = 64 << 10
"""The bytes of a text that are kept."""
MAX_CELLS = 10_000
_STRING = 7
_FORMATS = {1: "f", 2: "d", 3: "i", 4: "B", 5: "h", 6: "b", 9: "q", 10: "?", 17: "H", 19: "e", 22: "I", 23: "Q"}
_BFLOAT16 = 14
_VALUES = {1: "float_val", 2: "double_val", 9: "int64_val", 10: "bool_val"}
_BY_CLASS = {1: SCALARS}
_STATUS = {1: "SUCCESS", 2: "FAILURE", 3: "RUNNING"}


def read(content: bytes, at: int, length: int, batch: Batch, kinds: dict[bytes, bytes]) -> bool:
    """Add the values of an event to `batch`; return False if `content` is no event. Its frame has `length` bytes at
    `at`.

    `kinds` has the plugins of tags, which writers need to name with the first value only.
    """
    try:
        event = event_pb2.Event.FromString(content)
    except DecodeError:
        return False
    if event.session_log.status == event_pb2.SessionLog.START:
        batch.restarts.append((at, event.step))
    for value in event.summary.value:
        _Reader(batch, kinds, event, at, length).value(value)
    return True


def is_scalar(content: bytes, kinds: dict[bytes, bytes]) -> bool:
    """Return whether the only value of an event is a scalar."""
    try:
        event = event_pb2.Event.FromString(content)
    except DecodeError:
        return False
    (value,) = event.summary.value
    return _kind(value, kinds) == SCALARS


def _kind(value: Any, kinds: dict[bytes, bytes]) -> bytes:
    """Return the plugin that shows a value: each older kind of value has one, tensors name theirs."""
    form = value.WhichOneof("value")
    named = value.metadata.plugin_data.plugin_name or _BY_CLASS.get(value.metadata.data_class, b"")
    if named and kinds.get(value.tag) != named:
        kinds[value.tag] = named
    older = {"simple_value": SCALARS, "histo": HISTOGRAMS, "image": IMAGES, "audio": AUDIO}
    return older.get(form) or named or kinds.get(value.tag, b"")


class _Reader:
    """Puts the values of one event into a batch."""

    def __init__(self, batch: Batch, kinds: dict[bytes, bytes], event: Any, at: int, length: int) -> None:
        self.batch, self.kinds, self.at, self.length = batch, kinds, at, length
        self.step, self.wall = event.step, event.wall_time if math.isfinite(event.wall_time) else 0.0

    def value(self, value: Any) -> None:
        kind = _kind(value, self.kinds)
        if kind == SCALARS:
            found = [value.simple_value] if value.HasField("simple_value") else _tensor_numbers(value.tensor, 1)
            if found:
                self._scalar(value.tag, found[0])
        elif kind == HISTOGRAMS:
            buckets = _old_buckets(value.histo) if value.HasField("histo") else _buckets(value.tensor)
            self.batch.histograms.append((value.tag, Histogram(self.step, self.wall, _merge_neighbours(buckets))))
        elif kind == IMAGES:
            self._image(value)
        elif kind == AUDIO:
            if count := _clip_count(value):
                self.batch.audio.append((value.tag, Media(count=count, **self._place(value.tag))))
        elif kind == PR_CURVES:
            if points := _precision_recall(value.tensor):
                self.batch.pr_curves.append((value.tag, PrecisionRecallCurve(self.step, self.wall, points)))
        elif kind == TEXT and value.tensor.dtype == _STRING:
            self.batch.texts.append((value.tag, TextValue(self.step, self.wall, _text(value.tensor))))
        elif kind == HPARAMS:
            session = _session(value.metadata.plugin_data.content)
            if session is not None:
                self.batch.sessions.append(session)

    def _scalar(self, tag: bytes, number: float) -> None:
        points = self.batch.scalars.setdefault(tag, Points())
        cast("list[int]", points.offsets).append(self.at)
        points.steps.append(self.step)
        points.walls.append(self.wall)
        points.values.append(number)

    def _image(self, value: Any) -> None:
        if value.HasField("image"):
            width, height, count = value.image.width, value.image.height, 1
        else:
            strings = value.tensor.string_val
            if len(strings) < 3:
                return
            width, height, count = _parse_int(strings[0]), _parse_int(strings[1]), len(strings) - 2
        image = Image(width=width, height=height, count=count, **self._place(value.tag))
        self.batch.images.append((value.tag, image))

    def _place(self, tag: bytes) -> dict[str, Any]:
        """Return the fields of `Media` that give the position of the event."""
        place = {"uri": self.batch.uri, "offset": self.at, "length": self.length}
        return {"tag": tag, "step": self.step, "wall": self.wall, **place}


def image(content: bytes, tag: bytes, number: int) -> bytes:
    """Return the bytes of image `number` of a tag in an event; no bytes if there is no such image."""
    for value in event_pb2.Event.FromString(content).summary.value:
        if value.tag == tag and value.HasField("image"):
            return bytes(value.image.encoded_image_string)
        if value.tag == tag and 0 <= number < len(value.tensor.string_val) - 2:
            return bytes(value.tensor.string_val[number + 2])
    return b""


def audio_clip(content: bytes, tag: bytes, number: int) -> bytes:
    """Return the bytes of audio clip `number` of a tag in an event; no bytes if there is no such clip."""
    for value in event_pb2.Event.FromString(content).summary.value:
        if value.tag == tag and 0 <= number < _clip_count(value):
            if value.HasField("audio"):
                return bytes(value.audio.encoded_audio_string)
            return bytes(value.tensor.string_val[number * _clip_width(value.tensor)])
    return b""


def _clip_count(value: Any) -> int:
    return 1 if value.HasField("audio") else len(value.tensor.string_val) // _clip_width(value.tensor)


def _clip_width(tensor: Any) -> int:
    """Return the number of strings in a tensor for each clip: TensorFlow writes a label after each (TensorBoard's
    plugins/audio/summary_v2.py)."""
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    return max(1, sizes[1]) if len(sizes) == 2 else 1


def _precision_recall(tensor: Any) -> array[float]:
    """Return recall, precision and threshold of each point of a tensor [6, thresholds], whose rows are true and false
    positives, true and false negatives, precision and recall (TensorBoard's plugins/pr_curve/summary.py). A threshold
    that nothing reaches has no precision, and no point. If there are many points, only as many as are drawn stay."""
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    count = sizes[1] if len(sizes) == 2 and sizes[0] == 6 and sizes[1] <= MAX_CELLS else 0
    numbers = list(_tensor_numbers(tensor, 6 * count)) if count > 0 else []
    if not numbers:
        return array("d")
    numbers += [numbers[-1]] * (6 * count - len(numbers))
    reached = [at for at in range(count) if numbers[at] + numbers[count + at] > 0]
    found = array("d")
    for at in evenly_spread(reached, MAX_THRESHOLDS):
        found.extend((numbers[5 * count + at], numbers[4 * count + at], at / max(1, count - 1)))
    return found


def _tensor_numbers(tensor: Any, limit: int) -> Sequence[float]:
    """Return the first `limit` numbers of a tensor (tensor.proto), or all that are written: the last written number
    stands for all numbers after it."""
    if tensor.tensor_content:
        if tensor.dtype == _BFLOAT16:
            raw = tensor.tensor_content[: 2 * limit]
            wide = b"".join(b"\0\0" + raw[at : at + 2] for at in range(0, len(raw), 2))
            return struct.unpack(f"<{len(raw) // 2}f", wide)
        form = _FORMATS.get(tensor.dtype)
        if form is None:
            return ()
        count = min(limit, len(tensor.tensor_content) // struct.calcsize(f"<{form}"))
        return struct.unpack_from(f"<{count}{form}", tensor.tensor_content)
    if tensor.dtype in (19, _BFLOAT16):
        form = "<e" if tensor.dtype == 19 else "<f"
        pad = b"" if tensor.dtype == 19 else b"\0\0"
        return [struct.unpack(form, pad + struct.pack("<H", half & 0xFFFF))[0] for half in tensor.half_val[:limit]]
    return list(getattr(tensor, _VALUES.get(tensor.dtype, "int_val"))[:limit])


def _buckets(tensor: Any) -> array[float]:
    """Return the buckets of a tensor [k, 3]: left, right, count (TensorBoard's plugins/histogram/summary.py)."""
    found = array("d", _tensor_numbers(tensor, 3 * MAX_CELLS))
    return found[: len(found) // 3 * 3]


def _old_buckets(histogram: Any) -> array[float]:
    """Return the buckets of an old histogram, which has right limits; the last may be huge (histogram.proto)."""
    found, left = array("d"), histogram.min
    pairs = list(zip(histogram.bucket_limit[:MAX_CELLS], histogram.bucket[:MAX_CELLS], strict=False))
    while pairs and not pairs[-1][1]:
        pairs.pop()
    for limit, count in pairs:
        right = max(left, min(limit, histogram.max))
        if count or found:
            found.extend((left, right, count))
        left = right
    return found


def _merge_neighbours(buckets: array[float]) -> array[float]:
    """Return the histogram in at most `MAX_BUCKETS` buckets."""
    count = len(buckets) // 3
    if count <= MAX_BUCKETS:
        return buckets
    together = -(-count // MAX_BUCKETS)
    found = array("d")
    for first in range(0, count, together):
        last = min(first + together, count) - 1
        found.extend((buckets[3 * first], buckets[3 * last + 1], sum(buckets[3 * first + 2 : 3 * last + 3 : 3])))
    return found


def _text(tensor: Any) -> str:
    """Return a tensor of strings as text of MAX_TEXT bytes at most; the rows of a table become lines."""
    cells = [cell[: MAX_TEXT + 1] for cell in tensor.string_val[:MAX_CELLS]]
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    across = sizes[1] if len(sizes) == 2 and sizes[1] > 0 else 1
    text = b"\n".join(b" | ".join(cells[first : first + across]) for first in range(0, len(cells), across))
    # A character that was cut is dropped.
    return codecs.getincrementaldecoder("utf-8")("replace").decode(text[:MAX_TEXT], final=len(text) <= MAX_TEXT)


def _parse_int(text: bytes) -> int:
    return int(text) if text.isdigit() and len(text) < 10 else 0


def _session(content: bytes) -> HyperparameterSession | None:
    try:
        data = event_pb2.HParamsPluginData.FromString(content)
    except DecodeError:
        return None
    start, end, found = data.session_start_info, data.session_end_info, HyperparameterSession()
    for name, value in list(start.hparams.items())[:MAX_CELLS]:
        form = value.WhichOneof("kind")
        found.values[name] = getattr(value, form) if form in ("number_value", "string_value", "bool_value") else None
    found.group = start.group_name.decode("utf-8", "replace")
    found.started, found.ended = start.start_time_secs, end.end_time_secs
    found.status = _STATUS.get(end.status, "")
    found.metrics = [info.name.tag.decode("utf-8", "replace") for info in data.experiment.metric_infos]
    return found
