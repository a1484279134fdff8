"""Counts words: reads lines from standard input, prints `word<TAB>count` lines. Knows nothing of HDFS or howdah."""

import re
import sys
from collections import Counter

WORD = re.compile(rb"[a-z]+")

counts: Counter[bytes] = Counter()
for line in sys.stdin.buffer:
    counts.update(WORD.findall(line.lower()))
for word, count in sorted(counts.items()):
    sys.stdout.buffer.write(b"%s\t%d\n" % (word, count))
print(f"{len(counts)} different words", file=sys.stderr)
