"""Who speaks on the wire: every message carries an HMAC of itself, made with a key only its sender and the master have.

One job key is made at submission. From it the master derives a key for each attempt of each task, so that an old
attempt cannot speak as a newer one, one for the submitting client, and a read-only token for links to the page.
A signature covers direction, principal, path, time and body; times more than `TOLERANCE_S` apart are refused.
"""

from __future__ import annotations

import hashlib
import hmac

TOLERANCE_S = 300.0
CLIENT = "client"
HEADER = "Howdah-Signature"


def derive(job_key: bytes, principal: str) -> bytes:
    """The key of `principal`: "client", or "executor worker:1/2" for the second attempt of worker:1."""
    return hmac.new(job_key, b"howdah key " + principal.encode(), hashlib.sha256).digest()


def view_token(job_key: bytes) -> str:
    """A token that lets its holder look at the job's page, and nothing else."""
    return derive(job_key, "view").hex()[:32]


def executor_principal(task: str, attempt: int) -> str:
    """The principal name of one attempt of a task."""
    return f"executor {task}/{attempt}"


def sign(key: bytes, direction: str, principal: str, path: str, time: float, body: bytes) -> str:
    """The header value `principal;time;hex`. `direction` is "request" or "response"."""
    stamp = f"{time:.3f}"
    return f"{principal};{stamp};{_digest(key, direction, principal, path, stamp, body)}"


def principal_of(header: str) -> str:
    """Whom a header claims to come from, to find the key that proves it; "" when it is malformed."""
    parts = header.split(";")
    return parts[0] if len(parts) == 3 else ""


def verify(key: bytes, direction: str, header: str, path: str, now: float, body: bytes) -> bool:
    """Whether `header` was made with `key` for exactly this message, within the tolerance of `now`."""
    parts = header.split(";")
    if len(parts) != 3:
        return False
    principal, stamp, digest = parts
    try:
        fresh = abs(float(stamp) - now) <= TOLERANCE_S
    except ValueError:
        return False
    return fresh and hmac.compare_digest(digest, _digest(key, direction, principal, path, stamp, body))


def _digest(key: bytes, direction: str, principal: str, path: str, stamp: str, body: bytes) -> str:
    head = "\n".join((direction, principal, path, stamp)).encode() + b"\n"
    return hmac.new(key, head + body, hashlib.sha256).hexdigest()
