"""Answers that many ask for again and again: rendered and compressed at most once a second, the same bytes for all.

The rule: an answer's version is that of its source when its content last changed, so who has it is told so shortly.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

FRESH_S = 1.0
MOST_BYTES = 4 << 20
_GZIP = 16 + zlib.MAX_WBITS


@dataclass
class _Kept:
    """`source` is the version of what it was made from, `version` that in the answer."""

    source: int
    version: int
    made_at: float
    digest: bytes
    packed: bytes


class ResponseCache:
    """Keeps answers by what was asked; those asked for least lately go first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0

    async def get(
        self, asked: str, version: int, now: float, make: Callable[[], Awaitable[Mapping[str, Any]]]
    ) -> tuple[int, bytes]:
        """Version and gzipped JSON of what `make` gives; `now` is any clock's seconds, `version` the source's."""
        kept = self._kept.get(asked)
        if kept is None or (kept.source != version and now - kept.made_at >= FRESH_S):
            kept = self._keep(asked, version, now, await make())
        self._kept.move_to_end(asked)
        return kept.version, kept.packed

    def _keep(self, asked: str, version: int, now: float, value: Mapping[str, Any]) -> _Kept:
        text = compact(value)
        digest = hashlib.blake2b(text, digest_size=16).digest()
        before = self._kept.pop(asked, None)
        if before is not None and before.digest == digest:
            before.source, before.made_at = version, now
            self._kept[asked] = before
            return before
        rest = text[1:] if text == b"{}" else b"," + text[1:]
        kept = _Kept(version, version, now, digest, pack(b'{"version":%d' % version + rest))
        self._kept[asked] = kept
        self._bytes += len(kept.packed) - (len(before.packed) if before else 0)
        while self._bytes > MOST_BYTES and len(self._kept) > 1:
            self._bytes -= len(self._kept.popitem(last=False)[1].packed)
        return kept


def compact(value: Any) -> bytes:
    """JSON in ASCII without blanks; what is no number (NaN) is an error, as no JSON has it."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def pack(data: bytes) -> bytes:
    """Gzipped, for speed rather than size."""
    squeeze = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
    return squeeze.compress(data) + squeeze.flush()


def unpack(data: bytes) -> bytes:
    """The inverse of `pack`, for a caller that takes no gzip."""
    return zlib.decompress(data, _GZIP)
