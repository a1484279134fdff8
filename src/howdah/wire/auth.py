"""Signs the messages on the wire: each carries an HMAC made with a key that only its sender and the master have.

One job key is made at submission. From it the master derives a key for each attempt of each task, so that an old
attempt cannot speak as a newer one, one for the submitting client, and the tokens in links to the page: to view,
to embed a curve, and for a limited time to act (docs/adr/0008).
A signature covers direction, principal, path, time and body; times more than `TOLERANCE_S` apart are refused. An
answer carries the time of its request, so that it is valid for no other request.
"""

from __future__ import annotations

import functools
import hashlib
import hmac

KEY_BYTES = 32
TOLERANCE_S = 300.0
SAME_S = 0.001
MAX_NAME = 300
"""The most characters of a principal's name whose key is cached."""
UNSIGNED_CHARS = 200
"""Characters of an answer without the master's signature that are shown."""
CLIENT = "client"
HEADER = "Howdah-Signature"


def read_key(text: str) -> bytes:
    """Return the key that a file holds in hexadecimal digits.

    Raises:
        ValueError: it holds no whole key, as after a power failure: everybody could make tokens of an empty one.
    """
    key = bytes.fromhex(text.strip())
    if len(key) < KEY_BYTES:
        raise ValueError(f"it has {len(key)} bytes, must have {KEY_BYTES}")
    return key


def derive(job_key: bytes, principal: str) -> bytes:
    """Derive the key of `principal`: "client", or "executor worker:1/2" for the second attempt of worker:1."""
    # Any caller may claim a name: keys of long names are not cached.
    return (_derive if len(principal) <= MAX_NAME else _derive.__wrapped__)(job_key, principal)


@functools.lru_cache(maxsize=1 << 14)
def _derive(job_key: bytes, principal: str) -> bytes:
    return hmac.digest(job_key, b"howdah key " + principal.encode(), "sha256")


def view_token(job_key: bytes) -> str:
    """Return the token that lets its holder view the job's page, and nothing else."""
    return derive(job_key, "view").hex()[:32]


def session_token(job_key: bytes) -> str:
    """Return the value of the cookie that lets a browser view the page of this key, and nothing else."""
    return derive(job_key, "session").hex()[:32]


def page_path(job_key: bytes) -> str:
    """Return the path below which a browser sends the cookie with `session_token`: no other server of the host, on any
    port, has this path."""
    return f"/{derive(job_key, 'place').hex()[:16]}/"


def page_link(job_key: bytes) -> str:
    """Return the path and the token that make a server's address a link to its page.

    The address without the token opens in browsers that have the cookie.
    """
    return f"{page_path(job_key)}#token={view_token(job_key)}"


def tensorboard_token(job_key: bytes) -> str:
    """Return the token that opens the job's TensorBoard, and nothing else."""
    return derive(job_key, "board").hex()[:32]


def embed_token(job_key: bytes) -> str:
    """Return the token that shows the job's curves in other people's pages, and nothing else."""
    return derive(job_key, "embed").hex()[:32]


def act_token(job_key: bytes, expires: float) -> str:
    """Return a token that lets its holder change the job until `expires` (epoch seconds), as `howdah page` prints."""
    return f"act.{expires:.0f}.{derive(job_key, f'act {expires:.0f}').hex()[:40]}"


def may_act(job_key: bytes, token: str, now: float) -> bool:
    """Return whether `token` was made by `act_token` and has not expired."""
    _, _, stamp = token.partition(".")
    expires = stamp.partition(".")[0]
    if not expires.isdecimal() or not expires.isascii() or len(expires) > 12 or int(expires) <= now:
        return False
    return is_same(token, act_token(job_key, int(expires)))


def is_same(given: str, right: str) -> bool:
    """Compare a secret with a text that somebody has sent. The time that this takes reveals nothing about the
    secret."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), right.encode())


def gang_key(job_key: bytes) -> str:
    """Return the key by which the programs of a job may know each other."""
    return derive(job_key, "gang").hex()


def executor_principal(task: str, attempt: int) -> str:
    """Return the principal name of one attempt of a task."""
    return f"executor {task}/{attempt}"


def sign(key: bytes, direction: str, principal: str, path: str, time: float, body: bytes) -> str:
    """Return the header value `principal;time;digest of the body;signature`, the last two in hexadecimal.

    `direction` is "request" or "response <status>". The signature covers the digest of the body, so that the
    receiver knows the sender before it reads the body.
    """
    return _sign(key, direction, principal, path, time, digest_of(body))


def digest_of(body: bytes) -> str:
    """Return the digest of a body that a signature covers."""
    return hashlib.sha256(body).hexdigest()


def _sign(key: bytes, direction: str, principal: str, path: str, time: float, content: str) -> str:
    stamp = f"{time:.3f}"
    return f"{principal};{stamp};{content};{_digest(key, direction, principal, path, stamp, content)}"


def principal_of(header: str) -> str:
    """Return the principal that a header claims, to find the key that proves it; "" for a malformed header."""
    parts = header.split(";")
    return parts[0] if len(parts) == 4 else ""


def time_of(header: str) -> float:
    """Return the time of signing in a verified header."""
    return float(header.split(";")[1])


def sign_answer(key: bytes, asked: str, path: str, status: int, digest: str) -> str:
    """Return the header of the answer to a message whose verified header was `asked`. `digest` is `digest_of` the
    answer's body."""
    return _sign(key, _response(status), principal_of(asked), path, time_of(asked), digest)


def verify_answer(key: bytes, header: str, path: str, requested_at: float, body: bytes, status: int = 200) -> bool:
    """Return whether `header` was made with `key` for this answer to the request that was signed at `requested_at`."""
    return verify_answer_head(key, header, path, requested_at, status) and fits_body(header, body)


def verify_answer_head(key: bytes, header: str, path: str, requested_at: float, status: int) -> bool:
    """Verify the head of an answer whose body has not been read yet; `fits_body` verifies the body."""
    return verify_head(key, _response(status), header, path, requested_at, SAME_S)


def verify(
    key: bytes, direction: str, header: str, path: str, now: float, body: bytes, tolerance_s: float = TOLERANCE_S
) -> bool:
    """Return whether `header` was made with `key` for exactly this message, within the tolerance of `now`."""
    return verify_head(key, direction, header, path, now, tolerance_s) and fits_body(header, body)


def verify_head(
    key: bytes, direction: str, header: str, path: str, now: float, tolerance_s: float = TOLERANCE_S
) -> bool:
    """Verify a message whose body has not been read yet; `fits_body` verifies the body."""
    parts = header.split(";")
    if len(parts) != 4 or not header.isascii():
        return False
    principal, stamp, content, digest = parts
    try:
        fresh = abs(float(stamp) - now) <= tolerance_s
    except ValueError:
        return False
    return fresh and hmac.compare_digest(digest, _digest(key, direction, principal, path, stamp, content))


def fits_body(header: str, body: bytes) -> bool:
    """Return whether a verified `header` belongs to a message with this body."""
    return is_same(header.split(";")[2], digest_of(body))


def _response(status: int) -> str:
    return f"response {status}"


def _digest(key: bytes, direction: str, principal: str, path: str, stamp: str, content: str) -> str:
    return hmac.digest(key, "\n".join((direction, principal, path, stamp, content)).encode(), "sha256").hex()


def shorten_unsigned(text: str) -> str:
    """Return the beginning of an answer that the master has not signed, on one line: such an answer may be a page of a
    proxy, or text that controls a terminal."""
    printable = "".join(char if char.isprintable() else " " for char in text[: 10 * UNSIGNED_CHARS])
    return " ".join(printable.split())[:UNSIGNED_CHARS]
