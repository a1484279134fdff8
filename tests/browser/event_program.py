"""Writes event files with everything that a page can show: curves with gaps, histograms, images, audio, text, a model.

tensorboardX writes the files; the images of one step are one tensor, as TensorFlow 2 writes them."""

from __future__ import annotations

import sys

from browser import NASTY

NAN_AT, INFINITE_AT, MINUS_INFINITE_AT, STEPS, IMAGES = 40, 60, 80, 101, 3

_NOTES = f"""---
lr: 0.{{step}}
---

# Epoch {{step}}

{NASTY} [safe](https://example.org/) [unsafe](javascript:alert(1)) ![picture](https://example.org/x.png)

| name | value |
|---|---|
| loss | {{step}} |
"""

_PROGRAM = f"""
import math, struct, sys, zlib
import numpy, tensorboardX
from tensorboardX.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboardX.proto.tensor_pb2 import TensorProto
from tensorboardX.proto.tensor_shape_pb2 import TensorShapeProto

def png(shade):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\\0" + bytes([shade]) * 28 for _ in range(28))
    head = struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)
    return b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")

NOTES = {_NOTES!r}
directory = sys.argv[1]
writer = tensorboardX.SummaryWriter(directory)
odd = {{{NAN_AT}: math.nan, {INFINITE_AT}: math.inf, {MINUS_INFINITE_AT}: -math.inf}}
for step in range({STEPS}):
    writer.add_scalar("train/loss", 1 / (step + 1), step)
    # tensorboardX writes numbers as they are; in the middle, so that the edges hold nothing but the marks.
    writer.add_scalar("odd", odd.get(step, 0.5 + 0.1 * math.sin(step / 5)), step)
    if step % 20 == 0:
        writer.add_histogram("weights", numpy.random.default_rng(step).normal(0, 1 + step / 50, 500), step)
        scores = numpy.linspace(0, 1, 200)
        writer.add_pr_curve("classes", scores + step / 100 > 0.5, scores, step)
        writer.add_text("notes", NOTES.format(step=step), step)
for step in (0, 10):
    shades = [b"28", b"28", *(png(40 * (1 + number) + step) for number in range({IMAGES}))]
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=len(shades))])
    tensor = TensorProto(dtype="DT_STRING", tensor_shape=shape, string_val=shades)
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="images"))
    writer.file_writer.add_summary(Summary(value=[Summary.Value(tag="input", metadata=metadata, tensor=tensor)]), step)
frames = numpy.sin(numpy.arange(8000) / 8)
sound = b"".join(struct.pack("<h", int(9000 * frame)) for frame in frames)
form = struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
head = struct.pack("<4sI8s", b"RIFF", 36 + len(sound), b"WAVEfmt ") + form + struct.pack("<4sI", b"data", len(sound))
clip = Summary.Audio(sample_rate=8000, num_channels=1, encoded_audio_string=head + sound, content_type="audio/wav")
writer.file_writer.add_summary(Summary(value=[Summary.Value(tag="tone", audio=clip)]), 10)
writer.add_hparams({{"rate": 0.1}}, {{"loss": 0.5}}, name="tried")
writer.close()
numpy.savez(directory + "/weights-7.npz", hidden=numpy.arange(12.0).reshape(3, 4))
print("written", flush=True)
"""


def command(directory: str, then: str = "") -> str:
    """Return a shell command that writes into `directory`, then does something else."""
    return f"{sys.executable} - {directory} <<'PROGRAM'\n{_PROGRAM}\nPROGRAM\n{then}"
