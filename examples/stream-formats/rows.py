"""Whatever the format was, a record is a line on standard input; this prints each as a line of JSON."""

import base64
import json
import sys

for line in sys.stdin:
    line = line.strip()
    if line.startswith("{"):  # lines of JSON; rows of Parquet, ORC and Avro come as such, too
        rows = [line]
    elif "," in line:  # CSV
        number, word = line.split(",")
        rows = [json.dumps({"number": int(number), "word": word})]
    else:  # bytes, TFRecords and whole files come in base64, a record a line
        rows = base64.b64decode(line).decode().splitlines()
    print(*rows, sep="\n")
