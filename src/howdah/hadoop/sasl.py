"""SASL DIGEST-MD5 (RFC 2831) with qop=auth: how Hadoop's tokens log in. Both sides prove that they know the password.

Hadoop's secret is the base64 of the token's password, its user name the base64 of the token's identifier.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Callable, Mapping

from howdah.errors import EngineRejected


def response_digest(
    user: str, realm: str, password: str, nonce: str, cnonce: str, uri: str, verb: str = "AUTHENTICATE"
) -> str:
    """RFC 2831 2.1.2.1 with nc=00000001 and qop=auth; `verb` is empty for the server's rspauth."""
    secret = _md5(f"{user}:{realm}:{password}".encode()).digest()
    a1 = _md5(secret + f":{nonce}:{cnonce}".encode()).hexdigest()
    a2 = _md5(f"{verb}:{uri}".encode()).hexdigest()
    return _md5(f"{a1}:{nonce}:00000001:{cnonce}:auth:{a2}".encode()).hexdigest()


class DigestClient:
    """One login with a token. `finished` turns true only when the server has proved that it knows the password."""

    def __init__(self, identifier: bytes, password: bytes, uri: str, cnonce: str = "") -> None:
        self.finished = False
        self._user, self._password = _text(identifier), _text(password)
        self._uri, self._cnonce, self._expected = uri, cnonce or _nonce(), ""

    def step(self, challenge: bytes) -> bytes:
        """The answer to the server's challenge, then "" to its proof.

        Raises:
            EngineRejected: the proof is wrong, or the server demands encryption.
        """
        fields = parse_fields(challenge)
        if "rspauth" in fields:
            if not self._expected or not hmac.compare_digest(fields["rspauth"], self._expected):
                raise EngineRejected("the server could not prove that it knows the token's password")
            self.finished = True
            return b""
        if "auth" not in re.split(r"[\s,]+", fields.get("qop", "auth")):
            raise EngineRejected(
                f"the server demands hadoop.rpc.protection {fields['qop']}; howdah speaks authentication only"
            )
        realm, nonce = fields.get("realm", ""), fields.get("nonce", "")
        if self._expected or not nonce:
            raise EngineRejected("the server's DIGEST-MD5 challenge is malformed")
        digest = (self._user, realm, self._password, nonce, self._cnonce, self._uri)
        self._expected = response_digest(*digest, verb="")
        return (
            f'charset=utf-8,username="{self._user}",realm="{realm}",nonce="{nonce}",nc=00000001,'
            f'cnonce="{self._cnonce}",digest-uri="{self._uri}",response={response_digest(*digest)},qop=auth'
        ).encode()


class DigestServer:
    """The other side, for servers of our own: `password_of(identifier)` is None for a token that is not valid."""

    def __init__(self, password_of: Callable[[bytes], bytes | None], uri: str = "/default") -> None:
        self.identifier = b""
        self._password_of, self._uri, self._nonce = password_of, uri, _nonce()

    def challenge(self) -> bytes:
        """What the client has to answer."""
        return f'realm="default",nonce="{self._nonce}",qop="auth",charset=utf-8,algorithm=md5-sess'.encode()

    def verify(self, answer: bytes) -> bytes:
        """The proof for the client. Raises PermissionError when the client does not know the password."""
        fields = parse_fields(answer)
        try:
            self.identifier = base64.b64decode(fields["username"], validate=True)
            password = self._password_of(self.identifier)
            secret, cnonce = _text(password or b""), fields["cnonce"]
            digest = (fields["username"], fields["realm"], secret, self._nonce, cnonce, self._uri)
            right = hmac.compare_digest(fields["response"], response_digest(*digest))
        except (KeyError, ValueError):
            password, right = None, False
        if password is None or not right or fields["digest-uri"] != self._uri:
            raise PermissionError("DIGEST-MD5: the token is not valid")
        return f"rspauth={response_digest(*digest, verb='')}".encode()


def parse_fields(message: bytes) -> Mapping[str, str]:
    """The `name="value"` pairs of a DIGEST-MD5 message."""
    pairs = re.findall(r'([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^,\s]*))', message.decode("utf-8", "replace"))
    return {name: re.sub(r"\\(.)", r"\1", quoted) or plain for name, quoted, plain in pairs}


def _text(secret: bytes) -> str:
    return base64.b64encode(secret).decode()


def _nonce() -> str:
    return base64.b64encode(os.urandom(24)).decode()


def _md5(data: bytes) -> hashlib._Hash:
    try:
        return hashlib.md5(data, usedforsecurity=False)
    except ValueError as error:
        raise EngineRejected(f"this Python refuses MD5 ({error}), which Hadoop's token login needs") from None
