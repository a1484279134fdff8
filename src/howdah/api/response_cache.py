"""A cache of answers that many callers request again and again: each is rendered and compressed at most once a second.

The rule: an answer's version is the version of its source when the content last changed, so a caller that has the
present content gets a short answer.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from howdah.spec.values import dataclass

FRESH_S = 1.0
MAX_BYTES = 4 << 20
_GZIP = 16 + zlib.MAX_WBITS


@dataclass
class _CachedAnswer:
    """A rendered answer."""

    source: int
    """The version of the source that the answer was made from."""
    version: int
    """The version that the answer states."""
    made_at: float
    digest: bytes
    packed: bytes


class ResponseCache:
    """Keeps answers by their request; those requested least recently are removed first."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, _CachedAnswer] = OrderedDict()
        self._bytes = 0

    async def get(
        self, request: str, version: int, now: float, make: Callable[[], Awaitable[Mapping[str, Any]]]
    ) -> tuple[int, bytes]:
        """Return version and gzipped JSON of the value that `make` returns; `now` is any clock's seconds, `version` is
        that of the source."""
        answer = self._answers.get(request)
        if answer is None or (answer.source != version and now - answer.made_at >= FRESH_S):
            answer = self._store(request, version, now, await make())
        self._answers.move_to_end(request)
        return answer.version, answer.packed

    def _store(self, request: str, version: int, now: float, value: Mapping[str, Any]) -> _CachedAnswer:
        text = compact_json(value)
        digest = hashlib.blake2b(text, digest_size=16).digest()
        before = self._answers.pop(request, None)
        if before is not None and before.digest == digest:
            before.source, before.made_at = version, now
            self._answers[request] = before
            return before
        rest = text[1:] if text == b"{}" else b"," + text[1:]
        answer = _CachedAnswer(version, version, now, digest, pack(b'{"version":%d' % version + rest))
        self._answers[request] = answer
        self._bytes += len(answer.packed) - (len(before.packed) if before else 0)
        while self._bytes > MAX_BYTES and len(self._answers) > 1:
            self._bytes -= len(self._answers.popitem(last=False)[1].packed)
        return answer


def compact_json(value: Any) -> bytes:
    """Return JSON in ASCII without blanks; NaN raises ValueError, because JSON does not have it."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def pack(data: bytes) -> bytes:
    """Compress with gzip, for speed rather than size."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
    return compressor.compress(data) + compressor.flush()


def unpack(data: bytes) -> bytes:
    """Return the inverse of `pack`, for a caller that does not accept gzip."""
    return zlib.decompress(data, _GZIP)
