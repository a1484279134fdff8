"""Ten records in each format and compression that howdah streams: `python make_samples.py DIRECTORY`.

Any Hadoop, Spark or pandas job writes such files; this one needs nothing but howdah's extra `records`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import fastavro
import pyarrow
import pyarrow.orc
import pyarrow.parquet

from howdah.inputs.formats import codecs, writer

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
ROWS = [{"number": number, "word": word} for number, word in enumerate(WORDS)]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
CODECS = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd", ".snappy": "snappy", ".lz4": "lz4", ".deflate": "deflate"}
SCHEMA = {
    "name": "row",
    "type": "record",
    "fields": [{"name": "number", "type": "long"}, {"name": "word", "type": "string"}],
}


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "lines.jsonl").write_bytes(LINES)
    (directory / "table.csv").write_text("number,word\n" + "".join(f"{n},{word}\n" for n, word in enumerate(WORDS)))
    for suffix, codec in CODECS.items():
        (directory / f"lines.jsonl{suffix}").write_bytes(codecs.compress(codec, LINES))
    for name in ("sequencefile", "tfrecord"):
        with (directory / f"records.{name}").open("wb") as file:
            made = writer(name, {"codec": "snappy"} if name == "sequencefile" else {}, file)
            made.write(LINES)
            made.close()
    table = pyarrow.Table.from_pylist(ROWS)
    pyarrow.parquet.write_table(table, directory / "table.parquet")
    pyarrow.orc.write_table(table, directory / "table.orc")
    with (directory / "table.avro").open("wb") as file:
        fastavro.writer(file, SCHEMA, ROWS, codec="deflate")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
