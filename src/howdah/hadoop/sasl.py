"""Logs in with Hadoop's tokens by SASL DIGEST-MD5 (RFC 2831). Both sides prove that they know the password; if the
server offers it, all later messages are signed (auth-int), or encrypted as well (auth-conf, with RC4).

Hadoop's secret is the base64 of the token's password, its user name the base64 of the token's identifier.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Mapping

from howdah.errors import EngineRejected

MAX_WRAPPED_BYTES = 1 << 16
"""The size in bytes of a wrapped message that every side accepts."""

_AUTH, _SIGNED, _SEALED = "auth", "auth-int", "auth-conf"
_CIPHER = "rc4"


def session_key(user: str, realm: str, password: str, nonce: str, cnonce: str) -> bytes:
    """Return H(A1) of RFC 2831 2.1.2.1, which only the two sides of this login know."""
    secret = _md5(f"{user}:{realm}:{password}".encode()).digest()
    return _md5(secret + f":{nonce}:{cnonce}".encode()).digest()


def response_digest(
    session: bytes, nonce: str, cnonce: str, uri: str, verb: str = "AUTHENTICATE", qop: str = _AUTH
) -> str:
    """Return the digest of RFC 2831 2.1.2.1 with nc=00000001; `verb` is empty for the server's rspauth."""
    body = "" if qop == _AUTH else f":{'0' * 32}"
    a2 = _md5(f"{verb}:{uri}{body}".encode()).hexdigest()
    return _md5(f"{session.hex()}:{nonce}:00000001:{cnonce}:{qop}:{a2}".encode()).hexdigest()


class DigestClient:
    """Does one login with a token. `finished` becomes true only when the server has proved that it knows the password.
    `layered` then says whether all later messages must be wrapped, which is never so with `plain`."""

    def __init__(self, identifier: bytes, password: bytes, uri: str, plain: bool = False) -> None:
        self.finished, self._plain = False, plain
        self._user, self._password = _text(identifier), _text(password)
        self._uri, self._cnonce, self._expected = uri, _text(os.urandom(24)), ""
        self._ours: Layer | None = None
        self._theirs: Layer | None = None

    def step(self, challenge: bytes) -> bytes:
        """Return the answer to the server's challenge, then "" to its proof.

        Raises:
            EngineRejected: the proof is wrong, or the server demands an unknown kind of encryption.
        """
        fields = parse_fields(challenge)
        if "rspauth" in fields:
            if not self._expected or not hmac.compare_digest(fields["rspauth"], self._expected):
                raise EngineRejected("the server could not prove that it knows the token's password")
            self.finished = True
            return b""
        realm, nonce = fields.get("realm", ""), fields.get("nonce", "")
        if self._expected or not nonce:
            raise EngineRejected("the server's DIGEST-MD5 challenge is malformed")
        qop = _strongest_protection(fields, self._plain)
        session = session_key(self._user, realm, self._password, nonce, self._cnonce)
        digest = (session, nonce, self._cnonce, self._uri)
        self._expected = response_digest(*digest, verb="", qop=qop)
        if qop != _AUTH:
            self._ours = Layer(session, "client-to-server", qop == _SEALED)
            self._theirs = Layer(session, "server-to-client", qop == _SEALED)
        more = "" if qop == _AUTH else f",maxbuf={MAX_WRAPPED_BYTES}"
        more += f',cipher="{_CIPHER}"' if qop == _SEALED else ""
        return (
            f'charset=utf-8,username="{self._user}",realm="{realm}",nonce="{nonce}",nc=00000001,cnonce="{self._cnonce}",'
            f'digest-uri="{self._uri}",response={response_digest(*digest, qop=qop)},qop={qop}{more}'
        ).encode()

    @property
    def layered(self) -> bool:
        """Return whether messages are signed or encrypted."""
        return self._ours is not None

    def wrap(self, data: bytes) -> bytes:
        """Sign a message, and encrypt it if the layer demands that."""
        assert self._ours is not None
        return self._ours.wrap(data)

    def unwrap(self, data: bytes) -> bytes:
        """Return the message inside.

        Raises:
            EngineRejected: the server has not made it, or one before it is missing.
        """
        assert self._theirs is not None
        return self._theirs.unwrap(data)


def _strongest_protection(offered: Mapping[str, str], plain: bool) -> str:
    qops, ciphers = (re.split(r"[\s,]+", offered.get(name, other)) for name, other in (("qop", _AUTH), ("cipher", "")))
    for qop in (_AUTH,) if plain else (_SEALED, _SIGNED, _AUTH):
        if qop in qops and (qop != _SEALED or _CIPHER in ciphers):
            return qop
    wanted = _AUTH if plain else f"{_AUTH}, {_SIGNED}, {_SEALED} with {_CIPHER}"
    raise EngineRejected(f"the server demands {' or '.join(qops)} ({', '.join(ciphers)}), howdah has {wanted}")


class Layer:
    """Wraps the messages of one direction after a login (RFC 2831 2.3, 2.4). Each message has a number and a checksum
    that only a holder of the `session` key can make; with `sealing` no other process can read the message."""

    def __init__(self, session: bytes, direction: str, sealing: bool) -> None:
        signing = f"Digest session key to {direction} signing key magic constant"
        self._key, self._count, self._cipher = _md5(session + signing.encode()).digest(), 0, None
        if sealing:
            constant = f"Digest H(A1) to {direction} sealing key magic constant"
            self._cipher = _Rc4(_md5(session + constant.encode()).digest())

    def wrap(self, data: bytes) -> bytes:
        return self._apply_cipher(data + self._checksum(data)) + self._trailer()

    def unwrap(self, data: bytes) -> bytes:
        """Return the message inside.

        Raises:
            EngineRejected: the other side has not wrapped it as its next message.
        """
        body = self._apply_cipher(data[:-6])
        plain, signature = body[:-10], body[-10:]
        if not hmac.compare_digest(signature, self._checksum(plain)) or data[-6:] != self._trailer():
            raise EngineRejected("a message that was not made by the server")
        return plain

    def _checksum(self, data: bytes) -> bytes:
        return hmac.new(self._key, self._count.to_bytes(4, "big") + data, _md5).digest()[:10]

    def _trailer(self) -> bytes:
        """Return a version and the message's number, and count the message."""
        number = self._count.to_bytes(4, "big")
        self._count = (self._count + 1) % (1 << 32)
        return b"\0\x01" + number

    def _apply_cipher(self, data: bytes) -> bytes:
        return self._cipher.apply(data) if self._cipher is not None else data


class _Rc4:
    """Encrypts and decrypts one stream over all messages. RC4 is weak, but the only alternative in Java's DIGEST-MD5 is
    DES."""

    def __init__(self, key: bytes) -> None:
        self._state, self._i, self._j = list(range(256)), 0, 0
        j = 0
        for i, value in enumerate(self._state):
            j = (j + value + key[i % len(key)]) & 255
            self._state[i], self._state[j] = self._state[j], self._state[i]

    def apply(self, data: bytes) -> bytes:
        state, i, j, stream = self._state, self._i, self._j, bytearray(len(data))
        for place in range(len(data)):
            i = (i + 1) & 255
            a = state[i]
            j = (j + a) & 255
            b = state[i] = state[j]
            state[j] = a
            stream[place] = state[(a + b) & 255]
        self._i, self._j = i, j
        return (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(data), "big")


def parse_fields(message: bytes) -> Mapping[str, str]:
    """Return the `name="value"` pairs of a DIGEST-MD5 message."""
    pairs = re.findall(r'([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^,\s]*))', message.decode("utf-8", "replace"))
    return {name: re.sub(r"\\(.)", r"\1", quoted) or plain for name, quoted, plain in pairs}


def _text(secret: bytes) -> str:
    return base64.b64encode(secret).decode()


def _md5(data: bytes = b"") -> hashlib._Hash:
    try:
        return hashlib.md5(data, usedforsecurity=False)
    except ValueError as error:
        raise EngineRejected(f"this Python refuses MD5 ({error}), which Hadoop's token login needs") from None
